// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text that is learnt, byte by byte.

#include <cstdint>
#include <string>

namespace gpt {

constexpr int kVocabulary = 256;

class Text {
 public:
  // An empty path means the licence that the program was built with. Throws BadOption if the file
  // cannot be read or is too short for windows of `sequence` tokens.
  Text(const std::string& path, int sequence);

  // Fills `tokens` with `batch` windows of `sequence` bytes and `targets` with the bytes that
  // follow each; windows are chosen by (seed, index). Training draws from the first nine tenths of
  // the text, evaluation from the rest.
  void fill(int* tokens, int* targets, int batch, int sequence, bool evaluation, uint64_t seed,
            uint64_t index) const;

 private:
  std::string bytes_;
  int64_t split_;  // where the evaluation part begins
};

}  // namespace gpt
