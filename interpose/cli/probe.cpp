// SPDX-License-Identifier: Apache-2.0
// What only a GPU can tell: whether and at what cost its driver does what the engine asks of it.
// Prints one line a measurement: name, value, unit.

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "interpose/cli/commands.h"
#include "interpose/cli/doctor.h"
#include "interpose/cli/driver.h"
#include "interpose/cli/probe_kernels.h"

namespace offload::cli {
namespace {

constexpr std::size_t kBuffer = 64 << 20;  // bytes; a multiple of every granularity in use
constexpr int kRepeats = 20;

double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void tell(const std::string& name, double value, const char* unit) {
  std::printf("%-52s %12.2f %s\n", name.c_str(), value, unit);
}
void tell(const std::string& name, const std::string& text) {
  std::printf("%-52s %s\n", name.c_str(), text.c_str());
}

// One device with its own context; everything is released when the process ends.
class Probe {
 public:
  explicit Probe(const Driver& driver) : driver_(driver) {}
  bool start();
  bool right() const { return right_; }  // false: the driver returned other data than were written
  void remap_round_trip();
  void second_address_under_a_kernel();
  void mapping_costs();
  void launch_stalls();
  void link_rates();
  void attributes_of_host_memory();

 private:
  bool check(CUresult code, const char* what) {
    if (code == CUDA_SUCCESS) return true;
    tell(what, driver_.name(code));
    return false;
  }
  CUmemAllocationProp properties(bool host) const;
  bool create(bool host, std::size_t bytes, CUmemGenericAllocationHandle* out);
  bool show(CUdeviceptr at, std::size_t bytes, CUmemGenericAllocationHandle handle, bool host);
  bool launch(CUfunction kernel, CUdeviceptr words, unsigned count, unsigned passes);
  bool first_word(CUdeviceptr at, unsigned* out);
  bool fill(CUdeviceptr words, unsigned value, std::size_t count);
  bool copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);

  const Driver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUfunction add_ = nullptr;
  int node_ = 0;
  bool right_ = true;
};

bool Probe::start() {
  CUmodule module = nullptr;
  char name[128] = "";
  if (!check(CALL(driver_, cuInit, 0u), "cuInit") ||
      !check(CALL(driver_, cuDeviceGet, &device_, 0), "cuDeviceGet") ||
      !check(CALL(driver_, cuDevicePrimaryCtxRetain, &context_, device_),
             "cuDevicePrimaryCtxRetain") ||
      !check(CALL(driver_, cuCtxSetCurrent, context_), "cuCtxSetCurrent") ||
      !check(CALL(driver_, cuStreamCreate, &stream_, unsigned{CU_STREAM_NON_BLOCKING}),
             "cuStreamCreate") ||
      !check(CALL(driver_, cuModuleLoadData, &module, static_cast<const void*>(kAddPasses)),
             "cuModuleLoadData") ||
      !check(CALL(driver_, cuModuleGetFunction, &add_, module, "add_passes"),
             "cuModuleGetFunction")) {
    return false;
  }
  CALL(driver_, cuDeviceGetName, name, 127, device_);
  CALL(driver_, cuDeviceGetAttribute, &node_, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device_);
  node_ = std::max(node_, 0);
  tell("device", name);
  return true;
}

CUmemAllocationProp Probe::properties(bool host) const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = host ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = host ? node_ : device_;
  return properties;
}

bool Probe::create(bool host, std::size_t bytes, CUmemGenericAllocationHandle* out) {
  const CUmemAllocationProp wanted = properties(host);
  return check(CALL(driver_, cuMemCreate, out, bytes, &wanted, 0ull),
               host ? "cuMemCreate on the host" : "cuMemCreate");
}

bool Probe::show(CUdeviceptr at, std::size_t bytes, CUmemGenericAllocationHandle handle,
                 bool host) {
  if (!check(CALL(driver_, cuMemMap, at, bytes, std::size_t{0}, handle, 0ull), "cuMemMap"))
    return false;
  CUmemAccessDesc access[2] = {};
  access[0].location = properties(false).location;
  access[1].location = properties(true).location;
  access[0].flags = access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return check(CALL(driver_, cuMemSetAccess, at, bytes, access, std::size_t{host ? 2u : 1u}),
               "cuMemSetAccess");
}

