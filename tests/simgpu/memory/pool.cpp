// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/memory/pool.h"

#include <algorithm>
#include <vector>

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/driver/handle_pool.h"
#include "tests/simgpu/exec/engine.h"
#include "tests/simgpu/exec/pool_op.h"
#include "tests/simgpu/memory/address_space.h"
#include "tests/simgpu/memory/machine.h"

namespace simgpu::pools {

namespace {

using Piece = Pool::Piece;
using Chunk = Pool::Chunk;

HandlePool<Pool>& handles() {
  static auto* instance = new HandlePool<Pool>;
  return *instance;
}

size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

bool over(const Piece& piece) {
  return piece.freed == nullptr || piece.freed->done;
}

void drop_mapping(Piece& piece) {
  if (piece.mapping != nullptr) address_space().erase(piece.mapping);
  piece.mapping = nullptr;
}

// Joins free neighbours whose last use is over.
void merge(Chunk& chunk) {
  for (auto it = chunk.pieces.begin(); it != chunk.pieces.end();) {
    const auto next = std::next(it);
    if (next == chunk.pieces.end()) break;
    Piece& first = it->second;
    Piece& second = next->second;
    if (!first.is_free || !second.is_free || !over(first) || !over(second)) {
      it = next;
      continue;
    }
    drop_mapping(first);
    drop_mapping(second);
    // The later of the two ends stays, for the checker.
    if (first.freed != nullptr && second.freed != nullptr) {
      auto both = std::make_shared<Record>(*first.freed);
      both->clock.join(second.freed->clock);
      first.freed = std::move(both);
    } else if (second.freed != nullptr) {
      first.freed = second.freed;
    }
    first.bytes += second.bytes;
    chunk.pieces.erase(next);
  }
}

struct Found {
  Chunk* chunk = nullptr;
  uintptr_t begin = 0;
  Piece* piece = nullptr;
};

// The smallest free piece that `accept` accepts.
template <class Accept>
Found find_piece(Pool& pool, size_t bytes, Accept accept) {
  Found best;
  for (auto& [chunk_begin, chunk] : pool.chunks) {
    for (auto& [begin, piece] : chunk.pieces) {
      if (!piece.is_free || piece.bytes < bytes || !accept(piece)) continue;
      if (best.piece == nullptr || piece.bytes < best.piece->bytes) best = {&chunk, begin, &piece};
    }
  }
  return best;
}

bool grow(Pool& pool, size_t bytes) {
  const heap::Block block = heap::take_block(pool.device, round_up(bytes, heap::block_bytes()));
  if (block.begin == 0) return false;
  Chunk& chunk = pool.chunks[block.begin];
  chunk.block = block;
  chunk.pieces[block.begin].bytes = block.bytes;
  checker().forget(pool.device, block.offset, block.bytes, Content::kUnwritten);
  pool.reserved += block.bytes;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return true;
}

Found choose(Lock& lock, Pool& pool, size_t bytes, Stream& stream) {
  // Its own stream, the same shape: no need to wait for anything.
  Found found = find_piece(pool, bytes, [&](const Piece& piece) {
    return !over(piece) && piece.bytes == bytes && piece.freed->stream == &stream;
  });
  if (found.piece != nullptr) return found;
  const auto finished = [](const Piece& piece) { return over(piece); };
  for (auto& [begin, chunk] : pool.chunks) merge(chunk);
  found = find_piece(pool, bytes, finished);
  if (found.piece != nullptr) return found;
  if (grow(pool, bytes)) return find_piece(pool, bytes, finished);
  // Short of memory: unused chunks of every pool of this device, then a piece that another stream
  // frees.
  trim_all(pool.device);
  if (grow(pool, bytes)) return find_piece(pool, bytes, finished);
  if (pool.reuse_internal_dependencies != 0) {
    found = find_piece(pool, bytes, [&](const Piece& piece) { return piece.bytes == bytes; });
    if (found.piece != nullptr) return found;
  }
  std::vector<Target> frees;
  for (auto& [begin, chunk] : pool.chunks) {
    for (auto& [address, piece] : chunk.pieces) {
      if (piece.is_free && !over(piece))
        frees.push_back({piece.freed->stream, piece.freed->number});
    }
  }
  if (frees.empty()) return {};
  engine().wait(lock, frees, "a stream-ordered allocation");
  for (auto& [begin, chunk] : pool.chunks) merge(chunk);
  found = find_piece(pool, bytes, finished);
  if (found.piece != nullptr) return found;
  trim(&pool, 0);
  if (grow(pool, bytes)) return find_piece(pool, bytes, finished);
  return {};
}

Piece* piece_of(const Mapping& mapping) {
  for (auto& [begin, chunk] : mapping.pool->chunks) {
    const auto it = chunk.pieces.find(mapping.begin);
    if (it != chunk.pieces.end()) return &it->second;
  }
  return nullptr;
}

void mark_free(Pool& pool, Piece& piece, RecordRef freed) {
  piece.is_free = true;
  piece.freed = std::move(freed);
  pool.used -= piece.bytes;
  if (pool.destroyed && pool.used == 0) trim(&pool, 0);
}

}  // namespace

Pool* find(CUmemoryPool handle) {
  Pool* pool = handles().find(handle);
  return pool != nullptr && !pool->destroyed ? pool : nullptr;
}

Pool* create(const CUmemPoolProps& properties) {
  Pool* pool = handles().create();
  pool->device = properties.location.id;
  pool->properties = properties;
  pool->access[pool->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return pool;
}

Pool* default_pool(int device) {
  static Pool* defaults[kMaxDevices] = {};
  if (defaults[device] == nullptr) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    defaults[device] = create(properties);
    defaults[device]->is_default = true;
  }
  return defaults[device];
}

Pool*& current(int device) {
  static Pool* pools[kMaxDevices] = {};
  if (pools[device] == nullptr) pools[device] = default_pool(device);
  return pools[device];
}

void destroy(Lock&, Pool* pool) {
  if (current(pool->device) == pool) current(pool->device) = default_pool(pool->device);
  pool->destroyed = true;
  trim(pool, 0);
}

CUresult allocate(Lock& lock, Pool* pool, size_t bytes, Stream& stream, CUdeviceptr* address) {
  const size_t rounded = round_up(bytes, heap::kAlignment);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > options().memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (pool->properties.maxSize != 0 && pool->used + rounded > pool->properties.maxSize) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const Found found = choose(lock, *pool, rounded, stream);
  if (found.piece == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Piece& piece = *found.piece;
  RecordRef after = piece.freed;
  if (piece.mapping != nullptr && piece.bytes != rounded) drop_mapping(piece);
  if (piece.bytes > rounded) {
    Piece rest;
    rest.bytes = piece.bytes - rounded;
    rest.freed = piece.freed;
    found.chunk->pieces[found.begin + rounded] = std::move(rest);
    piece.bytes = rounded;
  }
  piece.is_free = false;
  piece.freed = nullptr;
  pool->used += rounded;
  pool->used_high = std::max(pool->used_high, pool->used);
  if (piece.mapping == nullptr) {
    Mapping mapping;
    mapping.begin = found.begin;
    mapping.span = rounded;
    mapping.kind = MemoryKind::kPool;
    mapping.device = pool->device;
    mapping.physical = &device_memory(pool->device);
    mapping.offset = found.chunk->block.offset + (found.begin - found.chunk->block.begin);
    mapping.pool = pool;
    mapping.live = false;
    mapping.block_id = new_buffer_id();
    std::copy(std::begin(pool->access), std::end(pool->access), std::begin(mapping.access));
    piece.mapping = address_space().insert(std::move(mapping));
  }
  piece.mapping->bytes = bytes;
  piece.mapping->context = stream.context;
  piece.mapping->buffer_id = new_buffer_id();
  *address = found.begin;
  if (after != nullptr && !after->done && after->stream != &stream) {
    engine().submit(lock, stream, std::make_unique<WaitOp>(after));
  }
  engine().submit(lock, stream, std::make_unique<AllocateOp>(*address, std::move(after)));
  return CUDA_SUCCESS;
}

CUresult free(Lock& lock, Mapping* mapping, Stream& stream) {
  Piece* piece = piece_of(*mapping);
  if (piece == nullptr || piece->is_free) return CUDA_ERROR_INVALID_VALUE;
  Pool& pool = *mapping->pool;
  auto freed = std::make_shared<Record>();
  freed->stream = &stream;
  // A full queue lets other threads in here. A program that frees twice at the same time gets what
  // it asked for.
  freed->number = engine().submit(lock, stream, std::make_unique<FreeOp>(mapping->begin, freed));
  mark_free(pool, *piece, std::move(freed));
  return CUDA_SUCCESS;
}

CUresult free_heap(Lock& lock, Mapping* mapping, Stream& stream) {
  engine().submit(lock, stream,
                  std::make_unique<FreeOp>(mapping->begin, std::make_shared<Record>()));
  return CUDA_SUCCESS;
}

CUresult free_now(Mapping* mapping) {
  Piece* piece = piece_of(*mapping);
  // It may be live yet: the stream has not come to its free.
  if (!mapping->live || piece == nullptr || piece->is_free) return CUDA_ERROR_INVALID_VALUE;
  mapping->live = false;
  mark_free(*mapping->pool, *piece, nullptr);
  return CUDA_SUCCESS;
}

void trim_all(int device) {
  handles().for_each([device](Pool& pool) {
    if (pool.device == device) trim(&pool, 0);
  });
}

bool have_unused(int device) {
  bool unused = false;
  handles().for_each([&](const Pool& pool) {
    unused = unused || (pool.device == device && pool.reserved > pool.used);
  });
  return unused;
}

void set_access(Pool* pool, int device, CUmemAccess_flags flags) {
  pool->access[device] = flags;
  for (auto& [chunk_begin, chunk] : pool->chunks) {
    for (auto& [begin, piece] : chunk.pieces) {
      if (piece.mapping != nullptr) piece.mapping->access[device] = flags;
    }
  }
}

void trim(Pool* pool, uint64_t keep) {
  for (auto it = pool->chunks.begin(); it != pool->chunks.end() && pool->reserved > keep;) {
    Chunk& chunk = it->second;
    merge(chunk);
    Piece& first = chunk.pieces.begin()->second;
    if (chunk.pieces.size() > 1 || !first.is_free || !over(first)) {
      ++it;
      continue;
    }
    drop_mapping(first);
    pool->reserved -= chunk.block.bytes;
    heap::give_block(pool->device, chunk.block);
    it = pool->chunks.erase(it);
  }
}

void after_synchronisation() {
  handles().for_each([](Pool& pool) {
    if (pool.reserved > std::max(pool.release_threshold, pool.used)) {
      trim(&pool, pool.release_threshold);
    }
  });
}

}  // namespace simgpu::pools
