// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/text.h"

#include <fstream>
#include <iterator>

#include "tests/workloads/errors.h"
#include "tests/workloads/random.h"

namespace gpt {

Text::Text(const std::string& path, int sequence) {
  const std::string& name = path.empty() ? GPT_DEFAULT_TEXT : path;
  std::ifstream in(name, std::ios::binary);
  if (!in) throw BadOption("--text " + name + ": cannot be read");
  bytes_.assign(std::istreambuf_iterator<char>(in), {});
  split_ = int64_t(bytes_.size()) * 9 / 10;
  const int64_t shortest = int64_t(bytes_.size()) - split_;
  if (shortest < sequence + 2) {
    throw BadOption("--text " + name + ": " + std::to_string(bytes_.size()) +
                    " bytes are too few for --sequence " + std::to_string(sequence) +
                    "; a tenth of the text must be longer");
  }
}

void Text::fill(int* tokens, int* targets, int batch, int sequence, bool evaluation, uint64_t seed,
                uint64_t index) const {
  const int64_t begin = evaluation ? split_ : 0;
  const int64_t end = evaluation ? int64_t(bytes_.size()) : split_;
  Random random(seed, evaluation ? 2 : 1, index);
  for (int b = 0; b < batch; ++b) {
    const int64_t start = begin + random.below(end - begin - sequence);
    for (int t = 0; t < sequence; ++t) {
      *tokens++ = static_cast<unsigned char>(bytes_[size_t(start + t)]);
      *targets++ = static_cast<unsigned char>(bytes_[size_t(start + t + 1)]);
    }
  }
}

}  // namespace gpt
