// SPDX-License-Identifier: Apache-2.0
#include "interpose/driver/driver_port.h"

#include <cstring>

#include "interpose/driver/checksum.h"
#include "interpose/driver/errors.h"
#include "interpose/driver/table.h"
#include "interpose/rules.h"
#include "profiler/statistics.h"

namespace offload {
namespace {

constexpr const char* kRollBack = "the buffer stays as it was";
constexpr const char* kWaitInstead = "the host waits instead";
constexpr const char* kLeak = "it is left as it is";
constexpr uint64_t kChecksumPiece = 1 << 20;
constexpr uint64_t kNothing = 4096;  // a handle or an address that nobody uses: the context is lost

// Left by ports whose context has died. More than a few sizes are not to be expected.
struct FreeRange {
  Address at = 0;
  uint64_t bytes = 0;
};
constinit FreeRange free_ranges[32]{};
constinit PlainMutex free_mutex;

CUstream native(const NativeStream& stream) {
  return static_cast<CUstream>(stream.stream);
}
CUevent native(Event event) {
  return static_cast<CUevent>(event);
}
CUcontext context_of(const NativeStream& stream) {
  return static_cast<CUcontext>(stream.context);
}
void* host_pointer(Address at) {
  return reinterpret_cast<void*>(at);
}

}  // namespace

Status DriverPort::open() {
  const OwnCall call(device_.context);
  for (CUstream& stream : lanes_) {
    const Status status = status_of(real<Entry::cuStreamCreate>()(&stream, CU_STREAM_NON_BLOCKING),
                                    "cuStreamCreate", "liboffload moves nothing in this process");
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

Status DriverPort::reserve(uint64_t bytes, Address* out) {
  if (context_lost()) return Status::kError;
  if (Range range; take_free_range(bytes, &range)) {
    reserved_.push_back(range);
    *out = range.at;
    return Status::kOk;
  }
  const OwnCall call(device_.context);
  CUdeviceptr at = 0;
  const Status status =
      status_of(real<Entry::cuMemAddressReserve>()(&at, bytes, 0, 0, 0), "cuMemAddressReserve",
                "liboffload moves nothing in this process");
  *out = at;
  if (status == Status::kOk) reserved_.push_back({at, bytes});
  return status;
}

Status DriverPort::create(Place place, uint64_t bytes, Handle* out) {
  *out = kNothing;
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context);
  const CUmemAllocationProp properties =
      place == Place::kDevice ? device_memory(device_) : host_memory(device_);
  CUmemGenericAllocationHandle handle = 0;
  const Status status = status_of(real<Entry::cuMemCreate>()(&handle, bytes, &properties, 0),
                                  "cuMemCreate", "others make room");
  *out = handle;
  if (status != Status::kOk) return status;
  const std::lock_guard lock(mappings_mutex_);
  handles_[handle] = true;
  return Status::kOk;
}

bool DriverPort::has_made(Handle handle) {
  const std::lock_guard lock(mappings_mutex_);
  return handles_.contains(handle);
}

void DriverPort::release(Handle handle) {
  if (context_lost()) return;
  const OwnCall call(device_.context);
  {
    const std::lock_guard lock(mappings_mutex_);
    handles_.erase(handle);
  }
  status_of(real<Entry::cuMemRelease>()(handle), "cuMemRelease", kLeak);
}

Status DriverPort::grant(Address at, const Mapping& mapping) {
  constexpr size_t kMost = 32;
  CUmemAccessDesc access[kMost];
  size_t count = 0;
  access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, device_.device},
                     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (mapping.host && mapping.cpu)
    access[count++] = {device_.host, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  {
    const std::lock_guard lock(mappings_mutex_);
    for (const CUdevice peer : peers_) {
      if (count < kMost && obeys(Rule::kLaterIsReached))
        access[count++] = {{CU_MEM_LOCATION_TYPE_DEVICE, peer}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
  }
  return status_of(real<Entry::cuMemSetAccess>()(at, mapping.bytes, access, count),
                   "cuMemSetAccess", kRollBack);
}

Status DriverPort::map(Address at, uint64_t bytes, Handle handle, Place place, bool cpu) {
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context);
  Status status =
      status_of(real<Entry::cuMemMap>()(at, bytes, 0, handle, 0), "cuMemMap", kRollBack);
  if (status != Status::kOk) return status;
  const Mapping mapping = {bytes, place == Place::kHost, cpu};
  {
    // Before access is granted: a peer that comes in between is granted by itself.
    const std::lock_guard lock(mappings_mutex_);
    mappings_[at] = mapping;
  }
  status = grant(at, mapping);
  if (status != Status::kOk) unmap(at, bytes);
  return status;
}

Status DriverPort::unmap(Address at, uint64_t bytes) {
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context);
  {
    const std::lock_guard lock(mappings_mutex_);
    mappings_.erase(at);
  }
  return status_of(real<Entry::cuMemUnmap>()(at, bytes), "cuMemUnmap", kLeak);
}

Status DriverPort::allocate_pinned(uint64_t bytes, Address* out) {
  *out = kNothing;
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context);
  void* memory = nullptr;
  const Status status =
      status_of(real<Entry::cuMemHostAlloc>()(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE),
                "cuMemHostAlloc", "buffers stay on the GPU");
  *out = reinterpret_cast<Address>(memory);
  return status;
}

void DriverPort::free_pinned(Address at) {
  if (context_lost()) return;
  const OwnCall call(device_.context);
  status_of(real<Entry::cuMemFreeHost>()(host_pointer(at)), "cuMemFreeHost", kLeak);
}

Status DriverPort::create_event(void* context, bool timed, Event* out) {
  *out = nullptr;
  if (context_lost()) return Status::kOk;
  const OwnCall call(static_cast<CUcontext>(context));
  CUevent event = nullptr;
  const unsigned flags = timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  const Status status =
      status_of(real<Entry::cuEventCreate>()(&event, flags), "cuEventCreate", kWaitInstead);
  *out = event;
  return status;
}

void DriverPort::destroy_event(Event event) {
  if (context_lost()) return;
  const OwnCall call(device_.context);
  status_of(real<Entry::cuEventDestroy_v2>()(native(event)), "cuEventDestroy", kLeak);
}

Status DriverPort::record(Event event, const NativeStream& stream) {
  if (context_lost()) return Status::kOk;
  const OwnCall call(context_of(stream), OwnCall::Kind::kSubmits);
  return status_of(real<Entry::cuEventRecord>()(native(event), native(stream)), "cuEventRecord",
                   kWaitInstead);
}

Status DriverPort::wait(const NativeStream& stream, Event event) {
  if (context_lost()) return Status::kOk;
  const OwnCall call(context_of(stream), OwnCall::Kind::kSubmits);
  return status_of(real<Entry::cuStreamWaitEvent>()(native(stream), native(event), 0),
                   "cuStreamWaitEvent", kWaitInstead);
}

Status DriverPort::query(Event event) {
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context);
  return status_of(real<Entry::cuEventQuery>()(native(event)), "cuEventQuery",
                   "it counts as not passed");
}

