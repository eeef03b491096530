// SPDX-License-Identifier: Apache-2.0
#include "interpose/driver/probe.h"

#include "interpose/driver/own_call.h"
#include "interpose/driver/probe_kernel.h"
#include "interpose/driver/table.h"
#include "interpose/life/heap.h"

namespace offload {
namespace {

constexpr uint32_t kBlocks = 8;
constexpr uint32_t kThreads = 64;
constexpr uint32_t kMostWords = 4 << 10;

// Everything that the probe holds; gone at its end, in reverse.
class Probe {
 public:
  explicit Probe(const Device& device) : device_(device), bytes_(device.granularity) {
    words_.resize(bytes_ / sizeof(uint32_t) < kMostWords ? bytes_ / sizeof(uint32_t) : kMostWords);
  }
  ~Probe();
  const char* run();

 private:
  static bool ok(CUresult result) { return result == CUDA_SUCCESS; }
  bool prepare();
  bool create(const CUmemAllocationProp& properties, CUmemGenericAllocationHandle* out) {
    return ok(real<Entry::cuMemCreate>()(out, bytes_, &properties, 0));
  }
  bool show(CUdeviceptr at, CUmemGenericAllocationHandle handle, bool cpu);
  bool hide(CUdeviceptr at);
  bool add_one();
  bool write(uint32_t seed);
  bool holds(uint32_t seed);
  size_t word_bytes() const { return words_.size() * sizeof(uint32_t); }

  const Device& device_;
  const size_t bytes_;
  OwnVector<uint32_t> words_;
  CUstream stream_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  CUdeviceptr at_ = 0;     // the address under test
  CUdeviceptr aside_ = 0;  // where the host memory is filled, as a slot is
  CUdeviceptr shown_[2] = {};
  CUmemGenericAllocationHandle on_device_ = 0;
  CUmemGenericAllocationHandle on_host_ = 0;
};

Probe::~Probe() {
  if (stream_ != nullptr) real<Entry::cuStreamSynchronize>()(stream_);
  for (const CUdeviceptr at : shown_) {
    if (at != 0) real<Entry::cuMemUnmap>()(at, bytes_);
  }
  if (on_host_ != 0) real<Entry::cuMemRelease>()(on_host_);
  if (on_device_ != 0) real<Entry::cuMemRelease>()(on_device_);
  if (aside_ != 0) real<Entry::cuMemAddressFree>()(aside_, bytes_);
  if (at_ != 0) real<Entry::cuMemAddressFree>()(at_, bytes_);
  if (module_ != nullptr) real<Entry::cuModuleUnload>()(module_);
  if (stream_ != nullptr) real<Entry::cuStreamDestroy_v2>()(stream_);
}

bool Probe::prepare() {
  return ok(real<Entry::cuStreamCreate>()(&stream_, CU_STREAM_NON_BLOCKING)) &&
         ok(real<Entry::cuModuleLoadData>()(&module_, kProbeKernel)) &&
         ok(real<Entry::cuModuleGetFunction>()(&kernel_, module_, kProbeKernelName)) &&
         ok(real<Entry::cuMemAddressReserve>()(&at_, bytes_, 0, 0, 0)) &&
         ok(real<Entry::cuMemAddressReserve>()(&aside_, bytes_, 0, 0, 0)) &&
         create(device_memory(device_), &on_device_);
}

bool Probe::show(CUdeviceptr at, CUmemGenericAllocationHandle handle, bool cpu) {
  if (!ok(real<Entry::cuMemMap>()(at, bytes_, 0, handle, 0))) return false;
  shown_[at == at_ ? 0 : 1] = at;
  const CUmemAccessDesc access[] = {
      {{CU_MEM_LOCATION_TYPE_DEVICE, device_.device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
      {device_.host, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
  };
  return ok(real<Entry::cuMemSetAccess>()(at, bytes_, access, cpu ? 2 : 1));
}

bool Probe::hide(CUdeviceptr at) {
  if (!ok(real<Entry::cuStreamSynchronize>()(stream_)) ||
      !ok(real<Entry::cuMemUnmap>()(at, bytes_)))
    return false;
  shown_[at == at_ ? 0 : 1] = 0;
  return true;
}

bool Probe::add_one() {
  auto count = static_cast<uint32_t>(words_.size());
  void* arguments[] = {&at_, &count};
  return ok(real<Entry::cuLaunchKernel>()(kernel_, kBlocks, 1, 1, kThreads, 1, 1, 0, stream_,
                                          arguments, nullptr)) &&
         ok(real<Entry::cuStreamSynchronize>()(stream_));
}

bool Probe::write(uint32_t seed) {
  for (size_t i = 0; i < words_.size(); ++i)
    words_[i] = seed + static_cast<uint32_t>(i) * 2654435761u;
  return ok(real<Entry::cuMemcpyHtoDAsync_v2>()(at_, words_.data(), word_bytes(), stream_)) &&
         ok(real<Entry::cuStreamSynchronize>()(stream_));
}

bool Probe::holds(uint32_t seed) {
  for (uint32_t& word : words_) word = 0;
  if (!ok(real<Entry::cuMemcpyDtoHAsync_v2>()(words_.data(), at_, word_bytes(), stream_)) ||
      !ok(real<Entry::cuStreamSynchronize>()(stream_))) {
    return false;
  }
  for (size_t i = 0; i < words_.size(); ++i) {
    if (words_[i] != seed + static_cast<uint32_t>(i) * 2654435761u) return false;
  }
  return true;
}

// The way of a buffer that is evicted, touched by a stray kernel, and restored.
const char* Probe::run() {
  constexpr uint32_t kSeed = 20;
  if (!prepare()) return "the probe could not be set up";
  if (!create(host_memory(device_), &on_host_)) return "host memory cannot be made mappable";
  if (!show(at_, on_device_, false) || !write(kSeed) || !add_one() || !holds(kSeed + 1)) {
    return "device memory does not work at a reserved address";
  }
  if (!show(aside_, on_host_, true)) return "host memory cannot be mapped for the GPU";
  if (!ok(real<Entry::cuMemcpyAsync>()(aside_, at_, word_bytes(), stream_)))
    return "host memory cannot be copied to";
  if (!hide(at_)) return "device memory cannot be unmapped";
  if (!show(at_, on_host_, false)) return "host memory cannot be mapped where device memory was";
  if (!add_one()) return "a kernel cannot use host memory at a device address";
  if (!holds(kSeed + 2)) return "a kernel writes host memory wrongly";
  if (!hide(at_) || !show(at_, on_device_, false))
    return "device memory cannot be mapped where host memory was";
  if (!ok(real<Entry::cuMemcpyAsync>()(at_, aside_, word_bytes(), stream_)) || !add_one() ||
      !holds(kSeed + 3)) {
    return "content does not survive the way to host memory and back";
  }
  return nullptr;
}

}  // namespace

const char* probe_host_mapping(const Device& device) {
  const OwnCall call(device.context);
  return Probe(device).run();
}

}  // namespace offload
