// SPDX-License-Identifier: Apache-2.0
#pragma once
// The happens-before checker. The executor tells it, in the order of execution, what each operation
// reads and writes in physical memory; two accesses that no stream order, event, synchronisation or
// host knowledge orders are a race, however well the run went. Rules:
// - kernels and fills: any unordered pair with a write is reported, at once;
// - a copy whose *source* in device memory is written meanwhile is no error yet (a cancelled
// eviction does that): what it wrote
//   is tainted. So is memory that nobody has written. Copies carry taint along; a kernel that reads
//   it, or a copy that takes it to pageable memory, is reported. Taint reaches back: if the write
//   comes after the copy, what was made from the copy until then is found too;
// - a copy whose *target* is used meanwhile, and host memory that a copy writes while another uses
// it: reported at once;
// - a mapping that is taken away while the calling thread does not know its last uses to be
// finished: reported. Driver's lock. Costs nothing when off.

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "tests/simgpu/check/access_map.h"
#include "tests/simgpu/check/tags.h"
#include "tests/simgpu/check/vector_clock.h"
#include "tests/simgpu/memory/address_space.h"

namespace simgpu {

struct Stream;

enum class Content : uint8_t {
  kUnwritten,  // device memory, fresh
  kUnknown,    // the host may have written it
};

class Checker {
 public:
  Checker();
  bool on() const { return on_; }

  // An operation begins to take effect; the calls below until the next begin are its.
  void begin(const Stream& stream, OpClass kind, std::string_view name);
  void read(const Segment& segment);
  void write(const Segment& segment);
  // The current operation has found this mapping, and is about to use it.
  void use(Mapping& mapping) {
    if (on_) note_use(mapping);
  }
  // A copy of one row. `from` or `to` empty: that side is pageable host memory.
  void copy(const std::vector<Segment>& from, const std::vector<Segment>& to, size_t bytes);
  // A flag was set there: no race, but no longer unwritten either.
  void flag_written(const Mapping& mapping, uintptr_t address, uint64_t bytes) {
    host_may_write(mapping.space(), mapping.offset_of(address), bytes);
  }
  // The last operation that wrote the byte there; number 0 if that is not known.
  Use last_writer(const Mapping& mapping, uintptr_t address);
  // A stream-ordered allocation: a write that leaves nothing written.
  void allocate(const Segment& segment);

  // The bytes have a new owner: their history is over.
  void forget(int space, uint64_t offset, uint64_t bytes, Content content);
  void host_may_write(int space, uint64_t offset, uint64_t bytes);
  // The calling thread takes the mapping away.
  void removing(const Mapping& mapping, const char* call);

 private:
  struct Doer {
    uint32_t agent = 0;
    uint64_t number = 0;
    const VectorClock* clock = nullptr;
    OpClass kind = OpClass::kKernel;
    TagId tag = 0;
  };

  AccessMap& map_of(int space);
  bool ordered(const Use& use) const {
    return use.number == 0 || doer_.clock->covers(use.agent, use.number);
  }
  bool is_copy(TagId tag);
  // The current operation reads these bytes; if a copy wrote them, that copy must know.
  void note_reader(const Use& writer, int space, uint64_t begin, uint64_t end);
  Use mine() const { return {doer_.agent, doer_.number, doer_.tag}; }
  void note_use(Mapping& mapping) const;
  // Conflicts of a write by the current operation with what was there.
  void check_write(int space, uint64_t begin, uint64_t end, const Access& before,
                   const Segment& at);
  void copy_piece(const Segment* from, const Segment* to, size_t bytes);
  // What `copy` made of these bytes of its source cannot be trusted.
  void taint_results(TagId copy, TagId other, int space, uint64_t begin, uint64_t end, int depth);
  void report_race(const char* what, const Use& earlier, const Segment& at, uint64_t offset,
                   const char* how);
  void report_taint(const Access& access, const std::string& reader, const std::string& where);

  bool on_;
  Doer doer_;
  Tags tags_;
  std::deque<AccessMap> maps_;        // grows at its end alone; references stay good
  std::vector<TagId> reported_with_;  // by the current operation
};

Checker& checker();

}  // namespace simgpu
