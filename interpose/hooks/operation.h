// SPDX-License-Identifier: Apache-2.0
#pragma once
// One operation of the program on its way through: name what it uses, begin, forward, end. On a
// stream that captures nothing happens now: what it names is brought home, and stays there while
// the graph lives. So it is for a node that the program makes by hand. It may use memory of several
// devices (several_devices.cpp), or tables in memory that is not ours (foreign_tables.h); where
// there is neither, that costs a load and a branch.

#include "interpose/driver/table.h"
#include "interpose/graphs/captures.h"
#include "interpose/hooks/device_memory.h"
#include "interpose/life/sessions.h"
#include "interpose/naming/foreign_tables.h"

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
  explicit Operation(Session& first) : Operation(first, kUsual) {
    Session* second = next_of(first);
    if (second != nullptr || !foreign_tables().empty()) [[unlikely]]
      look_at_all(second);
  }
  // One that is known to be usual (operations_look()), begun and ended by begin_usual() and
  // end_usual().
  enum Kind : uint8_t { kUsual };
  Operation(Session& first, Kind) : session_(first), own_(first.of_thread()), pins_(*own_.pins) {}
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
    if (unusual_) [[unlikely]]
      return name_unusually(address);
    session_.engine.name(pins_, address);
  }
  void name_words(const void* words, size_t bytes);
  // Calls `use` with what gives each word to the operation; for many of them.
  template <typename Use>
  void with_naming(Use&& use) {
    if (unusual_) [[unlikely]]
      return use([this](Address word) { name_unusually(word); });
    const Engine& engine = session_.engine;
    ThreadPins& pins = pins_;
    use([&engine, &pins](Address word) { engine.name(pins, word); });
  }
  // It may wait for what the host or another device does later.
  void may_wait() {
    waits_ = true;
    if (recording_ != nullptr) record_wait();
  }
  // Whose memory that is, of those that the operation looks at; null: nobody's.
  Session* owner(CUdeviceptr address) {
    if (session_.engine.owns(address)) return &session_;
    return count_ != 0 ? other_owner(address) : nullptr;
  }
  Layouts& layouts() { return session_.layouts; }
  // Whether there may be memory of ours to name: not where the driver serves all.
  bool may_name() const { return count_ > 1 || !session_.native; }

  // All that was named is on the device and stays while the operation is submitted. Not
  // CUDA_SUCCESS: answer with that, the operation is over.
  CUresult begin(CUstream stream, bool per_thread) {
    if (recording_ != nullptr) return begin_recording();
    return unusual_ ? begin_on_several(stream, per_thread) : begin_usual(stream, per_thread);
  }
  CUresult begin_usual(CUstream stream, bool per_thread) {
    stream_ = session_.stream(own_, stream, per_thread);
    if (!is_followed(stream_)) [[unlikely]] {
      if (pins_.collected == 0 && !waits_) return CUDA_SUCCESS;
      if (!follow(stream, per_thread)) return CUDA_SUCCESS;
    }
    const Status status = session_.engine.begin_op(pins_, stream_);
    if (status != Status::kOk) [[unlikely]]
      return refuse(status, session_);
    if (table_.bytes != 0) session_.engine.data_copied(table_.to, table_.from, table_.bytes);
    if (waits_) [[unlikely]]
      session_.engine.external_wait_begin(stream_);
    return CUDA_SUCCESS;
  }
  // With the driver's answer, which it returns.
  CUresult end(CUresult result) {
    if (recording_ != nullptr) return end_recording(result);
    return unusual_ ? end_on_several(result) : end_usual(result);
  }
  CUresult end_usual(CUresult result) {
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
  void copies_table(CUdeviceptr to, const void* from, size_t bytes) { table_ = {to, from, bytes}; }
  // The same where the memory at that address is not ours.
  void copies_foreign_table(const TableCopy& copy);
  // Nothing is to be done after all.
  void drop();

  void record_table(const TableCopy& copy);
  void name_table(const TableCopy& copy);
  // For each table that the launch of a graph copies: before begin(), which gives the answer if
  // that is not CUDA_SUCCESS, and behind it.
  CUresult expect_table(const TableCopy& copy) {
    return count_ != 0 && copy.bytes != 0 ? keep_elsewhere(copy) : CUDA_SUCCESS;
  }
  void table_copied(const TableCopy& copy);

 private:
  struct Recording;
  // What the operation has to do with one of several devices.
  struct Part {
    Session* session;
    ThreadPins* pins;
    StreamIndex stream;
    bool used;  // a word of it lies in that device's window
  };

  Recording& start_recording();
  void forget_recording();
  void name_unusually(CUdeviceptr address);
  bool name_own(CUdeviceptr address);
  void name_foreign(CUdeviceptr address, int level);
  OwnVector<Address> words_of(const TableCopy& copy);
  void keep_all(const OwnVector<Address>& words);
  void record(CUdeviceptr address);
  void record_wait();
  CUresult begin_recording();
  CUresult end_recording(CUresult result);
  bool follow(CUstream stream, bool per_thread);
  static CUresult refuse(Status status, Session& session);

  // several_devices.cpp
  void look_at_all(Session* second);
  Session* other_owner(CUdeviceptr address);
  bool find_streams(CUstream stream, bool per_thread);
  CUresult begin_each();
  CUresult begin_on_several(CUstream stream, bool per_thread);
  CUresult end_on_several(CUresult result);
  CUresult keep_elsewhere(const TableCopy& table);

  Session& session_;  // the first
  const ThreadState::OfDevice& own_;
  ThreadPins& pins_;
  Recording* recording_ = nullptr;
  bool unusual_ = false;  // it is recorded, or there are several devices, or foreign tables
  bool waits_ = false;
  StreamIndex stream_ = kForeignStream;
  TableCopy table_{0, nullptr, 0};
  uint32_t count_ = 0;        // of parts; 0: one device, and all is usual
  Part parts_[kMostDevices];  // as many are set
};

