// SPDX-License-Identifier: Apache-2.0
#include "policies/watermark.h"

#include "policies/formulas.h"

namespace offload {

std::uint64_t Watermark::update(std::uint64_t total_bytes, std::uint64_t free_bytes) {
  std::uint64_t theta = theta_bytes(alpha_, total_bytes);
  std::uint64_t off_at = static_cast<std::uint64_t>(kOffAt * static_cast<double>(theta));
  if (off_at > total_bytes) off_at = total_bytes;  // a watermark above 2/3 could never turn off
  if (free_bytes < theta) on_ = true;
  if (free_bytes >= off_at) on_ = false;
  return on_ ? off_at - free_bytes : 0;
}

}  // namespace offload
