// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/simgpu/module/cubin.h"
#include "tests/simgpu/module/fatbin.h"
#include "tests/simgpu/module/kernels.h"
#include "tests/simgpu/module/module.h"
#include "tests/simgpu/module/ptx/interpreter.h"
#include "tests/simgpu/module/ptx/kernel.h"
#include "tests/simgpu/module/ptx/parser.h"
#include "tests/simgpu/module/twins.h"

namespace simgpu {
namespace {

constexpr unsigned kArchitecture = 80;  // what the simulated devices are

void say(const std::string& what) {
  std::fprintf(stderr, "simgpu: %s\n", what.c_str());
}

// Reads as little as it can: a training framework's libraries hold hundreds of megabytes of code,
// of which a run uses a few kernels. The lock guards the reading; a kernel never changes once it is
// there.
class CodeImage final : public Image {
 public:
  explicit CodeImage(std::string copy) : copy_(std::move(copy)) {}

  // The bytes that the image owns, for entries to point into.
  const std::string& copy() const { return copy_; }

  void add_entries(const std::vector<FatbinEntry>& entries) {
    for (const FatbinEntry& entry : entries) {
      if (entry.kind == CodeKind::kPtx) ptx_.push_back(entry);
      // The device's own architecture first: its cubin names all kernels, so the others stay
      // packed.
      if (entry.kind != CodeKind::kCubin) continue;
      cubins_.insert(entry.architecture == kArchitecture ? cubins_.begin() : cubins_.end(), entry);
    }
  }

  void add_programs(std::vector<ptx::Program>&& programs) {
    for (ptx::Program& program : programs) programs_.try_emplace(program.name, std::move(program));
  }

  void add_cubin(const std::vector<CubinKernel>& kernels) {
    for (const CubinKernel& kernel : kernels) layouts_.try_emplace(kernel.name, kernel.parameters);
  }

  const Kernel* find(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    return find_locked(name);
  }

  std::vector<const Kernel*> kernels() const override {
    const std::lock_guard lock(mutex_);
    while (read_next_cubin()) {
    }
    read_ptx();
    std::vector<const Kernel*> all;
    for (const auto& [name, layout] : layouts_) all.push_back(find_locked(name));
    for (const auto& [name, program] : programs_) {
      if (!layouts_.contains(name)) all.push_back(find_locked(name));
    }
    return all;
  }

 private:
  const Kernel* find_locked(const std::string& name) const {
    auto found = kernels_.find(name);
    if (found == kernels_.end()) {
      auto kernel = make(name);
      if (kernel == nullptr) return nullptr;
      found = kernels_.emplace(name, std::move(kernel)).first;
    }
    return found->second.get();
  }

  std::unique_ptr<Kernel> make(const std::string& name) const {
    while (!layouts_.contains(name) && read_next_cubin()) {
    }
    const auto layout = layouts_.find(name);
    if (const SimgpuTwin* twin = find_twin(name)) {
      auto kernel = std::make_unique<TwinKernel>(*twin);
      if (layout != layouts_.end()) check_layout(*kernel, layout->second);
      return kernel;
    }
    read_ptx();
    const auto program = programs_.find(name);
    std::string why;
    if (program != programs_.end()) {
      why = ptx::find_unsupported(program->second);
      if (why.empty()) return std::make_unique<ptx::PtxKernel>(program->second);
      say("kernel " + name + " is of unknown effect: its PTX has " + why);
    }
    if (layout == layouts_.end() && program == programs_.end()) return nullptr;
    if (why.empty()) warn_of_made_up_results(name);
    return std::make_unique<UnknownKernel>(
        name, layout != layouts_.end() ? layout->second : program->second.parameters);
  }

  static void warn_of_made_up_results(const std::string& name) {
    static std::atomic<bool> said = false;
    if (said.exchange(true)) return;
    say("kernel " + name +
        " has neither a twin nor PTX: what it writes is made up from what it is given, and so are "
        "the "
        "results of all others like it");
  }

  static void check_layout(const Kernel& twin, const std::vector<KernelParameter>& image) {
    bool same = twin.parameters().size() == image.size();
    for (size_t i = 0; same && i < image.size(); ++i) {
      same = twin.parameters()[i].offset == image[i].offset &&
             twin.parameters()[i].size == image[i].size;
    }
    if (!same) say("the twin of " + twin.name() + " declares other parameters than the kernel has");
  }

  bool read_next_cubin() const {
    if (next_cubin_ == cubins_.size()) return false;
    const FatbinEntry& entry = cubins_[next_cubin_++];
    std::string code;
    std::string error;
    std::vector<CubinKernel> kernels;
    if (unpack(entry, &code, &error) && read_cubin(code.data(), code.size(), &kernels, &error)) {
      for (CubinKernel& kernel : kernels) layouts_.try_emplace(kernel.name, kernel.parameters);
    } else {
      say(error);
    }
    return true;
  }

  void read_ptx() const {
    for (; next_ptx_ < ptx_.size(); ++next_ptx_) {
      std::string code;
      std::string error;
      std::vector<ptx::Program> programs;
      if (!unpack(ptx_[next_ptx_], &code, &error) ||
          !ptx::parse_module(code.c_str(), &programs, &error)) {
        say(error);
      }
      for (ptx::Program& program : programs) {
        programs_.try_emplace(program.name, std::move(program));
      }
    }
  }

  const std::string copy_;
  std::vector<FatbinEntry> cubins_;
  std::vector<FatbinEntry> ptx_;
  mutable std::mutex mutex_;
  mutable size_t next_cubin_ = 0;
  mutable size_t next_ptx_ = 0;
  mutable std::map<std::string, std::vector<KernelParameter>> layouts_;
  mutable std::map<std::string, ptx::Program> programs_;
  mutable std::map<std::string, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace

std::shared_ptr<const Image> load_image(const void* data, std::string* error) {
  std::vector<FatbinEntry> entries;
  if (const void* fatbin = fatbin_of_wrapper(data)) {
    auto image = std::make_shared<CodeImage>(std::string());
    if (!read_fatbin(fatbin, &entries, error)) return nullptr;
    image->add_entries(entries);
    return image;
  }
  uint32_t magic = 0;
  std::memcpy(&magic, data, sizeof(magic));
  if (magic == kFatbinMagic) {
    auto image = std::make_shared<CodeImage>(
        std::string(static_cast<const char*>(data), fatbin_bytes(data)));
    if (!read_fatbin(image->copy().data(), &entries, error)) return nullptr;
    image->add_entries(entries);
    return image;
  }
  auto image = std::make_shared<CodeImage>(std::string());
  if (is_elf(data)) {
    std::vector<CubinKernel> kernels;
    if (!read_cubin(data, elf_bytes(data), &kernels, error)) return nullptr;
    image->add_cubin(kernels);
    return image;
  }
  std::vector<ptx::Program> programs;
  if (!ptx::parse_module(static_cast<const char*>(data), &programs, error)) return nullptr;
  image->add_programs(std::move(programs));
  return image;
}

}  // namespace simgpu