// As operate(), while a stream may capture or several devices are managed.
template <Entry E, typename Name, typename... Arguments>
[[gnu::noinline]] CUresult operate_unusually(Session& first, CUstream stream, Name& name,
                                             Arguments... arguments) {
  Operation operation(first);
  if (captures_watched()) operation.look_for_capture(stream, RealType<E>::per_thread);
  if (const CUresult wrong = name(operation); wrong != CUDA_SUCCESS) {
    operation.drop();
    return wrong;
  }
  if (const CUresult refused = operation.begin(stream, RealType<E>::per_thread);
      refused != CUDA_SUCCESS)
    return refused;
  return operation.end(with_device_memory(0, [&] { return real<E>()(arguments...); }));
}

// Most hooks: `name(operation)` names what is used; CUDA_SUCCESS, or what to answer instead of
// forwarding.
template <Entry E, typename Name, typename... Arguments>
inline CUresult operate(CUstream stream, Name&& name, Arguments... arguments) {
  Session* active = session();
  if (active == nullptr) return real<E>()(arguments...);
  if (operations_look()) [[unlikely]]
    return operate_unusually<E>(*active, stream, name, arguments...);
  Operation operation(*active, Operation::kUsual);
  if (const CUresult wrong = name(operation); wrong != CUDA_SUCCESS) {
    operation.drop();
    return wrong;
  }
  if (const CUresult refused = operation.begin_usual(stream, RealType<E>::per_thread);
      refused != CUDA_SUCCESS)
    return refused;
  return operation.end_usual(with_device_memory(0, [&] { return real<E>()(arguments...); }));
}

// The driver's code for what the engine says.
CUresult code_of(Status status);
// One line, now and then, that says who holds the memory.
void say_out_of_memory(Session& session, uint64_t wanted_bytes);

}  // namespace offload
