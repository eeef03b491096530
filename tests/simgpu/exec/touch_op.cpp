// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/exec/touch_op.h"

#include "tests/simgpu/check/checker.h"
#include "tests/simgpu/driver/context.h"
#include "tests/simgpu/exec/device_fault.h"
#include "tests/simgpu/exec/stream.h"

namespace simgpu {

void TouchOp::run(Lock&) {
  std::vector<Segment> segments;
  uintptr_t fault = 0;
  if (!address_space().translate(stream->device, address_, bytes_, true, &segments, &fault)) {
    return device_fault(*stream->context, describe(), fault);
  }
  if (allotment_ != nullptr) first_use(*allotment_, stream->device);
  checker().begin(*stream, OpClass::kFill, describe());
  for (const Segment& segment : segments) {
    checker().read(segment);
    checker().write(segment);
    auto* data = reinterpret_cast<unsigned char*>(segment.data());
    for (size_t i = 0; i < segment.bytes; ++i) ++data[i];
  }
}

}  // namespace simgpu