bool Probe::launch(CUfunction kernel, CUdeviceptr words, unsigned count, unsigned passes) {
  void* arguments[] = {&words, &count, &passes};
  return check(CALL(driver_, cuLaunchKernel, kernel, 8u, 1u, 1u, 64u, 1u, 1u, 0u, stream_,
                    arguments, static_cast<void**>(nullptr)),
               "cuLaunchKernel");
}

bool Probe::first_word(CUdeviceptr at, unsigned* out) {
  return check(CALL(driver_, cuStreamSynchronize, stream_), "cuStreamSynchronize") &&
         check(CALL(driver_, cuMemcpyDtoH, static_cast<void*>(out), at, sizeof *out),
               "cuMemcpyDtoH");
}

// On the probe's own stream, which does not wait for the default one.
bool Probe::fill(CUdeviceptr words, unsigned value, std::size_t count) {
  return check(CALL(driver_, cuMemsetD32Async, words, value, count, stream_), "cuMemsetD32Async");
}
bool Probe::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return check(CALL(driver_, cuMemcpyDtoDAsync, to, from, bytes, stream_), "cuMemcpyDtoDAsync") &&
         check(CALL(driver_, cuStreamSynchronize, stream_), "cuStreamSynchronize");
}

// Device memory, then host memory, then device memory at one address: a kernel and copies see each.
void Probe::remap_round_trip() {
  constexpr std::size_t kBytes = 2 << 20;
  constexpr unsigned kWords = 1024;
  CUdeviceptr at = 0;
  CUdeviceptr aside = 0;
  CUmemGenericAllocationHandle on_device = 0;
  CUmemGenericAllocationHandle on_host = 0;
  unsigned value = 0;
  const bool done =
      check(CALL(driver_, cuMemAddressReserve, &at, kBytes, std::size_t{0}, CUdeviceptr{0}, 0ull),
            "reserve") &&
      check(
          CALL(driver_, cuMemAddressReserve, &aside, kBytes, std::size_t{0}, CUdeviceptr{0}, 0ull),
          "reserve") &&
      create(false, kBytes, &on_device) && create(true, kBytes, &on_host) &&
      show(at, kBytes, on_device, false) && show(aside, kBytes, on_host, true) &&
      fill(at, 5, kBytes / sizeof(unsigned)) && launch(add_, at, kWords, 1) &&
      check(CALL(driver_, cuStreamSynchronize, stream_), "kernel on device memory") &&
      copy(aside, at, kBytes) && check(CALL(driver_, cuMemUnmap, at, kBytes), "cuMemUnmap") &&
      show(at, kBytes, on_host, false) && launch(add_, at, kWords, 1) &&
      check(CALL(driver_, cuStreamSynchronize, stream_), "kernel on host memory") &&
      check(CALL(driver_, cuMemUnmap, at, kBytes), "cuMemUnmap") &&
      show(at, kBytes, on_device, false) && copy(at, aside, kBytes) &&
      launch(add_, at, kWords, 1) && first_word(at, &value);
  if (done && value != 8) right_ = false;
  tell("one address: device, host, device", !done ? "failed" : value == 8 ? "right" : "wrong data");
}

// What the hand-over does: the new owner's address is mapped while the old owner's kernel still
// runs.
void Probe::second_address_under_a_kernel() {
  constexpr std::size_t kBytes = 2 << 20;
  constexpr unsigned kWords = 4 << 10;
  constexpr unsigned kPasses = 4000;
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  CUmemGenericAllocationHandle handle = 0;
  if (!check(
          CALL(driver_, cuMemAddressReserve, &first, kBytes, std::size_t{0}, CUdeviceptr{0}, 0ull),
          "reserve") ||
      !check(
          CALL(driver_, cuMemAddressReserve, &second, kBytes, std::size_t{0}, CUdeviceptr{0}, 0ull),
          "reserve") ||
      !create(false, kBytes, &handle) || !show(first, kBytes, handle, false)) {
    return;
  }
  if (!fill(first, 0, kWords) ||
      !check(CALL(driver_, cuStreamSynchronize, stream_), "cuStreamSynchronize") ||
      !launch(add_, first, kWords, kPasses)) {
    return;
  }
  const double begin = now_us();
  const bool mapped = show(second, kBytes, handle, false);
  const double mapped_after = now_us() - begin;
  const bool ran_on = CALL(driver_, cuStreamQuery, stream_) == CUDA_ERROR_NOT_READY;
  unsigned value = 0;
  const bool read = mapped && first_word(second, &value);
  if (read && value != kPasses) right_ = false;
  tell("second address mapped under a running kernel", mapped_after, "us");
  tell("the kernel ran on meanwhile", ran_on ? "yes" : "no (or it was too short to tell)");
  tell("both addresses show the same", read && value == kPasses ? "right" : "wrong");
}

