// SPDX-License-Identifier: Apache-2.0
// Linked into the test build of the library (liboffload-yield.so): the rule whose number
// DROPPED_RULE gives is not obeyed.

#include <cstdlib>

#include "interpose/rules.h"

namespace offload {

bool obeys(Rule rule) {
  static const int dropped = [] {
    const char* number = std::getenv("DROPPED_RULE");
    return number != nullptr ? std::atoi(number) : -1;
  }();
  return static_cast<int>(rule) != dropped;
}

}  // namespace offload
