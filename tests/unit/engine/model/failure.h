// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the model says that a program went wrong: a lost byte, a fault, a hang, or a misuse of the
// driver. Thrown from whichever call met it, through the engine, which is abandoned then.

#include <cstdint>
#include <string>

namespace offload::model {

struct Failure {
  enum class Kind : uint8_t {
    kWrongContent,  // a kernel or the program read something else than without the engine
    kFault,         // a kernel or a copy met an address that shows nothing
    kHang,          // nothing can go on
    kMisuse,        // a call that the driver would refuse or punish
    kRefused,       // the engine refused what must succeed
    kInvariant,     // the engine's own books do not add up
  };
  Kind kind;
  std::string what;
};

[[noreturn]] inline void fail(Failure::Kind kind, std::string what) {
  throw Failure{kind, std::move(what)};
}

inline const char* name_of(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::kWrongContent:
      return "wrong content";
    case Failure::Kind::kFault:
      return "fault";
    case Failure::Kind::kHang:
      return "hang";
    case Failure::Kind::kMisuse:
      return "misuse";
    case Failure::Kind::kRefused:
      return "refused";
    case Failure::Kind::kInvariant:
      return "invariant";
  }
  return "?";
}

}  // namespace offload::model
