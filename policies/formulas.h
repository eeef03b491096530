// SPDX-License-Identifier: Apache-2.0
#pragma once
// The formulas that everyone quotes about activation offloading, under their usual names. B, L, S,
// H: batch, layers, sequence, hidden size. Sizes in bytes, times in seconds, rates in bytes per
// second.

#include <algorithm>
#include <cstdint>
#include <span>

namespace offload {

inline constexpr std::uint64_t kHalfPrecisionBytes = 2;

// A_layer = B*S*H*2: the hidden state that one layer saves, in half precision.
constexpr std::uint64_t a_layer_bytes(std::uint64_t b, std::uint64_t s, std::uint64_t h) {
  return b * s * h * kHalfPrecisionBytes;
}

// M_act = B*L*S*H*2: one saved hidden state per layer.
constexpr std::uint64_t m_act_bytes(std::uint64_t b, std::uint64_t l, std::uint64_t s,
                                    std::uint64_t h) {
  return l * a_layer_bytes(b, s, h);
}

// M_peak = M_param + K*A_layer, with a checkpoint every K layers.
constexpr std::uint64_t m_peak_bytes(std::uint64_t m_param_bytes, std::uint64_t k,
                                     std::uint64_t a_layer) {
  return m_param_bytes + k * a_layer;
}

// T_offload or T_reload: the sum of V_i/BW over what moves.
constexpr double t_transfer(std::span<const std::uint64_t> volumes_bytes,
                            double bandwidth_bytes_per_s) {
  double total = 0;
  for (std::uint64_t volume : volumes_bytes) total += static_cast<double>(volume);
  return total / bandwidth_bytes_per_s;
}

// T_epoch = T_compute + T_offload + T_reload, when nothing overlaps.
constexpr double t_epoch(double t_compute, double t_offload, double t_reload) {
  return t_compute + t_offload + t_reload;
}

// t_prefetch = t_need - V/BW_H2D - t_margin: when a restore must start.
constexpr double t_prefetch(double t_need, std::uint64_t volume_bytes, double h2d_bytes_per_s,
                            double t_margin) {
  return t_need - static_cast<double>(volume_bytes) / h2d_bytes_per_s - t_margin;
}

// theta = alpha * M_total: offloading turns on when M_free < theta.
constexpr std::uint64_t theta_bytes(double alpha, std::uint64_t m_total_bytes) {
  return static_cast<std::uint64_t>(alpha * static_cast<double>(m_total_bytes));
}

// U_GPU = T_compute/(T_compute + T_transfer), with T_transfer the part that compute had to wait
// for.
constexpr double u_gpu(double t_compute, double t_exposed_transfer) {
  double total = t_compute + t_exposed_transfer;
  return total > 0 ? t_compute / total : 1;
}

}  // namespace offload
