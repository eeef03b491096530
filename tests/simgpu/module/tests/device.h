// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device memory for kernels under test: one buffer at made-up addresses, and a sink that records
// accesses and refuses those outside.

#include <cstring>
#include <string>
#include <vector>

#include "tests/simgpu/module/module.h"

namespace simgpu::test {

struct Access {
  uintptr_t address;
  size_t bytes;
  bool write;
  bool operator==(const Access&) const = default;
};

class Device : public AccessSink {
 public:
  static constexpr uintptr_t kBase = 0x5B3D9A400000;

  explicit Device(size_t bytes) : memory_(bytes) {}

  // The address of byte `offset` as a program holds it.
  uintptr_t address(size_t offset = 0) const { return kBase + offset; }

  template <class T>
  T get(size_t offset) const {
    T value;
    std::memcpy(&value, memory_.data() + offset, sizeof(value));
    return value;
  }
  template <class T>
  void set(size_t offset, T value) {
    std::memcpy(memory_.data() + offset, &value, sizeof(value));
  }
  const std::vector<unsigned char>& bytes() const { return memory_; }

  bool access(uintptr_t address, size_t bytes, bool write) override {
    accesses.push_back({address, bytes, write});
    return address >= kBase && address - kBase <= memory_.size() &&
           bytes <= memory_.size() - (address - kBase);
  }
  size_t extent(uintptr_t address) override {
    const uintptr_t offset = address - kBase;
    if (offset >= memory_.size()) return 0;
    return std::min(buffer_bytes - offset % buffer_bytes, memory_.size() - offset);
  }

  SimgpuLaunch launch(unsigned grid, unsigned block, unsigned shared_bytes = 0) const {
    SimgpuLaunch launch{};
    launch.grid[0] = grid;
    launch.block[0] = block;
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    launch.shared_bytes = shared_bytes;
    launch.window_begin = kBase;
    launch.window_end = kBase + (uintptr_t{1} << 40);
    launch.pointer_delta =
        reinterpret_cast<intptr_t>(memory_.data()) - static_cast<intptr_t>(kBase);
    return launch;
  }

  // Runs with these values as arguments, each laid out as its own type.
  template <class... Values>
  bool run(const Kernel& kernel, const SimgpuLaunch& launch, Values... values) {
    void* arguments[] = {&values..., nullptr};
    return kernel.run(launch, arguments, *this);
  }

  std::vector<Access> accesses;
  size_t buffer_bytes = 4096;  // what extent() takes for one allocation

 private:
  std::vector<unsigned char> memory_;
};

inline std::shared_ptr<const Image> load_text(const std::string& text) {
  std::string error;
  auto image = load_image(text.c_str(), &error);
  if (image == nullptr) throw std::runtime_error(error);
  return image;
}

// One kernel "k" whose body computes into the 64-bit register %result, stored at the address given
// as its only parameter. Registers %rd0-7 (b64), %r0-7 (b32), %h0-3 (b16), %f0-7, %d0-7 and %p0-3
// are at hand.
inline std::string program(const std::string& body) {
  return ".version 7.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 out)\n{\n"
         ".reg .b64 %result; .reg .b64 %out; .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .b16 %h<4>;\n"
         ".reg .f32 %f<8>; .reg .f64 %d<8>; .reg .pred %p<4>;\n"
         "ld.param.u64 %out, [out];\nmov.u64 %result, 0;\n" +
         body + "\nst.global.u64 [%out], %result;\nret;\n}\n";
}

// What the body leaves in %result.
inline uint64_t evaluate(const std::string& body) {
  const auto image = load_text(program(body));
  const Kernel* kernel = image->find("k");
  if (kernel == nullptr || kernel->access_unknown()) throw std::runtime_error("not interpreted");
  Device device(64);
  if (!device.run(*kernel, device.launch(1, 1), device.address())) {
    throw std::runtime_error("run failed");
  }
  return device.get<uint64_t>(0);
}

}  // namespace simgpu::test
