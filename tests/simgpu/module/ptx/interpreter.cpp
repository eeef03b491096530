// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/ptx/interpreter.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/simgpu/module/ptx/alu.h"

namespace simgpu::ptx {
namespace {

constexpr unsigned kWarp = 32;

enum class Stop { kExit, kBarrier, kFailed };

struct Thread {
  std::vector<uint64_t> slots;
  std::vector<unsigned char> local;
  size_t at = 0;
  bool done = false;
};

class Machine {
 public:
  Machine(const Program& program, const SimgpuLaunch& launch, void* const* arguments,
          AccessSink& sink, uint64_t limit)
      : program_(program), launch_(launch), sink_(sink), left_(limit) {
    parameters_.resize(program.parameter_bytes);
    for (size_t i = 0; i < program.parameters.size(); ++i) {
      const auto& parameter = program.parameters[i];
      if (parameter.size == 0) continue;
      std::memcpy(parameters_.data() + parameter.offset, arguments[i], parameter.size);
    }
    shared_.resize(program.shared_bytes + launch.shared_bytes);
    // Without barriers one thread's state serves them all in turn.
    threads_.resize(program.has_barrier ? block_size() : 1);
  }

  bool run() {
    unsigned block[3];
    for (block[2] = 0; block[2] < launch_.grid[2]; ++block[2]) {
      for (block[1] = 0; block[1] < launch_.grid[1]; ++block[1]) {
        for (block[0] = 0; block[0] < launch_.grid[0]; ++block[0]) {
          if (!run_block(block)) return false;
        }
      }
    }
    return true;
  }

 private:
  size_t block_size() const {
    return size_t{launch_.block[0]} * launch_.block[1] * launch_.block[2];
  }

  bool run_block(const unsigned (&block)[3]) {
    std::fill(shared_.begin(), shared_.end(), static_cast<unsigned char>(0));
    const size_t count = block_size();
    if (!program_.has_barrier) {
      for (size_t i = 0; i < count; ++i) {
        start(threads_[0], block, i);
        if (run_thread(threads_[0]) == Stop::kFailed) return false;
      }
      return true;
    }
    for (size_t i = 0; i < count; ++i) start(threads_[i], block, i);
    // One phase: every living thread as far as the next barrier. A thread that has left counts as
    // arrived.
    for (bool waiting = true; waiting;) {
      waiting = false;
      for (size_t i = 0; i < count; ++i) {
        if (threads_[i].done) continue;
        const Stop stop = run_thread(threads_[i]);
        if (stop == Stop::kFailed) return false;
        threads_[i].done = stop == Stop::kExit;
        waiting |= stop == Stop::kBarrier;
      }
    }
    return true;
  }

  void start(Thread& thread, const unsigned (&block)[3], size_t index) const {
    thread.slots.assign(static_cast<size_t>(program_.slots), 0);
    thread.local.assign(program_.local_bytes, 0);
    thread.at = 0;
    thread.done = false;
    const auto flat = static_cast<unsigned>(index);
    const unsigned tid[3] = {flat % launch_.block[0], flat / launch_.block[0] % launch_.block[1],
                             flat / launch_.block[0] / launch_.block[1]};
    for (size_t axis = 0; axis < 3; ++axis) {
      thread.slots[kTidX + axis] = tid[axis];
      thread.slots[kNtidX + axis] = launch_.block[axis];
      thread.slots[kCtaidX + axis] = block[axis];
      thread.slots[kNctaidX + axis] = launch_.grid[axis];
    }
    thread.slots[kLaneId] = flat % kWarp;
    thread.slots[kWarpId] = flat / kWarp;
    thread.slots[kDynamicSharedSize] = launch_.shared_bytes;
    for (const Constant& constant : program_.constants) {
      thread.slots[static_cast<size_t>(constant.slot)] = constant.value;
    }
  }

