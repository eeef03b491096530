// SPDX-License-Identifier: Apache-2.0
#include "interpose/hooks/operation.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "interpose/driver/errors.h"
#include "interpose/rules.h"
#include "profiler/base/log.h"
#include "profiler/base/units.h"

namespace offload {

// What becomes of an operation that does not run now.
struct Operation::Recording {
  enum class For : uint8_t { kNothing, kCapture, kNewNode, kInstance, kNode } what = For::kNothing;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  const CUgraphNode* made = nullptr;
  NodeNames names;
  GraphNames::Part part;  // of a node that is not captured
};

Operation::Recording& Operation::start_recording() {
  unusual_ = true;
  recording_ = own_new<Recording>();
  return *recording_;
}

void Operation::forget_recording() {
  recording_->~Recording();
  own_free(recording_);
}

void Operation::look_for_capture(CUstream stream, bool per_thread) {
  stream = explicit_stream(stream, per_thread);
  const CaptureState state = look_at(stream);
  if (state.kind == CaptureState::Kind::kNone) return stream_is_free(stream);
  Recording& recording = start_recording();
  if (state.kind == CaptureState::Kind::kRefuses) return;
  recording.what = Recording::For::kCapture;
  recording.graph = state.graph;
}

void Operation::record_for(NewNode made) {
  Recording& recording = start_recording();
  recording.what = Recording::For::kNewNode;
  recording.graph = made.graph;
  recording.made = made.made;
}

void Operation::record_for(InstanceNode set) {
  Recording& recording = start_recording();
  recording.what = Recording::For::kInstance;
  recording.exec = set.exec;
  recording.node = set.node;
}

void Operation::record_for(CUgraphNode node) {
  Recording& recording = start_recording();
  recording.what = Recording::For::kNode;
  recording.node = node;
}

// What foreign tables name now is held; what they name later, each launch looks for.
void Operation::record(CUdeviceptr address) {
  OwnVector<Address>& words = recording_->names.words;
  if (owner(address) != nullptr) return words.push_back(address);
  if (!foreign_tables().may_name(address)) return;
  words.push_back(address);
  foreign_tables().read(address, address + ForeignTables::kReach, &words);
}

bool Operation::name_own(CUdeviceptr address) {
  for (uint32_t i = 0; i < count_; ++i) {
    Part& part = parts_[i];
    if (!part.session->engine.owns(address)) continue;
    part.used = true;
    part.session->engine.name(*part.pins, address);
    return true;
  }
  return false;
}

void Operation::name_unusually(CUdeviceptr address) {
  if (recording_ != nullptr) return record(address);
  if (!name_own(address) && foreign_tables().may_name(address)) name_foreign(address, 0);
}

void Operation::name_foreign(CUdeviceptr address, int level) {
  constexpr int kLevels = 4;  // of tables of tables
  OwnVector<Address> words;
  foreign_tables().read(address, address + ForeignTables::kReach, &words);
  for (const Address word : words) {
    if (!name_own(word) && level + 1 < kLevels) name_foreign(word, level + 1);
  }
}

// Those that name something.
OwnVector<Address> Operation::words_of(const TableCopy& copy) {
  OwnVector<Address> words;
  const auto from = reinterpret_cast<CUdeviceptr>(copy.from);
  if (const Session* source = owner(from); source != nullptr) {
    source->engine.read_tables(from, from + copy.bytes, &words);
    return words;
  }
  const auto* at = static_cast<const unsigned char*>(copy.from);
  for (size_t i = 0; i + sizeof(Address) <= copy.bytes; i += sizeof(Address)) {
    Address word;
    std::memcpy(&word, at + i, sizeof(word));
    if (owner(word) != nullptr || foreign_tables().may_name(word)) words.push_back(word);
  }
  return words;
}

// Nothing is pinned yet.
void Operation::keep_all(const OwnVector<Address>& words) {
  static constinit std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed)) {
    log_info(
        "the program has many tables of pointers in memory that is not liboffload's: what they "
        "point to is not moved any more");
  }
  for (const Address word : words) {
    Session* named = owner(word);
    if (named == nullptr) continue;
    named->engine.keep(word, named->pins());
    named->pins().withdraw();
  }
}

