// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which buffers do a kernel's arguments name? Every aligned 8-byte word of every parameter is held
// against the window. On the launch path: no lock but the tables' own, no driver call, no
// allocation.

#include <cstddef>
#include <cstring>

#include "interpose/engine/engine.h"
#include "interpose/naming/layouts.h"
#include "interpose/rules.h"

namespace offload {

// Arguments as an array of pointers, one per parameter. `name` is given each word.
template <typename Name>
inline void name_parameters(const Layout& layout, void* const* parameters, Name&& name) {
  for (uint32_t i = 0; i < layout.runs; ++i) {
    const WordRun run = layout.run[i];
    const char* at = static_cast<const char*>(parameters[run.parameter]) + run.first;
    const uint32_t words = obeys(Rule::kEveryWordIsNamed) ? run.words : 1;
    for (uint32_t word = 0; word < words; ++word, at += sizeof(Address)) {
      Address address;
      std::memcpy(&address, at, sizeof(address));
      name(address);
    }
  }
}

// Arguments as one block (`extra` of a launch): CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE up to
// _END. False: not understood.
bool find_argument_block(void* const* extra, const void** block, size_t* bytes);

}  // namespace offload
