// SPDX-License-Identifier: Apache-2.0
// Linking. There is no linker here: what comes in is kept, and what comes out is an image with the
// same kernels. One cubin, fat binary or PTX text comes out as it went in; several PTX texts become
// one. What would have to be compiled or put together otherwise is CUDA_ERROR_NOT_SUPPORTED.
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "tests/simgpu/driver/call.h"
#include "tests/simgpu/driver/handle_pool.h"
#include "tests/simgpu/driver/say.h"
#include "tests/simgpu/module/module.h"

using simgpu::Call;
using simgpu::Needs;

namespace {

struct Link {
  std::string image;  // with a null character at its end, as PTX text wants it
  CUjitInputType type = CU_JIT_INPUT_CUBIN;
  int inputs = 0;
  bool complete = false;
  std::vector<void**> log_sizes;  // "on output, the amount of log buffer filled"
};

simgpu::HandlePool<Link>& links() {
  static auto* pool = new simgpu::HandlePool<Link>;
  return *pool;
}

struct LinkCall : Call {
  explicit LinkCall(CUlinkState state) : Call(Needs::kContext) {
    if (error != CUDA_SUCCESS) return;
    link = links().find(state);
    if (link == nullptr) error = CUDA_ERROR_INVALID_HANDLE;
  }
  Link* link = nullptr;
};

// What may stand once in a module only.
std::string without_head(const std::string& ptx) {
  std::istringstream lines(ptx);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find_first_not_of(" \t");
    const auto begins = [&](const char* word) {
      return first != std::string::npos && line.compare(first, std::strlen(word), word) == 0;
    };
    if (!begins(".version") && !begins(".target") && !begins(".address_size")) rest += line + "\n";
  }
  return rest;
}

CUresult add(CUlinkState state, CUjitInputType type, const void* data, size_t bytes) {
  LinkCall call(state);
  if (call.error != CUDA_SUCCESS) return call.error;
  Link& link = *call.link;
  if (data == nullptr || bytes == 0 || link.complete || type < 0 ||
      type >= CU_JIT_NUM_INPUT_TYPES) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool text = type == CU_JIT_INPUT_PTX;
  if (!text && type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_FATBINARY) {
    simgpu::say("linking objects, libraries and intermediate code is not modelled");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (link.inputs != 0 && !(text && link.type == CU_JIT_INPUT_PTX)) {
    simgpu::say("linking several images into one is modelled for PTX alone");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::string image(static_cast<const char*>(data), bytes);
  if (text) image.resize(std::strlen(image.c_str()));
  std::string why;
  if (simgpu::load_image(image.c_str(), &why) == nullptr) {
    simgpu::say("an image cannot be linked: %s", why.c_str());
    return text ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
  }
  link.image = link.inputs == 0 ? image : link.image + "\n" + without_head(image);
  link.type = type;
  ++link.inputs;
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                           CUlinkState* state) {
  Call call(Needs::kContext);
  if (call.error != CUDA_SUCCESS) return call.error;
  if (state == nullptr || (count != 0 && (options == nullptr || values == nullptr))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Link* link = links().create();
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
        options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
      link->log_sizes.push_back(&values[i]);
    }
  }
  *state = reinterpret_cast<CUlinkState>(link);
  return CUDA_SUCCESS;
}

SIMGPU_API cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                            const char*, unsigned int, CUjit_option*, void**) {
  const simgpu::ApiName api_name(__func__);
  return add(state, type, data, bytes);
}

SIMGPU_API cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int,
                            CUjit_option*, void**) {
  const simgpu::ApiName api_name(__func__);
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string data(std::istreambuf_iterator<char>(file), {});
  return add(state, type, data.data(), data.size());
}

SIMGPU_API cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  LinkCall call(state);
  if (call.error != CUDA_SUCCESS) return call.error;
  Link& link = *call.link;
  if (image == nullptr || link.inputs == 0) return CUDA_ERROR_INVALID_VALUE;
  link.complete = true;
  for (void** size : link.log_sizes) *size = nullptr;  // a number in a pointer's place: none
  *image = link.image.data();
  if (bytes != nullptr) *bytes = link.image.size() + (link.type == CU_JIT_INPUT_PTX ? 1 : 0);
  return CUDA_SUCCESS;
}

SIMGPU_API cuLinkDestroy(CUlinkState state) {
  LinkCall call(state);
  if (call.error != CUDA_SUCCESS) return call.error;
  links().destroy(call.link);
  return CUDA_SUCCESS;
}

SIMGPU_API cuLinkCreate(unsigned int count, CUjit_option* options, void** values,
                        CUlinkState* state) {
  const simgpu::ApiName api_name(__func__);
  return cuLinkCreate_v2(count, options, values, state);
}
SIMGPU_API cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes,
                         const char* name, unsigned int count, CUjit_option* options,
                         void** values) {
  const simgpu::ApiName api_name(__func__);
  return cuLinkAddData_v2(state, type, data, bytes, name, count, options, values);
}
SIMGPU_API cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path,
                         unsigned int count, CUjit_option* options, void** values) {
  const simgpu::ApiName api_name(__func__);
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}