  static uint64_t read(const Thread& thread, int32_t slot) {
    return slot == kNoSlot ? 0 : thread.slots[static_cast<size_t>(slot)];
  }
  static void write(Thread& thread, int32_t slot, uint64_t value) {
    if (slot != kNoSlot) thread.slots[static_cast<size_t>(slot)] = value;
  }

  Stop run_thread(Thread& thread) {
    while (true) {
      if (left_-- == 0) {
        left_ = 0;
        return fail("ran into its instruction limit (SIMGPU_PTX_LIMIT)");
      }
      const Instruction& now = program_.code[thread.at++];
      if (now.guard != kNoSlot && (read(thread, now.guard) & 1) == (now.guard_negated ? 1 : 0)) {
        continue;
      }
      switch (now.op) {
        case Op::kExit:
          return Stop::kExit;
        case Op::kBarrier:
          return Stop::kBarrier;
        case Op::kTrap:
          return fail("trapped");
        case Op::kBranch:
          thread.at = now.target;
          break;
        case Op::kFence:
          break;
        case Op::kLoad:
          if (!load(thread, now)) return Stop::kFailed;
          break;
        case Op::kStore:
          if (!store(thread, now)) return Stop::kFailed;
          break;
        case Op::kAtomic:
          if (!atomic(thread, now)) return Stop::kFailed;
          break;
        case Op::kCompare:
          set_predicate(thread, now);
          break;
        case Op::kConvertAddress:
          convert_address(thread, now);
          break;
        case Op::kPack:
          pack(thread, now);
          break;
        case Op::kUnpack:
          unpack(thread, now);
          break;
        default:
          write(thread, now.destination[0],
                alu(now, {read(thread, now.source[0]), read(thread, now.source[1]),
                          read(thread, now.source[2]), read(thread, now.source[3])}));
      }
    }
  }

  Stop fail(const char* what) const {
    std::fprintf(stderr, "simgpu: kernel %s %s\n", program_.name.c_str(), what);
    return Stop::kFailed;
  }

  // Where the bytes of an access are in this process, or null: not allowed.
  unsigned char* resolve(Thread& thread, const Instruction& now, size_t bytes, bool write) {
    uint64_t address = read(thread, now.base) + static_cast<uint64_t>(now.offset);
    Space space = now.space;
    if (space == Space::kGeneric) {
      const uint64_t tag = address & kTagMask;
      space = tag == kSharedTag  ? Space::kShared
              : tag == kLocalTag ? Space::kLocal
                                 : Space::kGlobal;
      if (space != Space::kGlobal) address &= ~kTagMask;
    }
    switch (space) {
      case Space::kParameter:
        return inside(parameters_, address, bytes, "parameter");
      case Space::kLocal:
        return inside(thread.local, address, bytes, "local");
      case Space::kShared:
        if (address >= kDynamicShared) address += program_.shared_bytes - kDynamicShared;
        return inside(shared_, address, bytes, "shared");
      default:
        break;
    }
    if (!sink_.access(address, bytes, write)) return nullptr;
    return static_cast<unsigned char*>(
        simgpu_pointer(&launch_, reinterpret_cast<const void*>(address)));
  }

  unsigned char* inside(std::vector<unsigned char>& memory, uint64_t address, size_t bytes,
                        const char* what) const {
    if (address <= memory.size() && bytes <= memory.size() - address) {
      return memory.data() + address;
    }
    std::fprintf(stderr, "simgpu: kernel %s left its %s memory: %zu bytes at %llu of %zu\n",
                 program_.name.c_str(), what, bytes, static_cast<unsigned long long>(address),
                 memory.size());
    return nullptr;
  }

  bool load(Thread& thread, const Instruction& now) {
    const size_t bytes = bytes_of(now.type);
    const unsigned char* from = resolve(thread, now, bytes * now.lanes, false);
    if (from == nullptr) return false;
    for (size_t i = 0; i < now.lanes; ++i) {
      uint64_t value = 0;
      std::memcpy(&value, from + i * bytes, bytes);
      write(thread, now.destination[i], extend(now.type, value));
    }
    return true;
  }