Status DriverPort::synchronize(Event event) {
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context);
  return status_of(real<Entry::cuEventSynchronize>()(native(event)), "cuEventSynchronize",
                   "the wait ends early");
}

Status DriverPort::elapsed(Event begin, Event end, uint64_t* nanoseconds) {
  *nanoseconds = 0;
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context);
  float milliseconds = 0;
  const Status status =
      status_of(real<Entry::cuEventElapsedTime>()(&milliseconds, native(begin), native(end)),
                "cuEventElapsedTime", "that time is missing in the report");
  *nanoseconds =
      status == Status::kOk && milliseconds > 0 ? static_cast<uint64_t>(milliseconds * 1e6f) : 0;
  return status;
}

Status DriverPort::synchronize_stream(const NativeStream& stream) {
  if (context_lost()) return Status::kOk;
  const OwnCall call(context_of(stream));
  return status_of(real<Entry::cuStreamSynchronize>()(native(stream)), "cuStreamSynchronize",
                   "the wait ends early");
}

NativeStream DriverPort::lane(Lane lane) {
  return {stream_of(lane), device_.context};
}

// The plain copy, which looks at the pointers: a slot is page-locked memory in one mode, a mapping
// of host memory in the other.
Status DriverPort::copy(Lane lane, Address to, Address from, uint64_t bytes) {
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context, OwnCall::Kind::kSubmits);
  return status_of(real<Entry::cuMemcpyAsync>()(to, from, bytes, stream_of(lane)), "cuMemcpyAsync",
                   kRollBack);
}

