// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where bytes of text meet floats: embedding and cross-entropy. `tokens` and `targets` are [batch,
// sequence].

#include "tests/workloads/kernels/dialect.h"

// out[row] = token_table[tokens[row]] + position_table[row % sequence]. Groups: (rows).
KERNEL(gpt_embedding, const int* tokens, const float* token_table, const float* position_table,
       float* out, int rows, int sequence, int width, int /*vocabulary*/) {
  const int row = group_x();
  if (row >= rows) return;
  const float* token = token_table + size_t(tokens[row]) * size_t(width);
  const float* position = position_table + size_t(row % sequence) * size_t(width);
  for (int c = 0; c < width; c += kLanes) {
    store(out + size_t(row) * size_t(width) + c, load(token + c) + load(position + c));
  }
}

// The token table's gradient, in parts: out[chunk][vocabulary, width] sums the chunk's rows, each
// lane its own column. Groups: (vectors of columns, chunks).
KERNEL(gpt_embedding_backward_tokens, const int* tokens, const float* grad_out, float* out,
       int rows, int width, int vocabulary, int chunk_rows) {
  const int column = group_x() * kLanes;
  if (column >= width) return;
  float* table = out + size_t(group_y()) * size_t(vocabulary) * size_t(width) + size_t(column);
  for (int token = 0; token < vocabulary; ++token) {
    store(table + size_t(token) * size_t(width), broadcast(0.0f));
  }
  const int first = group_y() * chunk_rows;
  const int end = rows - first < chunk_rows ? rows : first + chunk_rows;
  for (int row = first; row < end; ++row) {
    float* entry = table + size_t(tokens[row]) * size_t(width);
    store(entry, load(entry) + load(grad_out + size_t(row) * size_t(width) + column));
  }
}

// The position table's gradient; positions at or past `sequence` get zero. Groups: (positions).
KERNEL(gpt_embedding_backward_positions, const float* grad_out, float* out, int batch, int sequence,
       int positions, int width) {
  const int position = group_x();
  if (position >= positions) return;
  for (int c = 0; c < width; c += kLanes) {
    Lanes sum = broadcast(0.0f);
    if (position < sequence) {
      for (int b = 0; b < batch; ++b) {
        const size_t row = size_t(b) * size_t(sequence) + size_t(position);
        sum += load(grad_out + row * size_t(width) + c);
      }
    }
    store(out + size_t(position) * size_t(width) + c, sum);
  }
}

// log_probability[row] = log softmax of logits[row]; row_loss[row] =
// -log_probability[row][targets[row]]. Groups: (rows).
KERNEL(gpt_cross_entropy, const float* logits, const int* targets, float* log_probability,
       float* row_loss, int rows, int vocabulary) {
  const int row = group_x();
  if (row >= rows) return;
  const float* x = logits + size_t(row) * size_t(vocabulary);
  float* y = log_probability + size_t(row) * size_t(vocabulary);
  Lanes peaks = load(x);
  for (int c = kLanes; c < vocabulary; c += kLanes) peaks = larger(peaks, load(x + c));
  const float peak = max_lanes(peaks);
  Lanes sums = broadcast(0.0f);
  for (int c = 0; c < vocabulary; c += kLanes) sums += exponential(load(x + c) - peak);
  const float log_total = peak + scalar_logarithm(sum_lanes(sums));
  for (int c = 0; c < vocabulary; c += kLanes) store(y + c, load(x + c) - log_total);
  store_one(row_loss + row, log_total - x[targets[row]]);
}

// out[0] = the mean of in[rows]. Groups: (1).
KERNEL(gpt_mean, const float* in, float* out, int rows) {
  if (group_x() > 0) return;
  Lanes sum = broadcast(0.0f);
  for (int row = 0; row < rows; row += kLanes) {
    sum += load_some(in + row, rows - row < kLanes ? rows - row : kLanes);
  }
  store_one(out, sum_lanes(sum) / float(rows));
}

// grad_logits = (softmax - one hot) * grad_loss[0] / rows. Groups: (rows).
KERNEL(gpt_cross_entropy_backward, const float* log_probability, const int* targets,
       const float* grad_loss, float* grad_logits, int rows, int vocabulary) {
  const int row = group_x();
  if (row >= rows) return;
  const float factor = grad_loss[0] / float(rows);
  const float target = float(targets[row]);
  const size_t start = size_t(row) * size_t(vocabulary);
  for (int c = 0; c < vocabulary; c += kLanes) {
    const Lanes p = exponential(load(log_probability + start + c));
    const Lanes distance = lane_numbers() + float(c) - target;
    const Lanes hit = select(distance * distance < 0.25f, broadcast(1.0f), broadcast(0.0f));
    store(grad_logits + start + c, (p - hit) * factor);
  }
}
