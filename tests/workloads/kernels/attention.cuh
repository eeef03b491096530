// SPDX-License-Identifier: Apache-2.0
#pragma once
// Causal attention without the matrix of scores (Dao et al., FlashAttention, arXiv 2205.14135). q,
// k, v, out and their gradients are [batch, sequence, heads, head width]; `log_sum` and `delta`
// [batch, heads, sequence]. A lane is one query, or one key where gradients of keys and values are
// summed, so that no two groups add to one element. Groups: (vectors of queries or keys, heads,
// batch).

#include "tests/workloads/kernels/dialect.h"

constexpr float kMasked = -1e30f;

// Where this group's rows lie. Row r of the sequence's head is at element `start` + r * `width`.
struct HeadRows {
  size_t start;
  size_t width;
  size_t row;  // of log_sum and delta: the sequence's first entry
  int first;   // row of lane 0
  int count;   // lanes in use
  int end;     // rows of the sequence

  LANE_MEMBER size_t at(int r) const { return start + size_t(r) * width; }
};

LANE_FUNCTION HeadRows head_rows(int rows, int head, int sequence_number, int sequence, int heads,
                                 int head_width) {
  HeadRows at;
  at.width = size_t(heads) * size_t(head_width);
  at.start = size_t(sequence_number) * size_t(sequence) * at.width + size_t(head * head_width);
  at.row = (size_t(sequence_number) * size_t(heads) + size_t(head)) * size_t(sequence);
  at.first = rows * kLanes;
  at.count = sequence - at.first < kLanes ? sequence - at.first : kLanes;
  at.end = sequence;
  return at;
}

// Calls function<head_width>(...); the host allows only these widths.
#define CALL_FOR_HEAD_WIDTH(function, ...) \
  if (head_width == 8) {                   \
    function<8>(__VA_ARGS__);              \
  } else if (head_width == 16) {           \
    function<16>(__VA_ARGS__);             \
  } else if (head_width == 32) {           \
    function<32>(__VA_ARGS__);             \
  } else {                                 \
    function<64>(__VA_ARGS__);             \
  }

template <int kWidth>
LANE_FUNCTION void attend(HeadRows at, const float* __restrict__ q, const float* __restrict__ k,
                          const float* __restrict__ v, float* __restrict__ out,
                          float* __restrict__ log_sum) {
  const float scale = 1.0f / scalar_square_root(float(kWidth));
  Lanes query[kWidth];
  Lanes sum[kWidth];
  UNROLL for (int d = 0; d < kWidth; ++d) {
    query[d] = gather(q + at.at(at.first) + d, at.width, at.count) * scale;
    sum[d] = broadcast(0.0f);
  }
  Lanes peak = broadcast(kMasked);
  Lanes total = broadcast(0.0f);
  for (int key = 0; key <= at.first; key += kLanes) {
    Lanes score[kLanes];
    Lanes new_peak = peak;
    UNROLL_THREAD for (int j = 0; j < kLanes; ++j) {
      const float* row = k + at.at(key + j < at.end ? key + j : at.end - 1);
      Lanes s = query[0] * row[0];
      UNROLL for (int d = 1; d < kWidth; ++d) s += query[d] * row[d];
      if (key == at.first) s = select(lane_numbers() >= float(j), s, broadcast(kMasked));
      score[j] = s;
      new_peak = larger(new_peak, s);
    }
    const Lanes shrink = exponential(peak - new_peak);
    peak = new_peak;
    total *= shrink;
    UNROLL for (int d = 0; d < kWidth; ++d) sum[d] *= shrink;
    UNROLL_THREAD for (int j = 0; j < kLanes; ++j) {
      const float* row = v + at.at(key + j < at.end ? key + j : at.end - 1);
      const Lanes p = exponential(score[j] - peak);
      total += p;
      UNROLL for (int d = 0; d < kWidth; ++d) sum[d] += p * row[d];
    }
  }
  UNROLL for (int d = 0; d < kWidth; ++d) {
    scatter(out + at.at(at.first) + d, at.width, at.count, sum[d] / total);
  }
  store_some(log_sum + at.row + size_t(at.first), at.count, peak + logarithm(total));
}

KERNEL(gpt_attention, const float* q, const float* k, const float* v, float* out, float* log_sum,
       int /*batch*/, int sequence, int heads, int head_width) {
  if (group_x() * kLanes >= sequence) return;
  const HeadRows at = head_rows(group_x(), group_y(), group_z(), sequence, heads, head_width);
  CALL_FOR_HEAD_WIDTH(attend, at, q, k, v, out, log_sum)
}

