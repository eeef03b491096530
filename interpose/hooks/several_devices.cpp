// SPDX-License-Identifier: Apache-2.0
// An operation where several devices are managed. It may name memory of more than one: all of it is
// at home and pinned before it is forwarded, its stream waits in each engine for what fills it, and
// each engine notes its use.
//
// No two threads wait for each other in two engines: all begin in them in one order, that of the
// list of sessions. Who waits in one drops its pins there, and holds what it has pinned in earlier
// ones only; whom it waits for has begun in all and is being forwarded, or waits in a later one.

#include <cstring>

#include "interpose/hooks/operation.h"
#include "interpose/rules.h"

namespace offload {

void Operation::look_at_all(Session* second) {
  unusual_ = true;
  parts_[count_++] = {&session_, &pins_, kForeignStream, false};
  if (!obeys(Rule::kAllDevicesAreLookedAt)) second = nullptr;
  for (Session* each = second; each != nullptr && count_ < kMostDevices; each = next_of(*each))
    parts_[count_++] = {each, &each->pins(), kForeignStream, false};
}

Session* Operation::other_owner(CUdeviceptr address) {
  for (uint32_t i = 1; i < count_; ++i) {
    if (parts_[i].session->engine.owns(address)) return parts_[i].session;
  }
  return nullptr;
}

// What the stream is to each engine. One that waits for what the host does later may be waited for
// by streams of any device, so each is told. False: it is one too many for one of them.
bool Operation::find_streams(CUstream stream, bool per_thread) {
  bool all = true;
  for (uint32_t i = 0; i < count_; ++i) {
    Part& part = parts_[i];
    part.stream = part.session->stream(stream, per_thread);
    if (part.stream == kForeignStream && (part.used || waits_))
      part.stream = part.session->follow(stream, per_thread);
    all = all && (part.stream != kUncountedStream || !(part.used || waits_));
    if (!is_followed(part.stream)) part.pins->clear();
  }
  return all;
}

// What has begun where another device refuses is ended, as if it had been a use.
CUresult Operation::begin_each() {
  for (uint32_t i = 0; i < count_; ++i) {
    Part& part = parts_[i];
    if (!is_followed(part.stream)) continue;
    const Status status = part.session->engine.begin_op(*part.pins, part.stream);
    if (status == Status::kOk) continue;
    for (uint32_t begun = 0; begun < i; ++begun) {
      const Part& other = parts_[begun];
      if (is_followed(other.stream)) other.session->engine.end_op(*other.pins, other.stream);
    }
    drop();
    return refuse(status, *part.session);
  }
  return CUDA_SUCCESS;
}

CUresult Operation::begin_on_several(CUstream stream, bool per_thread) {
  if (const CUresult refused = expect_table(table_); refused != CUDA_SUCCESS) return refused;
  if (!find_streams(stream, per_thread)) {
    drop();
    give_up(Reason::too_many_streams,
            "the program has more streams at once than liboffload can follow, or one that the "
            "driver says nothing of");
    return CUDA_SUCCESS;
  }
  if (const CUresult refused = begin_each(); refused != CUDA_SUCCESS) return refused;
  if (table_.bytes != 0) table_copied(table_);
  for (uint32_t i = 0; i < count_ && waits_; ++i) {
    if (is_followed(parts_[i].stream))
      parts_[i].session->engine.external_wait_begin(parts_[i].stream);
  }
  return CUDA_SUCCESS;
}

CUresult Operation::end_on_several(CUresult result) {
  statistics().operations.add();
  for (uint32_t i = 0; i < count_; ++i) {
    const Part& part = parts_[i];
    if (!is_followed(part.stream)) {
      part.pins->clear();
      continue;
    }
    if (waits_) part.session->engine.external_wait_end(part.stream);
    part.session->engine.end_op(*part.pins, part.stream);
  }
  if (result != CUDA_SUCCESS) note_result(result);
  return result;
}

// A table names memory of its own device when it is used. What it holds of others stays for good.
// Nothing is pinned yet.
CUresult Operation::keep_elsewhere(const TableCopy& table) {
  const Session* to = owner(table.to);
  if (to == nullptr || !obeys(Rule::kTablesOfOthersStay))
    return CUDA_SUCCESS;  // it names memory of all devices (foreign_tables.h)
  const auto from = reinterpret_cast<CUdeviceptr>(table.from);
  OwnVector<Address> words;
  if (const Session* source = owner(from); source != nullptr) {
    source->engine.read_tables(from, from + table.bytes, &words);
  } else {
    const auto* at = static_cast<const unsigned char*>(table.from);
    for (size_t i = 0; i + sizeof(Address) <= table.bytes; i += sizeof(Address)) {
      Address word;
      std::memcpy(&word, at + i, sizeof(word));
      words.push_back(word);
    }
  }
  for (const Address word : words) {
    Session* named = owner(word);
    if (named == nullptr || named == to) continue;
    const Status status = named->engine.keep(word, named->pins());
    named->pins().withdraw();
    if (status == Status::kOk) continue;
    drop();
    return refuse(status, *named);
  }
  return CUDA_SUCCESS;
}

void Operation::table_copied(const TableCopy& copy) {
  Session* to = owner(copy.to);
  if (to == nullptr) return copies_foreign_table(copy);
  const Session* from = owner(reinterpret_cast<CUdeviceptr>(copy.from));
  if (from == nullptr || from == to) {
    to->engine.data_copied(copy.to, copy.from, copy.bytes);
  } else {
    to->engine.forget_tables(copy.to, copy.to + copy.bytes);
  }
}

}  // namespace offload
