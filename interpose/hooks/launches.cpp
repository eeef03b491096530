// SPDX-License-Identifier: Apache-2.0
// Kernel launches: what their arguments name.

#include "interpose/driver/own_call.h"
#include "interpose/hooks/define.h"
#include "interpose/hooks/foreign_callers.h"
#include "interpose/hooks/kernel_names.h"
#include "interpose/life/fail_closed.h"
#include "interpose/naming/ask_driver.h"
#include "interpose/naming/scan.h"
#include "interpose/rules.h"

namespace offload {
namespace {

// A kernel that was not launched before: often the first of a library that was loaded just now.
const Layout* learn_layout(Operation& operation, CUfunction function, const void* caller) {
  look_for_bypasses();
  const RelaxedCapture relaxed;  // the first question may load the kernel
  const Layout* layout = operation.layouts().learn(function);
  const bool communicates =
      (caller != nullptr && from_communication_library(caller)) || is_collective(function);
  if (communicates && obeys(Rule::kCollectivesWait))
    layout->communicates.store(true, std::memory_order_relaxed);
  return layout;
}

}  // namespace

CUresult name_arguments(Operation& operation, CUfunction function, void** parameters, void** extra,
                        const void* caller) {
  statistics().launches.add();
  if (function == nullptr) return CUDA_SUCCESS;  // the driver refuses it
  const Layout* layout = operation.layouts().find(function);
  if (layout == nullptr) [[unlikely]]
    layout = learn_layout(operation, function, caller);
  if (layout->communicates.load(std::memory_order_relaxed)) [[unlikely]]
    operation.may_wait();
  if (extra != nullptr) {
    const void* block = nullptr;
    size_t bytes = 0;
    if (!find_argument_block(extra, &block, &bytes)) return CUDA_SUCCESS;  // the driver refuses it
    if (obeys(Rule::kArgumentBlockIsNamed)) operation.name_words(block, bytes);
    return CUDA_SUCCESS;
  }
  if (!layout->known && !given_up()) [[unlikely]]
    give_up(Reason::no_layouts, "the driver does not tell the parameters of a kernel");
  if (parameters == nullptr) return CUDA_SUCCESS;
  operation.with_naming([&](auto&& name) { name_parameters(*layout, parameters, name); });
  return CUDA_SUCCESS;
}

void look_for_device_updates(CUlaunchAttributeID attribute) {
  if (attribute != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) return;
  give_up(Reason::unknown_entry, "the GPU is to change what nodes of a graph name");
}

template <Entry E>
CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CUstream stream, void** parameters, void** extra) {
  const void* caller = __builtin_return_address(0);
  const auto name = [&](Operation& operation) {
    return name_arguments(operation, function, parameters, extra, caller);
  };
  return operate<E>(stream, name, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                    shared_bytes, stream, parameters, extra);
}

template <Entry E>
CUresult launch_kernel_ex(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  if (config == nullptr) return real<E>()(config, function, parameters, extra);
  const void* caller = __builtin_return_address(0);
  const auto name = [&](Operation& operation) {
    if (operation.recording()) [[unlikely]] {
      for (unsigned i = 0; config->attrs != nullptr && i < config->numAttrs; ++i)
        look_for_device_updates(config->attrs[i].id);
    }
    return name_arguments(operation, function, parameters, extra, caller);
  };
  return operate<E>(config->hStream, name, config, function, parameters, extra);
}

template <Entry E>
CUresult launch_cooperative_kernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void** parameters) {
  const void* caller = __builtin_return_address(0);
  const auto name = [&](Operation& operation) {
    return name_arguments(operation, function, parameters, nullptr, caller);
  };
  return operate<E>(stream, name, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                    shared_bytes, stream, parameters);
}

}  // namespace offload

#define FAMILY_launches DEFINE_HOOK
#include "interpose/hooks/families.h"
