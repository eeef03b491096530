// SPDX-License-Identifier: Apache-2.0
#pragma once
// Code images (fat binaries, cubins, PTX text) and the kernels in them, as the rest of the
// simulated driver sees them. Knows nothing of contexts, streams or memory. Thread-safe: all
// objects are immutable.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/simgpu/twin.h"

namespace simgpu {

struct KernelParameter {
  size_t offset;  // bytes into the parameter buffer
  size_t size;    // bytes
};

// Asked before each access that a kernel makes; implemented by the executor.
class AccessSink {
 public:
  virtual ~AccessSink() = default;
  // False: these bytes are not mapped for the device (or not for writing). The kernel must stop at
  // once and return false from run().
  virtual bool access(uintptr_t address, size_t bytes, bool write) = 0;
  // How many bytes of the buffer that holds `address` follow it; asked for kernels of unknown
  // effect only. 0: it holds no buffer, and the kernel leaves it alone.
  virtual size_t extent(uintptr_t address) {
    (void)address;
    return 0;
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  const std::string& name() const { return name_; }
  const std::vector<KernelParameter>& parameters() const { return parameters_; }
  // Runs the whole grid on the calling thread. Reports accesses before they happen: once for the
  // launch where a twin declares them, one by one where PTX is interpreted. Returns false if the
  // sink refused an access.
  virtual bool run(const SimgpuLaunch& launch, void* const* arguments, AccessSink& sink) const = 0;
  virtual double flops(const SimgpuLaunch& launch, void* const* arguments) const = 0;
  // True: run() reports nothing, and all that the arguments name counts as read and written.
  virtual bool access_unknown() const = 0;

 protected:
  std::string name_;
  std::vector<KernelParameter> parameters_;
};

class Image {
 public:
  virtual ~Image() = default;
  // Null: no such kernel. The image owns it.
  virtual const Kernel* find(const std::string& name) const = 0;
  virtual std::vector<const Kernel*> kernels() const = 0;
};

// `data` is what cuModuleLoadData, cuLibraryLoadData and __cudaRegisterFatBinary get: a fat-binary
// wrapper, a fat binary, an ELF cubin or PTX text. Which kernels exist comes from the image; what
// one does comes from a twin of its name, else from interpreting its PTX, else it is unknown
// (access_unknown; its contents are mixed, see README.md). Null and `error` set if the image cannot
// be read. The fat binary behind a wrapper is read when a kernel is first looked for, so it must
// live as long as the image, as a program's registered code does; everything else is copied.
std::shared_ptr<const Image> load_image(const void* data, std::string* error);

}  // namespace simgpu
