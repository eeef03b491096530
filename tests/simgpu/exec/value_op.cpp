// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/value_op.h"

#include <cstring>
#include <map>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/exec/device_fault.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/memory/address_space.h"

namespace simgpu {

namespace {

// What was finished when a flag was last written, by the place of the flag.
std::map<std::byte*, VectorClock>& flag_clocks() {
  static auto* clocks = new std::map<std::byte*, VectorClock>;
  return *clocks;
}

std::byte* place(const Stream& stream, uintptr_t address, size_t bytes, bool write) {
  std::vector<Segment> segments;
  uintptr_t fault = 0;
  const bool found =
      address_space().translate(stream.context->device, address, bytes, write, &segments, &fault);
  return found ? segments[0].data() : nullptr;
}

}  // namespace

bool WaitValueOp::ready() const {
  if (stream->context->sticky != CUDA_SUCCESS) return true;  // nothing happens any more
  const std::byte* data = place(*stream, address_, bytes_, false);
  if (data == nullptr) return true;  // run() reports it
  uint64_t now = 0;
  if (bytes_ == 4) {
    now = __atomic_load_n(reinterpret_cast<const uint32_t*>(data), __ATOMIC_ACQUIRE);
  } else {
    now = __atomic_load_n(reinterpret_cast<const uint64_t*>(data), __ATOMIC_ACQUIRE);
  }
  const uint64_t mask = bytes_ == 4 ? 0xffffffffU : ~uint64_t{0};
  switch (flags_ & 3U) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return bytes_ == 4 ? static_cast<int32_t>(static_cast<uint32_t>(now - value_)) >= 0
                         : static_cast<int64_t>(now - value_) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == (value_ & mask);
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value_) != 0;
    default:
      return (~(now | value_) & mask) != 0;
  }
}

void WaitValueOp::run(Lock&) {
  std::byte* data = place(*stream, address_, bytes_, false);
  if (data == nullptr) return device_fault(*stream->context, describe(), address_);
  const auto it = flag_clocks().find(data);
  if (it != flag_clocks().end()) stream->clock.join(it->second);
  // A kernel or a copy may have set it.
  const Mapping* mapping = address_space().find(address_);
  const Use writer = checker().last_writer(*mapping, address_);
  if (writer.number != 0) engine().join_clock_at(&stream->clock, writer.agent, writer.number);
  // A host thread may have set it, and that thread may know anything.
  if (options().knowledge == Knowledge::kShared) {
    if (const ClockRef& news = engine().knowledge().current()) stream->clock.join(*news);
  }
}

void WriteValueOp::run(Lock&) {
  if (allotment_ != nullptr) first_use(*allotment_, stream->context->device);
  std::byte* data = place(*stream, address_, bytes_, true);
  if (data == nullptr) return device_fault(*stream->context, describe(), address_);
  if (bytes_ == 4) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(data), static_cast<uint32_t>(value_),
                     __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<uint64_t*>(data), value_, __ATOMIC_RELEASE);
  }
  const Mapping* mapping = address_space().find(address_);
  checker().flag_written(*mapping, address_, bytes_);
  if (!checker().on()) return;
  flag_clocks()[data] = stream->clock;
  if (mapping->device < 0) engine().knowledge().learn_by_all(stream->clock);
}

}  // namespace simgpu