  bool store(Thread& thread, const Instruction& now) {
    const size_t bytes = bytes_of(now.type);
    unsigned char* to = resolve(thread, now, bytes * now.lanes, true);
    if (to == nullptr) return false;
    for (size_t i = 0; i < now.lanes; ++i) {
      const uint64_t value = read(thread, now.source[i]);
      std::memcpy(to + i * bytes, &value, bytes);
    }
    return true;
  }

  bool atomic(Thread& thread, const Instruction& now) {
    const size_t bytes = bytes_of(now.type);
    if (resolve(thread, now, bytes, false) == nullptr) return false;
    unsigned char* at = resolve(thread, now, bytes, true);
    if (at == nullptr) return false;
    uint64_t old = 0;
    std::memcpy(&old, at, bytes);
    const uint64_t result =
        atomic_result(now, old, read(thread, now.source[0]), read(thread, now.source[1]));
    std::memcpy(at, &result, bytes);
    write(thread, now.destination[0], extend(now.type, old));
    return true;
  }

  static void set_predicate(Thread& thread, const Instruction& now) {
    const bool first = compare(now, read(thread, now.source[0]), read(thread, now.source[1]));
    const bool other = ((read(thread, now.source[2]) & 1) != 0) != now.combine_negated;
    const auto combined = [&](bool value) -> uint64_t {
      switch (now.combine) {
        case Combine::kAnd:
          return value && other;
        case Combine::kOr:
          return value || other;
        case Combine::kXor:
          return value != other;
        case Combine::kNone:
          break;
      }
      return value;
    };
    write(thread, now.destination[0], combined(first));
    write(thread, now.destination_complement, combined(!first));
  }

  static void convert_address(Thread& thread, const Instruction& now) {
    uint64_t address = read(thread, now.source[0]);
    const uint64_t tag = now.space == Space::kShared  ? kSharedTag
                         : now.space == Space::kLocal ? kLocalTag
                                                      : 0;
    if (tag != 0) address = now.to_space ? address & ~kTagMask : address | tag;
    write(thread, now.destination[0], address);
  }

  static void pack(Thread& thread, const Instruction& now) {
    const size_t bits = bytes_of(now.type) * 8 / now.lanes;
    const uint64_t mask = (uint64_t{1} << bits) - 1;  // at least two parts, so at most 32 bits
    uint64_t value = 0;
    for (size_t i = 0; i < now.lanes; ++i)
      value |= (read(thread, now.source[i]) & mask) << (i * bits);
    write(thread, now.destination[0], value);
  }

  static void unpack(Thread& thread, const Instruction& now) {
    const size_t bits = bytes_of(now.type) * 8 / now.lanes;
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    const uint64_t value = read(thread, now.source[0]);
    for (size_t i = 0; i < now.lanes; ++i) {
      write(thread, now.destination[i], value >> (i * bits) & mask);
    }
  }

  const Program& program_;
  const SimgpuLaunch& launch_;
  AccessSink& sink_;
  uint64_t left_;
  std::vector<unsigned char> parameters_;
  std::vector<unsigned char> shared_;
  std::vector<Thread> threads_;
};

}  // namespace

std::string find_unsupported(const Program& program) {
  if (!program.unsupported.empty()) return program.unsupported;
  for (const Instruction& instruction : program.code) {
    if (!alu_supports(instruction)) return "an operation at a type that has none";
    const bool vector = instruction.op == Op::kPack || instruction.op == Op::kUnpack;
    if (vector && instruction.lanes < 2) return "a vector of one element";
  }
  return {};
}

bool interpret(const Program& program, const SimgpuLaunch& launch, void* const* arguments,
               AccessSink& sink, uint64_t instruction_limit) {
  return Machine(program, launch, arguments, sink, instruction_limit).run();
}

}  // namespace simgpu::ptx
