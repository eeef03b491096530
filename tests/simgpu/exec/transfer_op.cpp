// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/transfer_op.h"

#include <algorithm>
#include <cstring>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/statistics.h"
#include "tests/simgpu/exec/device_fault.h"
#include "tests/simgpu/exec/name_log.h"
#include "tests/simgpu/exec/stream.h"
#include "tests/simgpu/memory/sparse_copy.h"

namespace simgpu {

namespace {

bool is_device(const Place& place) {
  if (place.pageable) return false;
  const Mapping* mapping = address_space().find(place.address);
  return mapping != nullptr && mapping->device >= 0;
}

int eyes(const Place& place, int stream_device) {
  if (place.device >= 0) return place.device;
  const Mapping* mapping = address_space().find(place.address);
  const bool whole = mapping != nullptr && mapping->device >= 0 &&
                     (mapping->kind == MemoryKind::kHeap || mapping->kind == MemoryKind::kPool);
  return whole ? mapping->device : stream_device;
}

MemoryPiece piece_of(const Segment& segment) {
  Mapping& mapping = *segment.mapping;
  return {mapping.physical, mapping.physical ? mapping.offset_of(segment.address) : 0,
          segment.data()};
}

}  // namespace

CopyOp::CopyOp(Place to, Place from, Extent extent, std::vector<std::byte> staged)
    : to_(to),
      from_(from),
      extent_(extent),
      staged_(std::move(staged)),
      to_device_(is_device(to)),
      from_device_(staged_.empty() && is_device(from)),
      to_allotment_(to_device_ ? allotments().find(to.address) : nullptr),
      from_allotment_(from_device_ ? allotments().find(from.address) : nullptr) {}

std::string CopyOp::describe() const {
  if (to_device_) return from_device_ ? "copy device to device" : "copy host to device";
  return from_device_ ? "copy device to host" : "copy host to host";
}

Cost CopyOp::cost() const {
  const auto bytes = static_cast<double>(extent_.bytes());
  if (to_device_ && !from_device_) return {Resource::kHostToDevice, bytes, 0};
  if (from_device_ && !to_device_) return {Resource::kDeviceToHost, bytes, 0};
  return {Resource::kCompute, 0, 2 * bytes / (options().bandwidth * 1e9)};
}

// Where every row lies now, told to the checker on the way. False: some byte is not there; the
// context has its fault.
bool CopyOp::resolve(std::vector<Row>* rows) {
  std::vector<Segment> to;
  std::vector<Segment> from;
  for (size_t z = 0; z < extent_.depth; ++z) {
    for (size_t y = 0; y < extent_.height; ++y) {
      const uintptr_t to_address = to_.address + z * to_.slice + y * to_.pitch;
      uintptr_t from_address = from_.address + z * from_.slice + y * from_.pitch;
      const bool staged = !staged_.empty();
      if (staged) {
        from_address =
            reinterpret_cast<uintptr_t>(staged_.data()) + (z * extent_.height + y) * extent_.width;
      }
      to.clear();
      from.clear();
      uintptr_t fault = 0;
      const size_t width = extent_.width;
      const int to_device = eyes(to_, stream->device);
      const int from_device = eyes(from_, stream->device);
      const bool found =
          (to_.pageable ||
           address_space().translate(to_device, to_address, width, true, &to, &fault)) &&
          (staged || from_.pageable ||
           address_space().translate(from_device, from_address, width, false, &from, &fault));
      if (!found) {
        device_fault(*stream->context, describe(), fault);
        return false;
      }
      checker().copy(from, to, width);
      // The pieces outlive the lock, mappings need not.
      const auto pieces = [width](const std::vector<Segment>& segments, uintptr_t plain) {
        std::vector<Piece> result;
        for (const Segment& segment : segments)
          result.push_back({piece_of(segment), segment.bytes});
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        auto* data = reinterpret_cast<std::byte*>(plain);
        if (segments.empty()) result.push_back({{nullptr, 0, data}, width});
        return result;
      };
      rows->push_back({pieces(to, to_address), pieces(from, from_address)});
    }
  }
  return true;
}

void CopyOp::move(const Row& row) {
  const auto advanced = [](const MemoryPiece& piece, size_t bytes) {
    return MemoryPiece{piece.physical, piece.offset + bytes, piece.data + bytes};
  };
  size_t i = 0;
  size_t j = 0;
  size_t in_to = 0;    // bytes done of row.to[i]
  size_t in_from = 0;  // bytes done of row.from[j]
  while (i < row.to.size()) {
    const size_t bytes = std::min(row.to[i].bytes - in_to, row.from[j].bytes - in_from);
    sparse_copy(advanced(row.to[i].memory, in_to), advanced(row.from[j].memory, in_from), bytes);
    if ((in_to += bytes) == row.to[i].bytes) ++i, in_to = 0;
    if ((in_from += bytes) == row.from[j].bytes) ++j, in_from = 0;
  }
}

void CopyOp::submitted() {
  name_log().copy(stream->id, extent_.bytes(), to_allotment_.get(), from_allotment_.get());
}

void CopyOp::run(Lock& lock) {
  Statistics& counts = statistics();
  ++counts.copies;
  const size_t bytes = extent_.bytes();
  if (to_device_) {
    (from_device_ ? counts.bytes_device_to_device : counts.bytes_host_to_device) += bytes;
  } else {
    (from_device_ ? counts.bytes_device_to_host : counts.bytes_host_to_host) += bytes;
  }
  checker().begin(*stream, OpClass::kCopy, describe());
  if (to_allotment_ != nullptr) first_use(*to_allotment_, stream->device);
  if (from_allotment_ != nullptr) first_use(*from_allotment_, stream->device);
  std::vector<Row> rows;
  if (!resolve(&rows)) return;
  lock.unlock();
  for (const Row& row : rows) move(row);
  lock.lock();
}

FillOp::FillOp(uintptr_t address, size_t pitch, size_t width, size_t height, uint32_t value,
               size_t element)
    : address_(address),
      pitch_(pitch),
      width_(width),
      height_(height),
      value_(value),
      element_(element),
      allotment_(allotments().find(address)) {}

Cost FillOp::cost() const {
  return {Resource::kCompute, 0,
          static_cast<double>(width_ * height_) / (options().bandwidth * 1e9)};
}

void FillOp::submitted() {
  name_log().fill(stream->id, width_ * height_, allotment_.get());
}

void FillOp::run(Lock& lock) {
  ++statistics().fills;
  statistics().bytes_filled += width_ * height_;
  checker().begin(*stream, OpClass::kFill, describe());
  std::vector<Segment> segments;
  uintptr_t fault = 0;
  for (size_t y = 0; y < height_; ++y) {
    if (!address_space().translate(stream->device, address_ + y * pitch_, width_, true, &segments,
                                   &fault)) {
      device_fault(*stream->context, describe(), fault);
      return;
    }
  }
  if (allotment_ != nullptr) first_use(*allotment_, stream->device);
  std::vector<std::pair<MemoryPiece, size_t>> pieces;
  for (const Segment& segment : segments) {
    checker().write(segment);
    pieces.emplace_back(piece_of(segment), segment.bytes);
  }
  lock.unlock();
  for (const auto& [piece, bytes] : pieces) {
    std::byte* data = piece.data;
    const uint8_t low = static_cast<uint8_t>(value_);
    const bool bytewise = element_ == 1 || value_ == low * (element_ == 2 ? 0x0101U : 0x01010101U);
    if (value_ == 0) {
      sparse_zero(piece, bytes);
    } else if (bytewise) {
      std::memset(data, low, bytes);
    } else {
      for (size_t at = 0; at < bytes; at += element_) std::memcpy(data + at, &value_, element_);
    }
  }
  lock.lock();
}

}  // namespace simgpu
