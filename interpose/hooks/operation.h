// SPDX-License-Identifier: Apache-2.0
#pragma once
// One operation of the program on its way through: name what it uses, begin, forward, end. On a
// stream that captures nothing happens now: what it names is brought home, and stays there while
// the graph lives. So it is for a node that the program makes by hand.

#include "interpose/driver/table.h"
#include "interpose/graphs/captures.h"
#include "interpose/hooks/device_memory.h"
#include "interpose/life/session.h"

namespace offload {

// A node that the program makes by hand, once the driver has said which; and one that it gives
// other parameters, in an instance.
struct NewNode {
  CUgraph graph;
  const CUgraphNode* made;
};
struct InstanceNode {
  CUgraphExec exec;
  CUgraphNode node;
};

class Operation {
 public:
  explicit Operation(Session& session) : session_(session), pins_(session.pins()) {}
  ~Operation() {
    if (recording_ != nullptr) [[unlikely]]
      forget_recording();
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Whether `stream` captures, while captures may be open. Before anything is named.
  void look_for_capture(CUstream stream, bool per_thread);
  // What is named becomes a part of this, and begin() and end() are about that.
  void record_for(NewNode made);
  void record_for(InstanceNode set);
  void record_for(CUgraphNode node);
  bool recording() const { return recording_ != nullptr; }

  void name(CUdeviceptr address) {
    if (recording_ != nullptr) [[unlikely]]
      return record(address);
    session_.engine.name(pins_, address);
  }
  void name_words(const void* words, size_t bytes);
  // It may wait for what the host or another device does later.
  void may_wait() {
    waits_ = true;
    if (recording_ != nullptr) record_wait();
  }
  Engine& engine() { return session_.engine; }
  Session& session() { return session_; }
  ThreadPins& pins() { return pins_; }
  bool names_something() const { return pins_.collected != 0; }

  // All that was named is on the device and stays while the operation is submitted. Not
  // CUDA_SUCCESS: answer with that, the operation is over.
  CUresult begin(CUstream stream, bool per_thread) {
    if (recording_ != nullptr) [[unlikely]]
      return begin_recording();
    stream_ = session_.stream(stream, per_thread);
    if (!is_followed(stream_)) [[unlikely]] {
      if (!names_something()) return CUDA_SUCCESS;
      if (!follow(stream, per_thread)) return CUDA_SUCCESS;
    }
    const Status status = session_.engine.begin_op(pins_, stream_);
    if (status != Status::kOk) [[unlikely]]
      return refuse(status);
    if (table_bytes_ != 0) session_.engine.data_copied(table_to_, table_from_, table_bytes_);
    if (waits_) [[unlikely]]
      session_.engine.external_wait_begin(stream_);
    return CUDA_SUCCESS;
  }
  // With the driver's answer, which it returns.
  CUresult end(CUresult result) {
    if (recording_ != nullptr) [[unlikely]]
      return end_recording(result);
    statistics().operations.add();
    if (is_followed(stream_)) {
      if (waits_) [[unlikely]]
        session_.engine.external_wait_end(stream_);
      session_.engine.end_op(pins_, stream_);
    } else {
      pins_.clear();
    }
    if (result != CUDA_SUCCESS) [[unlikely]]
      note_result(result);
    return result;
  }
  // The operation copies this host memory, or memory of ours, to that address of ours: it may be a
  // table of pointers.
  void copies_table(CUdeviceptr to, const void* from, size_t bytes) {
    table_to_ = to;
    table_from_ = from;
    table_bytes_ = bytes;
  }
  // Nothing is to be done after all.
  void drop() { pins_.clear(); }
  StreamIndex stream() const { return stream_; }

  void record_table(const TableCopy& copy);
  void name_table(const TableCopy& copy);

 private:
  struct Recording;
  Recording& start_recording();
  void forget_recording();
  void record(CUdeviceptr address);
  void record_wait();
  CUresult begin_recording();
  CUresult end_recording(CUresult result);
  bool follow(CUstream stream, bool per_thread);
  CUresult refuse(Status status);

  Session& session_;
  ThreadPins& pins_;
  Recording* recording_ = nullptr;
  bool waits_ = false;
  StreamIndex stream_ = kForeignStream;
  CUdeviceptr table_to_ = 0;
  const void* table_from_ = nullptr;
  size_t table_bytes_ = 0;
};

// Most hooks: `name(operation)` names what is used; CUDA_SUCCESS, or what to answer instead of
// forwarding.
template <Entry E, typename Name, typename... Arguments>
inline CUresult operate(CUstream stream, Name&& name, Arguments... arguments) {
  Session* active = session();
  if (active == nullptr) return real<E>()(arguments...);
  Operation operation(*active);
  if (captures_watched()) [[unlikely]]
    operation.look_for_capture(stream, RealType<E>::per_thread);
  if (const CUresult wrong = name(operation); wrong != CUDA_SUCCESS) {
    operation.drop();
    return wrong;
  }
  if (const CUresult refused = operation.begin(stream, RealType<E>::per_thread);
      refused != CUDA_SUCCESS)
    return refused;
  return operation.end(with_device_memory(active, 0, [&] { return real<E>()(arguments...); }));
}

// The driver's code for what the engine says.
CUresult code_of(Status status);
// One line, now and then, that says who holds the memory.
void say_out_of_memory(Session& session, uint64_t wanted_bytes);

}  // namespace offload