void Probe::mapping_costs() {
  for (const bool host : {false, true}) {
    for (const std::size_t bytes :
         {std::size_t{2} << 20, std::size_t{16} << 20, std::size_t{32} << 20}) {
      std::vector<double> create_us;
      std::vector<double> map_us;
      std::vector<double> access_us;
      std::vector<double> unmap_us;
      CUdeviceptr at = 0;
      if (!check(
              CALL(driver_, cuMemAddressReserve, &at, bytes, std::size_t{0}, CUdeviceptr{0}, 0ull),
              "reserve"))
        return;
      const CUmemAllocationProp wanted = properties(host);
      CUmemAccessDesc access{};
      access.location = properties(false).location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      for (int i = 0; i < kRepeats; ++i) {
        CUmemGenericAllocationHandle handle = 0;
        double begin = now_us();
        if (!check(CALL(driver_, cuMemCreate, &handle, bytes, &wanted, 0ull), "cuMemCreate"))
          return;
        create_us.push_back(now_us() - begin);
        begin = now_us();
        CALL(driver_, cuMemMap, at, bytes, std::size_t{0}, handle, 0ull);
        map_us.push_back(now_us() - begin);
        begin = now_us();
        CALL(driver_, cuMemSetAccess, at, bytes, &access, std::size_t{1});
        access_us.push_back(now_us() - begin);
        begin = now_us();
        CALL(driver_, cuMemUnmap, at, bytes);
        unmap_us.push_back(now_us() - begin);
        CALL(driver_, cuMemRelease, handle);
      }
      const std::string size = std::to_string(bytes >> 20) + " MiB " + (host ? "host" : "device");
      tell("create " + size, median(create_us), "us");
      tell("map " + size, median(map_us), "us");
      tell("set access " + size, median(access_us), "us");
      tell("unmap " + size, median(unmap_us), "us");
    }
  }
}

// Launches from this thread while another maps and unmaps memory that nobody uses.
void Probe::launch_stalls() {
  constexpr std::size_t kBytes = 16 << 20;
  constexpr int kLaunches = 2000;
  CUdeviceptr words = 0;
  if (!check(CALL(driver_, cuMemAlloc, &words, std::size_t{4096}), "cuMemAlloc") ||
      !fill(words, 0, 4096 / sizeof(unsigned))) {
    return;
  }
  for (const bool busy : {false, true}) {
    std::atomic<bool> stop{false};
    std::atomic<int> remaps{0};
    std::thread mapper;
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle handle = 0;
    if (busy) {
      if (!check(
              CALL(driver_, cuMemAddressReserve, &at, kBytes, std::size_t{0}, CUdeviceptr{0}, 0ull),
              "reserve") ||
          !create(false, kBytes, &handle)) {
        return;
      }
      mapper = std::thread([&] {
        CALL(driver_, cuCtxSetCurrent, context_);
        while (!stop.load()) {
          if (!show(at, kBytes, handle, false)) break;
          CALL(driver_, cuMemUnmap, at, kBytes);
          ++remaps;
        }
      });
    }
    std::vector<double> times;
    for (int i = 0; i < kLaunches; ++i) {
      const double begin = now_us();
      launch(add_, words, 64, 1);
      times.push_back(now_us() - begin);
      if (i % 256 == 255) CALL(driver_, cuStreamSynchronize, stream_);
    }
    stop.store(true);
    if (mapper.joinable()) mapper.join();
    CALL(driver_, cuStreamSynchronize, stream_);
    const std::string when = busy ? " while another thread remaps" : " on its own";
    std::sort(times.begin(), times.end());
    tell("launch, median" + when, times[times.size() / 2], "us");
    tell("launch, 99th percentile" + when, times[times.size() * 99 / 100], "us");
    if (busy) tell("remaps meanwhile", remaps.load(), "");
  }
}