uint64_t DriverPort::checksum_host(Address at, uint64_t bytes) {
  return context_lost() ? 0 : checksum(host_pointer(at), bytes, kChecksumSeed);
}

Status DriverPort::checksum_device(Address at, uint64_t bytes, uint64_t* out) {
  *out = 0;
  if (context_lost()) return Status::kOk;
  const OwnCall call(device_.context);
  // Pinned, so that the copy is one of the driver's own, which may carry what nobody has written.
  if (checksum_memory_ == 0) {
    Address pinned = 0;
    if (const Status status = allocate_pinned(kChecksumPiece, &pinned); status != Status::kOk)
      return status;
    if (context_lost()) return Status::kError;
    checksum_memory_ = pinned;
  }
  void* memory = reinterpret_cast<void*>(checksum_memory_);
  uint64_t sum = kChecksumSeed;
  Status status = Status::kOk;
  for (uint64_t done = 0; done < bytes && status == Status::kOk; done += kChecksumPiece) {
    const uint64_t piece = bytes - done < kChecksumPiece ? bytes - done : kChecksumPiece;
    status = status_of(
        real<Entry::cuMemcpyDtoHAsync_v2>()(memory, at + done, piece, stream_of(Lane::kOut)),
        "cuMemcpyDtoHAsync", "this round trip is not verified");
    if (status != Status::kOk) break;
    status = status_of(real<Entry::cuStreamSynchronize>()(stream_of(Lane::kOut)),
                       "cuStreamSynchronize", "this round trip is not verified");
    sum = checksum(memory, piece, sum);
  }
  *out = sum;
  return status;
}

uint64_t DriverPort::now_nanoseconds() {
  return monotonic_ns();
}

bool DriverPort::is_mapped(Address at) {
  const std::lock_guard lock(mappings_mutex_);
  return mappings_.contains(at);
}

Status DriverPort::set_peer(CUdevice peer, bool may_access) {
  if (context_lost() || peer == device_.device) return Status::kOk;
  const OwnCall call(device_.context);
  OwnVector<std::pair<Address, Mapping>> mapped;
  {
    const std::lock_guard lock(mappings_mutex_);
    std::erase(peers_, peer);
    if (may_access) peers_.push_back(peer);
    mapped.assign(mappings_.begin(), mappings_.end());
  }
  const CUmemAccessDesc access = {
      {CU_MEM_LOCATION_TYPE_DEVICE, peer},
      may_access ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE};
  Status status = Status::kOk;
  for (const auto& [at, mapping] : mapped) {
    const CUresult result = real<Entry::cuMemSetAccess>()(at, mapping.bytes, &access, 1);
    if (result != CUDA_SUCCESS && !is_mapped(at)) continue;  // not any more
    const Status one =
        status_of(result, "cuMemSetAccess", "another device cannot reach that memory");
    if (one != Status::kOk) status = one;
  }
  return status;
}

bool DriverPort::lost() {
  return context_lost();
}

bool DriverPort::idle() {
  if (context_lost()) return true;
  const OwnCall call(device_.context);
  for (CUstream lane : lanes_) {
    if (real<Entry::cuStreamQuery>()(lane) == CUDA_ERROR_NOT_READY) return false;
  }
  return true;
}

// The best fit of those that would not be wasted on it.
bool DriverPort::take_free_range(uint64_t bytes, Range* out) {
  const std::lock_guard lock(free_mutex);
  FreeRange* best = nullptr;
  for (FreeRange& range : free_ranges) {
    if (range.bytes < bytes || range.bytes / 2 > bytes) continue;
    if (best == nullptr || range.bytes < best->bytes) best = &range;
  }
  if (best == nullptr) return false;
  *out = {best->at, best->bytes};
  *best = {};
  return true;
}

void DriverPort::give_back_addresses() {
  const std::lock_guard mappings_lock(mappings_mutex_);
  const std::lock_guard lock(free_mutex);
  for (const Range& range : reserved_) {
    // What the driver would not unmap is still there.
    const auto mapped = mappings_.lower_bound(range.at);
    if (mapped != mappings_.end() && mapped->first < range.at + range.bytes) continue;
    for (FreeRange& free : free_ranges) {
      if (free.bytes != 0) continue;
      free = {range.at, range.bytes};
      break;
    }
  }
  reserved_.clear();
}

}  // namespace offload