template <int kWidth>
LANE_FUNCTION void attend_backward_query(HeadRows at, const float* __restrict__ q,
                                         const float* __restrict__ k, const float* __restrict__ v,
                                         const float* __restrict__ out,
                                         const float* __restrict__ grad_out,
                                         const float* __restrict__ log_sum,
                                         float* __restrict__ grad_q, float* __restrict__ delta) {
  const float scale = 1.0f / scalar_square_root(float(kWidth));
  const size_t first = at.at(at.first);
  Lanes query[kWidth];
  Lanes grad[kWidth];
  Lanes sum[kWidth];
  Lanes dot = broadcast(0.0f);
  UNROLL for (int d = 0; d < kWidth; ++d) {
    query[d] = gather(q + first + d, at.width, at.count) * scale;
    grad[d] = gather(grad_out + first + d, at.width, at.count);
    dot += grad[d] * gather(out + first + d, at.width, at.count);
    sum[d] = broadcast(0.0f);
  }
  const Lanes log_total = load_some(log_sum + at.row + size_t(at.first), at.count);
  for (int key = 0; key < at.first + at.count; ++key) {
    const float* key_row = k + at.at(key);
    const float* value_row = v + at.at(key);
    Lanes s = query[0] * key_row[0];
    Lanes grad_p = grad[0] * value_row[0];
    UNROLL for (int d = 1; d < kWidth; ++d) {
      s += query[d] * key_row[d];
      grad_p += grad[d] * value_row[d];
    }
    Lanes p = exponential(s - log_total);
    if (key >= at.first) {
      p = select(lane_numbers() >= float(key - at.first), p, broadcast(0.0f));
    }
    const Lanes grad_s = p * (grad_p - dot);
    UNROLL for (int d = 0; d < kWidth; ++d) sum[d] += grad_s * key_row[d];
  }
  UNROLL for (int d = 0; d < kWidth; ++d) {
    scatter(grad_q + first + d, at.width, at.count, sum[d] * scale);
  }
  store_some(delta + at.row + size_t(at.first), at.count, dot);
}

// Also writes delta for the other half: per query, the dot product of out and its gradient.
KERNEL(gpt_attention_backward_query, const float* q, const float* k, const float* v,
       const float* out, const float* grad_out, const float* log_sum, float* grad_q, float* delta,
       int /*batch*/, int sequence, int heads, int head_width) {
  if (group_x() * kLanes >= sequence) return;
  const HeadRows at = head_rows(group_x(), group_y(), group_z(), sequence, heads, head_width);
  CALL_FOR_HEAD_WIDTH(attend_backward_query, at, q, k, v, out, grad_out, log_sum, grad_q, delta)
}

template <int kWidth>
LANE_FUNCTION void attend_backward_key_value(
    HeadRows at, const float* __restrict__ q, const float* __restrict__ k,
    const float* __restrict__ v, const float* __restrict__ grad_out,
    const float* __restrict__ log_sum, const float* __restrict__ delta, float* __restrict__ grad_k,
    float* __restrict__ grad_v) {
  const float scale = 1.0f / scalar_square_root(float(kWidth));
  const size_t first = at.at(at.first);
  Lanes key[kWidth];
  Lanes value[kWidth];
  Lanes key_sum[kWidth];
  Lanes value_sum[kWidth];
  UNROLL for (int d = 0; d < kWidth; ++d) {
    key[d] = gather(k + first + d, at.width, at.count) * scale;
    value[d] = gather(v + first + d, at.width, at.count);
    key_sum[d] = broadcast(0.0f);
    value_sum[d] = broadcast(0.0f);
  }
  for (int query = at.first; query < at.end; ++query) {
    const float* query_row = q + at.at(query);
    const float* grad_row = grad_out + at.at(query);
    Lanes s = key[0] * query_row[0];
    Lanes grad_p = value[0] * grad_row[0];
    UNROLL for (int d = 1; d < kWidth; ++d) {
      s += key[d] * query_row[d];
      grad_p += value[d] * grad_row[d];
    }
    Lanes p = exponential(s - log_sum[at.row + size_t(query)]);
    if (query < at.first + kLanes) {
      p = select(lane_numbers() <= float(query - at.first), p, broadcast(0.0f));
    }
    const Lanes grad_s = p * (grad_p - delta[at.row + size_t(query)]);
    UNROLL for (int d = 0; d < kWidth; ++d) {
      value_sum[d] += p * grad_row[d];
      key_sum[d] += grad_s * query_row[d];
    }
  }
  UNROLL for (int d = 0; d < kWidth; ++d) {
    scatter(grad_k + first + d, at.width, at.count, key_sum[d] * scale);
    scatter(grad_v + first + d, at.width, at.count, value_sum[d]);
  }
}

KERNEL(gpt_attention_backward_key_value, const float* q, const float* k, const float* v,
       const float* grad_out, const float* log_sum, const float* delta, float* grad_k,
       float* grad_v, int /*batch*/, int sequence, int heads, int head_width) {
  if (group_x() * kLanes >= sequence) return;
  const HeadRows at = head_rows(group_x(), group_y(), group_z(), sequence, heads, head_width);
  CALL_FOR_HEAD_WIDTH(attend_backward_key_value, at, q, k, v, grad_out, log_sum, delta, grad_k,
                      grad_v)
}
