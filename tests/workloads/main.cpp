// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "tests/workloads/errors.h"
#include "tests/workloads/options.h"
#include "tests/workloads/train.h"

int main(int count, char** arguments) {
  try {
    const gpt::Options options = gpt::parse_options(count, arguments);
    if (options.help) {
      std::fputs(gpt::help_text().c_str(), stdout);
      return 0;
    }
    gpt::train(options);
    return 0;
  } catch (const gpt::BadOption& error) {
    std::fprintf(stderr, "train_gpt: %s\n", error.what());
    return gpt::kExitBadOption;
  } catch (const gpt::OutOfMemory& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return gpt::kExitOutOfMemory;
  } catch (const gpt::CudaError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return gpt::kExitCudaError;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_gpt: %s\n", error.what());
    return 1;
  }
}