void Probe::link_rates() {
  void* host[2] = {};
  CUdeviceptr device[2] = {};
  CUstream streams[2] = {};
  for (int i = 0; i < 2; ++i) {
    if (!check(CALL(driver_, cuMemHostAlloc, &host[i], kBuffer, 0u), "cuMemHostAlloc") ||
        !check(CALL(driver_, cuMemAlloc, &device[i], kBuffer), "cuMemAlloc") ||
        !check(CALL(driver_, cuStreamCreate, &streams[i], unsigned{CU_STREAM_NON_BLOCKING}),
               "cuStreamCreate")) {
      return;
    }
  }
  const auto rate = [&](bool out, bool in) {
    const double begin = now_us();
    for (int i = 0; i < kRepeats; ++i) {
      if (out) CALL(driver_, cuMemcpyDtoHAsync, host[0], device[0], kBuffer, streams[0]);
      if (in)
        CALL(driver_, cuMemcpyHtoDAsync, device[1], static_cast<const void*>(host[1]), kBuffer,
             streams[1]);
    }
    CALL(driver_, cuStreamSynchronize, streams[0]);
    CALL(driver_, cuStreamSynchronize, streams[1]);
    return static_cast<double>(kBuffer) * kRepeats / (now_us() - begin) / 1e3;  // bytes/us = MB/s
  };
  // Pages that nobody has written could cost nothing to copy.
  if (!fill(device[0], 1, kBuffer / sizeof(unsigned)) ||
      !check(CALL(driver_, cuStreamSynchronize, stream_), "cuStreamSynchronize")) {
    return;
  }
  std::memset(host[1], 1, kBuffer);
  rate(true, true);  // warm
  tell("device to host alone", rate(true, false), "GB/s");
  tell("host to device alone", rate(false, true), "GB/s");
  tell("each way, both at once", rate(true, true), "GB/s");
}

// What the driver says of an address whose content has left, in the midst of a reservation, after a
// kernel has used it: programs ask, so liboffload must answer for it.
void Probe::attributes_of_host_memory() {
  constexpr std::size_t kBytes = 2 << 20;
  CUdeviceptr window = 0;
  CUmemGenericAllocationHandle on_device = 0;
  CUmemGenericAllocationHandle on_host = 0;
  if (!check(CALL(driver_, cuMemAddressReserve, &window, 16 * kBytes, std::size_t{0},
                  CUdeviceptr{0}, 0ull),
             "reserve")) {
    return;
  }
  const CUdeviceptr at = window + 8 * kBytes;
  if (!create(false, kBytes, &on_device) || !create(true, kBytes, &on_host) ||
      !show(at, kBytes, on_device, false) || !fill(at, 1, 1024) || !launch(add_, at, 1024, 1) ||
      !check(CALL(driver_, cuStreamSynchronize, stream_), "cuStreamSynchronize") ||
      !check(CALL(driver_, cuMemUnmap, at, kBytes), "cuMemUnmap") ||
      !show(at, kBytes, on_host, false)) {
    return;
  }
  const struct {
    const char* name;
    CUpointer_attribute attribute;
  } asked[] = {{"memory type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
               {"device ordinal", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
               {"device pointer", CU_POINTER_ATTRIBUTE_DEVICE_POINTER},
               {"range size", CU_POINTER_ATTRIBUTE_RANGE_SIZE},
               {"mapped", CU_POINTER_ATTRIBUTE_MAPPED}};
  for (const auto& one : asked) {
    unsigned long long value = 0;
    const CUresult code =
        CALL(driver_, cuPointerGetAttribute, static_cast<void*>(&value), one.attribute, at);
    tell(std::string("host memory at a device address: ") + one.name,
         code == CUDA_SUCCESS ? std::to_string(value) : driver_.name(code));
  }
}

}  // namespace

int run_probe() {
  const Driver driver("libcuda.so.1");
  if (!driver.loaded()) {
    std::fprintf(stderr, "offload doctor --probe: %s; install NVIDIA's driver\n",
                 driver.error().c_str());
    return kExitProblem;
  }
  Probe probe(driver);
  if (!probe.start()) return kExitProblem;
  probe.remap_round_trip();
  probe.second_address_under_a_kernel();
  probe.mapping_costs();
  probe.launch_stalls();
  probe.link_rates();
  probe.attributes_of_host_memory();
  return probe.right() ? kExitDone : kExitProblem;
}

}  // namespace offload::cli
