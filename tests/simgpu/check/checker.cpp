// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/check/checker.h"

#include <algorithm>
#include <cstdio>

#include "tests/simgpu/check/report.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/exec/engine.h"

namespace simgpu {

namespace {

constexpr int kDeepestTaint = 16;
constexpr size_t kRememberedReaders = 256;  // of one copy's result

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

bool in_device_memory(int space) {
  return space >= 0 && space < kMaxDevices;
}

std::string address_range(const Segment& segment, uint64_t begin, uint64_t end) {
  const uintptr_t address = segment.address + (begin - segment.mapping->offset_of(segment.address));
  return hex(address) + " (" + std::to_string(end - begin) + " bytes)";
}

}  // namespace

Checker& checker() {
  static auto* instance = new Checker;
  return *instance;
}

Checker::Checker() : on_(options().check != CheckMode::kOff), maps_(kMaxDevices + 2) {}

// Spaces: a device's number, kMaxDevices for the host's memory file, -1 for registered host memory;
// from kMaxDevices + 2 on memories of other processes.
AccessMap& Checker::map_of(int space) {
  const auto index = static_cast<size_t>(space < 0 ? kMaxDevices + 1 : space);
  while (maps_.size() <= index) maps_.emplace_back();
  return maps_[index];
}

bool Checker::is_copy(TagId id) {
  const Tag* tag = tags_.find(id);
  return tag != nullptr && tag->kind == OpClass::kCopy;
}

void Checker::note_reader(const Use& writer, int space, uint64_t begin, uint64_t end) {
  if (!is_copy(writer.tag)) return;
  std::vector<Reader>& readers = tags_.find(writer.tag)->readers;
  if (!readers.empty()) {
    Reader& last = readers.back();
    if (last.tag == doer_.tag && last.space == space && last.end == begin) {
      last.end = end;
      return;
    }
  }
  if (readers.size() < kRememberedReaders) readers.push_back({doer_.tag, space, begin, end});
}

void Checker::begin(const Stream& stream, OpClass kind, std::string_view name) {
  if (!on_) return;
  doer_.agent = stream.agent;
  doer_.number = stream.completed + 1;
  doer_.clock = &stream.clock;
  doer_.kind = kind;
  doer_.tag = tags_.add(kind, name, stream.id, doer_.number);
  reported_with_.clear();
}

void Checker::note_use(Mapping& mapping) const {
  for (Use& use : mapping.uses) {
    if (use.agent != doer_.agent) continue;
    use = mine();
    return;
  }
  mapping.uses.push_back(mine());
}

void Checker::read(const Segment& segment) {
  if (!on_) return;
  note_use(*segment.mapping);
  const int space = segment.mapping->space();
  const uint64_t begin = segment.mapping->offset_of(segment.address);
  map_of(space).update(
      begin, begin + segment.bytes, [&](uint64_t from, uint64_t to, Access& access) {
        if (!ordered(access.write)) report_race("reads", access.write, segment, from, "wrote");
        if (access.taint != Taint::kNone) {
          report_taint(access, tags_.describe(doer_.tag) + " reads",
                       address_range(segment, from, to));
          access.taint = Taint::kNone;  // once is enough
        }
        note_reader(access.write, space, from, to);
        std::erase_if(access.reads, [&](const Use& use) { return use.agent == doer_.agent; });
        access.reads.push_back(mine());
      });
}

void Checker::check_write(int space, uint64_t begin, uint64_t end, const Access& before,
                          const Segment& at) {
  if (!ordered(before.write)) report_race("writes", before.write, at, begin, "wrote");
  for (const Use& read : before.reads) {
    if (ordered(read)) continue;
    if (is_copy(read.tag) && in_device_memory(space)) {
      taint_results(read.tag, doer_.tag, space, begin, end, 0);
    } else {
      report_race("writes", read, at, begin, "read");
    }
  }
}

void Checker::write(const Segment& segment) {
  if (!on_) return;
  note_use(*segment.mapping);
  const int space = segment.mapping->space();
  const uint64_t begin = segment.mapping->offset_of(segment.address);
  const uint64_t end = begin + segment.bytes;
  AccessMap& map = map_of(space);
  map.update(begin, end, [&](uint64_t from, uint64_t to, Access& access) {
    check_write(space, from, to, access, segment);
  });
  Access after;
  after.write = mine();
  map.assign(begin, end, std::move(after));
}

void Checker::allocate(const Segment& segment) {
  if (!on_) return;
  write(segment);
  const uint64_t begin = segment.mapping->offset_of(segment.address);
  Access after;
  after.write = mine();
  after.taint = Taint::kUnwritten;
  map_of(segment.mapping->space()).assign(begin, begin + segment.bytes, std::move(after));
}

void Checker::copy(const std::vector<Segment>& from, const std::vector<Segment>& to, size_t bytes) {
  if (!on_) return;
  // Cut both sides at each other's seams.
  size_t done = 0;
  size_t i = 0;
  size_t j = 0;
  Segment source = from.empty() ? Segment{} : from[0];
  Segment target = to.empty() ? Segment{} : to[0];
  while (done < bytes) {
    size_t piece = bytes - done;
    if (!from.empty()) piece = std::min(piece, source.bytes);
    if (!to.empty()) piece = std::min(piece, target.bytes);
    copy_piece(from.empty() ? nullptr : &source, to.empty() ? nullptr : &target, piece);
    done += piece;
    const auto step = [piece](Segment& segment, const std::vector<Segment>& all, size_t& index) {
      segment.address += piece;
      segment.bytes -= piece;
      if (segment.bytes == 0 && ++index < all.size()) segment = all[index];
    };
    if (!from.empty()) step(source, from, i);
    if (!to.empty()) step(target, to, j);
  }
}

void Checker::copy_piece(const Segment* from, const Segment* to, size_t bytes) {
  struct Stretch {
    uint64_t begin;  // relative to the piece
    uint64_t end;
    Taint taint;
    TagId copy;
    TagId other;
  };
  std::vector<Stretch> stretches;
  if (from == nullptr) stretches.push_back({0, bytes, Taint::kNone, 0, 0});
  if (from != nullptr) {
    note_use(*from->mapping);
    const int space = from->mapping->space();
    const uint64_t begin = from->mapping->offset_of(from->address);
    map_of(space).update(begin, begin + bytes, [&](uint64_t a, uint64_t b, Access& access) {
      Stretch stretch{a - begin, b - begin, access.taint, access.taint_copy, access.taint_other};
      if (!ordered(access.write)) {
        if (in_device_memory(space)) {
          stretch.taint = Taint::kRaced;
          stretch.copy = doer_.tag;
          stretch.other = access.write.tag;
        } else {
          report_race("reads", access.write, *from, a, "wrote");
        }
      }
      if (to == nullptr && stretch.taint != Taint::kNone) {
        Access seen;
        seen.taint = stretch.taint;
        seen.taint_copy = stretch.copy;
        seen.taint_other = stretch.other;
        report_taint(seen, tags_.describe(doer_.tag) + " takes to pageable memory",
                     address_range(*from, a, b));
        access.taint = Taint::kNone;
      }
      note_reader(access.write, space, a, b);
      std::erase_if(access.reads, [&](const Use& use) { return use.agent == doer_.agent; });
      access.reads.push_back(mine());
      stretches.push_back(stretch);
    });
  }
  if (to == nullptr) return;
  note_use(*to->mapping);
  const int space = to->mapping->space();
  const uint64_t begin = to->mapping->offset_of(to->address);
  AccessMap& map = map_of(space);
  map.update(begin, begin + bytes, [&](uint64_t a, uint64_t b, Access& access) {
    check_write(space, a, b, access, *to);
  });
  for (const Stretch& stretch : stretches) {
    Access after;
    after.write = mine();
    after.taint = stretch.taint;
    after.taint_copy = stretch.copy;
    after.taint_other = stretch.other;
    map.assign(begin + stretch.begin, begin + stretch.end, std::move(after));
  }
  if (from != nullptr) {
    tags_.find(doer_.tag)->pieces.push_back(
        {from->mapping->space(), from->mapping->offset_of(from->address), space, begin, bytes});
  }
}

void Checker::taint_results(TagId copy, TagId other, int space, uint64_t begin, uint64_t end,
                            int depth) {
  const Tag* tag = tags_.find(copy);
  if (tag == nullptr || depth > kDeepestTaint) return;
  Access tainted;
  tainted.taint = Taint::kRaced;
  tainted.taint_copy = copy;
  tainted.taint_other = other;
  // Copies: the recursion may add to them.
  const std::vector<CopiedPiece> pieces = tag->pieces;
  const std::vector<Reader> readers = tag->readers;
  for (const CopiedPiece& piece : pieces) {
    if (piece.from_space != space) continue;
    const uint64_t from = std::max(begin, piece.from);
    const uint64_t to = std::min(end, piece.from + piece.bytes);
    if (from >= to) continue;
    const uint64_t target = piece.to + (from - piece.from);
    const uint64_t target_end = target + (to - from);
    map_of(piece.to_space).update(target, target_end, [&](uint64_t, uint64_t, Access& access) {
      if (access.write.tag != copy) return;  // overwritten since
      access.taint = tainted.taint;
      access.taint_copy = copy;
      access.taint_other = other;
    });
    for (const Reader& reader : readers) {
      const uint64_t first = std::max(target, reader.begin);
      const uint64_t last = std::min(target_end, reader.end);
      if (reader.space != piece.to_space || first >= last) continue;
      if (is_copy(reader.tag)) {
        taint_results(reader.tag, other, piece.to_space, first, last, depth + 1);
      } else {
        report_taint(tainted, tags_.describe(reader.tag) + " has read",
                     std::to_string(last - first) + " bytes at offset " + hex(first) +
                         " of memory " + std::to_string(piece.to_space));
      }
    }
  }
}

void Checker::report_race(const char* what, const Use& earlier, const Segment& at, uint64_t offset,
                          const char* how) {
  if (std::find(reported_with_.begin(), reported_with_.end(), earlier.tag) !=
      reported_with_.end()) {
    return;
  }
  reported_with_.push_back(earlier.tag);
  const uintptr_t address = at.address + (offset - at.mapping->offset_of(at.address));
  report("a race at " + hex(address) + "\n  " + tags_.describe(doer_.tag) + " " + what +
         " what\n  " + tags_.describe(earlier.tag) + " " + how +
         "; nothing orders one after the other");
}

void Checker::report_taint(const Access& access, const std::string& reader,
                           const std::string& where) {
  std::string text = reader + " " + where;
  if (access.taint == Taint::kUnwritten) {
    text += ", which nothing has written since it was allocated";
  } else {
    text += ", which came through\n  " + tags_.describe(access.taint_copy) +
            ", whose source was written meanwhile by\n  " + tags_.describe(access.taint_other);
  }
  report(text);
}

void Checker::forget(int space, uint64_t offset, uint64_t bytes, Content content) {
  if (!on_) return;
  AccessMap& map = map_of(space);
  if (content == Content::kUnknown) return map.erase(offset, offset + bytes);
  Access fresh;
  fresh.taint = Taint::kUnwritten;
  map.assign(offset, offset + bytes, std::move(fresh));
}

void Checker::host_may_write(int space, uint64_t offset, uint64_t bytes) {
  if (!on_) return;
  map_of(space).update(offset, offset + bytes, [](uint64_t, uint64_t, Access& access) {
    if (access.taint == Taint::kUnwritten) access.taint = Taint::kNone;
  });
}

void Checker::removing(const Mapping& mapping, const char* call) {
  if (!on_) return;
  const ClockRef& known = engine().knowledge().current();
  for (const Use& use : mapping.uses) {
    if (known != nullptr && known->covers(use.agent, use.number)) continue;
    report(std::string(call) + " takes away " + hex(mapping.begin) + " (" +
           std::to_string(mapping.span) + " bytes), but the calling thread does not know that\n  " +
           tags_.describe(use.tag) + " is finished");
  }
}

Use Checker::last_writer(const Mapping& mapping, uintptr_t address) {
  Use writer;
  if (!on_) return writer;
  const uint64_t at = mapping.offset_of(address);
  map_of(mapping.space()).update(at, at + 1, [&](uint64_t, uint64_t, Access& access) {
    writer = access.write;
  });
  return writer;
}

}  // namespace simgpu
