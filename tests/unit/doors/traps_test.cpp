// SPDX-License-Identifier: Apache-2.0
// Traps keep every argument, and report until somebody has answered for them.

#include "interpose/doors/traps.h"

#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "interpose/doors/entries.h"
#include "interpose/doors/libcuda.h"

namespace offload {

// The traps' only question to the rest of the library, answered by the test.
static void* exported_target = nullptr;
static std::string asked_for;
void* driver_symbol_or_refusal(const char* symbol) {
  asked_for = symbol;
  return exported_target;
}

}  // namespace offload

extern "C" int cuCheckpointProcessLock(void* context, void* green);

namespace offload {
namespace {

std::vector<std::string> reports;
bool answer = true;

// Ruins whatever a caller may have left in registers.
__attribute__((noinline)) bool listen(const char* entry) {
  reports.emplace_back(entry);
  volatile double noise = 0;
  for (int i = 1; i < 100; ++i) noise = noise + 1.0 / i;
  char text[64];
  std::snprintf(text, sizeof(text), "%f", static_cast<double>(noise));
  return answer && text[0] != 'x';
}

class Traps : public testing::Test {
 protected:
  Traps() {
    reports.clear();
    answer = true;
    set_trap_listener(&listen);
  }
};

struct Seen {
  uint64_t integer[8];
  double real[10];
  float single;
};
Seen seen;

// Six integers and eight reals in registers, the rest on the stack.
int many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, double p, double q,
         double r, double s, double t, double u, double v, double w, uint64_t g, uint64_t h,
         double x, double y, float z) {
  seen = {{a, b, c, d, e, f, g, h}, {p, q, r, s, t, u, v, w, x, y}, z};
  return 42;
}

TEST_F(Traps, KeepEveryArgumentAndTheResult) {
  const auto trapped =
      reinterpret_cast<decltype(&many)>(trap_before(reinterpret_cast<void*>(&many), "cuMany"));
  for (int call = 0; call < 2; ++call) {  // the reporting call, and one that goes straight on
    seen = {};
    EXPECT_EQ(
        trapped(1, 2, 3, 4, 5, 6, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 7, 8, 9.5, 10.5, 11.5f),
        42);
    for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(seen.integer[i], i + 1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(seen.real[i], i + 1.5);
    EXPECT_EQ(seen.single, 11.5f);
  }
  EXPECT_EQ(reports, std::vector<std::string>{"cuMany"});
}

int variadic_sum(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += va_arg(list, double);
  va_end(list);
  return static_cast<int>(sum);
}

// %al says how many reals a variadic function got.
TEST_F(Traps, KeepTheCountOfAVariadicCall) {
  const auto trapped = reinterpret_cast<decltype(&variadic_sum)>(
      trap_before(reinterpret_cast<void*>(&variadic_sum), "cuSum"));
  EXPECT_EQ(trapped(9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0), 45);
}

int three() {
  return 3;
}
int four() {
  return 4;
}

TEST_F(Traps, ReportUntilAnswered) {
  const size_t before = traps_hit();
  const auto trapped =
      reinterpret_cast<int (*)()>(trap_before(reinterpret_cast<void*>(&three), "cuThree"));
  answer = false;
  EXPECT_EQ(trapped(), 3);
  EXPECT_EQ(trapped(), 3);
  EXPECT_EQ(traps_hit(), before);
  answer = true;
  EXPECT_EQ(trapped(), 3);
  EXPECT_EQ(trapped(), 3);
  EXPECT_EQ(reports.size(), 3u);
  EXPECT_EQ(traps_hit(), before + 1);
}

TEST_F(Traps, OneTargetHasOneTrap) {
  void* first = trap_before(reinterpret_cast<void*>(&three), "cuThree");
  void* other = trap_before(reinterpret_cast<void*>(&four), "cuFour");
  EXPECT_EQ(trap_before(reinterpret_cast<void*>(&three), "cuAlias"), first);
  EXPECT_NE(first, other);
  EXPECT_EQ(reinterpret_cast<int (*)()>(other)(), 4);
}

int from_checkpoint(void* context, void* green) {
  return context == &seen && green == nullptr ? 7 : -1;
}

// Whoever links the driver directly gets our exported name, with nobody having asked for it.
TEST_F(Traps, ExportedTrapFindsItsTargetByItself) {
  exported_target = reinterpret_cast<void*>(&from_checkpoint);
  EXPECT_EQ(cuCheckpointProcessLock(&seen, nullptr), 7);
  EXPECT_EQ(asked_for, "cuCheckpointProcessLock");
  EXPECT_EQ(reports, std::vector<std::string>{"cuCheckpointProcessLock"});
}

TEST_F(Traps, ThreadsMayMeetAtOne) {
  const auto trapped = reinterpret_cast<int (*)()>(
      trap_before(reinterpret_cast<void*>(+[] { return 9; }), "cuNine"));
  set_trap_listener([](const char*) { return true; });
  const size_t before = traps_hit();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) wrong += trapped() != 9;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(traps_hit(), before + 1);
}

TEST_F(Traps, PoolEnds) {
  std::vector<char> targets(kTrapPoolSize + 1);
  void* last = nullptr;
  size_t made = 0;
  for (char& target : targets) {
    void* trap = trap_before(&target, "cuFiller");
    if (trap == nullptr) break;
    EXPECT_NE(trap, last);
    last = trap;
    ++made;
  }
  EXPECT_LT(made, targets.size());
  EXPECT_EQ(trap_before(&targets[0], "cuFiller") != nullptr,
            made > 0);  // known ones are still found
}

}  // namespace
}  // namespace offload