void Operation::copies_foreign_table(const TableCopy& copy) {
  if (recording_ != nullptr) return copies_table(copy.to, copy.from, copy.bytes);
  OwnVector<Address> words = words_of(copy);
  ForeignTables& tables = foreign_tables();
  if (words.empty()) {
    if (!tables.empty()) tables.forget(copy.to, copy.to + copy.bytes);
    return;
  }
  if (!tables.set(copy.to, copy.to + copy.bytes, words)) keep_all(words);
  static constinit std::atomic<bool> looked_for{false};
  if (!looked_for.exchange(true, std::memory_order_relaxed))
    operations_look_.fetch_add(1, std::memory_order_relaxed);
}

void Operation::record_wait() {
  recording_->names.waits = true;
}

void Operation::record_table(const TableCopy& copy) {
  if (recording_ == nullptr) return;
  recording_->names.copies.push_back(copy);
  name_table(copy);
}

// Its words now, if the host can read them. What it holds when a graph is launched is looked at
// then.
void Operation::name_table(const TableCopy& copy) {
  if (owner(reinterpret_cast<CUdeviceptr>(copy.from)) == nullptr) name_words(copy.from, copy.bytes);
}

void Operation::name_words(const void* words, size_t bytes) {
  if (!unusual_) return session_.engine.name_words(pins_, words, bytes);
  const auto* at = static_cast<const unsigned char*>(words);
  for (size_t i = 0; i + sizeof(Address) <= bytes; i += sizeof(Address)) {
    Address word;
    std::memcpy(&word, at + i, sizeof(word));
    name_unusually(word);
  }
}

CUresult Operation::begin_recording() {
  if (table_.bytes != 0) record_table(table_);
  const NodeNames& names = recording_->names;
  Status status = Status::kOk;
  switch (recording_->what) {
    case Recording::For::kNothing:  // the driver refuses it
      break;
    case Recording::For::kCapture:
      if (obeys(Rule::kCapturedIsHeld)) status = session_.graphs.record(recording_->graph, names);
      break;
    case Recording::For::kNewNode:
    case Recording::For::kInstance:
    case Recording::For::kNode:
      if (obeys(Rule::kNodesAreHeld)) status = GraphNames::prepare(names, &recording_->part);
      break;
  }
  if (status != Status::kOk) return refuse(status, session_);
  return CUDA_SUCCESS;
}

// A node that the driver has refused keeps what it was.
CUresult Operation::end_recording(CUresult result) {
  note_result(result);
  GraphNames& graphs = session_.graphs;
  GraphNames::Part part = std::move(recording_->part);
  if (result != CUDA_SUCCESS) {
    GraphNames::drop(std::move(part));
  } else if (recording_->what == Recording::For::kNewNode) {
    graphs.set(recording_->graph, *recording_->made, std::move(part));
  } else if (recording_->what == Recording::For::kInstance) {
    graphs.set(recording_->exec, recording_->node, std::move(part));
  } else if (recording_->what == Recording::For::kNode) {
    graphs.set(recording_->node, std::move(part));
  }
  return result;
}

// Streams of other contexts, of this device or of a peer, are put in order with ours from their
// first use of our memory on. What the driver is about to refuse needs no order.
bool Operation::follow(CUstream stream, bool per_thread) {
  if (stream_ == kForeignStream && obeys(Rule::kOtherContextsAreFollowed))
    stream_ = session_.follow(stream, per_thread);
  if (is_followed(stream_)) return true;
  pins_.clear();
  if (stream_ == kUncountedStream) {
    give_up(Reason::too_many_streams,
            "the program has more streams at once than liboffload can follow, or one that the "
            "driver says nothing of");
  }
  return false;
}

void Operation::drop() {
  pins_.clear();
  for (uint32_t i = 0; i < count_; ++i) parts_[i].pins->clear();
}

CUresult Operation::refuse(Status status, Session& session) {
  if (status == Status::kOutOfMemory && !context_lost()) say_out_of_memory(session, 0);
  return code_of(status);
}

CUresult code_of(Status status) {
  if (const CUresult lost = lost_to(); lost != CUDA_SUCCESS) [[unlikely]]
    return lost;
  switch (status) {
    case Status::kOk:
      return CUDA_SUCCESS;
    case Status::kNotReady:
      return CUDA_ERROR_NOT_READY;
    case Status::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Status::kInvalid:
    case Status::kNotOurs:
      return CUDA_ERROR_INVALID_VALUE;
    case Status::kError:
      break;
  }
  return last_failure();
}

namespace {

// The end of the line about memory that ran out: what kept more from leaving, and what helps.
void explain(const Session& session, bool too_large, std::span<char> out) {
  const ShortText least = format_size(session.config.min_size_bytes);
  Reason reason{};
  const bool given = statistics().reason_given(&reason);
  const std::string_view sentence = given ? sentence_of(reason) : std::string_view{};
  const int length = static_cast<int>(sentence.size());
  if (!session.config.move) {
    std::snprintf(out.data(), out.size(), "nothing is moved: %.*s", length, sentence.data());
  } else if (session.engine.retired()) {
    std::snprintf(out.data(), out.size(), "nothing is moved any more: %.*s", length,
                  sentence.data());
  } else if (given && reason == Reason::host_memory_exhausted) {
    const ShortText limit = format_size(session.config.host_limit_bytes);
    std::snprintf(
        out.data(), out.size(),
        "host memory for moved buffers is at its limit of %s (OFFLOAD_HOST_LIMIT), a part "
        "of which is kept free for bringing buffers back",
        limit.c_str());
  } else if (given && reason == Reason::pinning_could_wait) {
    std::snprintf(out.data(), out.size(), "%.*s", length, sentence.data());
  } else if (too_large) {
    std::snprintf(out.data(), out.size(), "that is more than the limit alone (OFFLOAD_GPU_LIMIT)");
  } else if (session.config.limit_bytes < session.config.granularity) {
    const ShortText page = format_size(session.config.granularity);
    std::snprintf(out.data(), out.size(),
                  "memory is given out in pages of %s, and the limit (OFFLOAD_GPU_LIMIT) is less",
                  page.c_str());
  } else if (session.counts.host_bytes.peak() == 0) {
    std::snprintf(out.data(), out.size(),
                  "no buffer could leave: all are in use, or smaller than %s (OFFLOAD_MIN_SIZE)",
                  least.c_str());
  } else {
    std::snprintf(out.data(), out.size(),
                  "all that may move has moved; what stays is in use, or smaller than %s "
                  "(OFFLOAD_MIN_SIZE)",
                  least.c_str());
  }
}

}  // namespace

void say_out_of_memory(Session& session, uint64_t wanted_bytes) {
  const uint64_t mapped_bytes = session.engine.mapped_bytes();
  // The limit is lifted once nothing moves any more.
  const uint64_t limit_bytes =
      session.engine.retired() || mapped_bytes > session.config.limit_bytes
          ? std::max(session.config.limit_bytes, session.device.total_bytes)
          : session.config.limit_bytes;
  const ShortText wanted = format_size(wanted_bytes);
  const ShortText limit = format_size(limit_bytes);
  const ShortText live = format_size(session.engine.live_bytes());
  const ShortText mapped = format_size(mapped_bytes);
  const ShortText host = format_size(session.counts.host_bytes.get());
  char why[256];
  explain(session, wanted_bytes > limit_bytes, why);
  log_warn(
      "out of memory: %s%s for %s; of the %s on the GPU %s are mapped; the program's live buffers "
      "are %s, %s of them in host memory; %s",
      wanted_bytes == 0 ? "no room" : wanted.c_str(), wanted_bytes == 0 ? "" : " asked",
      wanted_bytes == 0 ? "what one operation names" : "a buffer", limit.c_str(), mapped.c_str(),
      live.c_str(), host.c_str(), why);
}

}  // namespace offload
