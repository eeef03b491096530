// SPDX-License-Identifier: Apache-2.0
// The ledger of pinned host memory, between real processes.

#include "interpose/life/host_ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

namespace offload {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kMachine = 100 * kMiB;

class Ledger : public testing::Test {
 protected:
  void SetUp() override { name_ = "liboffload-test-" + std::to_string(getpid()); }
  void TearDown() override { unlink(path().c_str()); }
  std::string path() const { return "/dev/shm/" + name_; }

  // A process that does this, says so, and lives until it is killed.
  pid_t another(const std::function<bool(HostLedger&)>& act) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      HostLedger ledger;
      ledger.start(kMachine, name_.c_str());
      const char answer = act(ledger) ? 'y' : 'n';
      if (write(ready[1], &answer, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  std::string name_;
};

TEST_F(Ledger, AloneAProcessMayHaveAll) {
  HostLedger ledger;
  ledger.start(kMachine, name_.c_str());
  EXPECT_EQ(ledger.take(64 * kMiB, 2 * kMiB), 64 * kMiB);
  EXPECT_EQ(ledger.take(64 * kMiB, 8 * kMiB), 32 * kMiB);  // of 36, in eights
  EXPECT_EQ(ledger.take(64 * kMiB, 2 * kMiB), 4 * kMiB);
  EXPECT_EQ(ledger.take(2 * kMiB, 2 * kMiB), 0u);
  ledger.give(10 * kMiB);
  EXPECT_EQ(ledger.take(64 * kMiB, 2 * kMiB), 10 * kMiB);
}

TEST_F(Ledger, TwoProcessesHaveHalfEach) {
  const pid_t other =
      another([](HostLedger& ledger) { return ledger.take(20 * kMiB, kMiB) == 20 * kMiB; });
  HostLedger ledger;
  ledger.start(kMachine - 20 * kMiB, name_.c_str());  // what it finds is less by that
  EXPECT_EQ(ledger.take(kMachine, kMiB), 50 * kMiB);
  EXPECT_EQ(ledger.totals().processes, 2u);
  EXPECT_EQ(ledger.totals().pinned_bytes, 70 * kMiB);
  end(other);
}

TEST_F(Ledger, WhoComesLateFindsWhatIsLeft) {
  const pid_t other =
      another([](HostLedger& ledger) { return ledger.take(80 * kMiB, kMiB) == 80 * kMiB; });
  HostLedger ledger;
  ledger.start(kMachine - 80 * kMiB, name_.c_str());
  EXPECT_EQ(ledger.take(kMachine, kMiB), 20 * kMiB);
  end(other);
}

TEST_F(Ledger, AProcessThatIsKilledGivesItsPartBack) {
  const pid_t other =
      another([](HostLedger& ledger) { return ledger.take(80 * kMiB, kMiB) == 80 * kMiB; });
  HostLedger ledger;
  ledger.start(kMachine - 80 * kMiB, name_.c_str());
  EXPECT_EQ(ledger.take(10 * kMiB, kMiB), 10 * kMiB);
  end(other);
  EXPECT_EQ(ledger.totals().processes, 1u);
  EXPECT_EQ(ledger.take(kMachine, kMiB), 90 * kMiB);
}

TEST_F(Ledger, AForkedChildHasARowOfItsOwn) {
  HostLedger ledger;
  ledger.start(kMachine, name_.c_str());
  EXPECT_EQ(ledger.take(60 * kMiB, kMiB), 60 * kMiB);
  const pid_t child = another([&](HostLedger&) {
    ledger.give(60 * kMiB);  // the parent's, not its own
    ledger.start(kMachine - 60 * kMiB, name_.c_str());
    return ledger.take(kMachine, kMiB) == 40 * kMiB;
  });
  EXPECT_EQ(ledger.totals().processes, 2u);
  EXPECT_EQ(ledger.totals().pinned_bytes, kMachine);
  end(child);
}

TEST_F(Ledger, WhoHoldsTheLockTooLongIsPassedBy) {
  const int file = open(path().c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(file, LOCK_EX), 0);
  HostLedger ledger;
  ledger.start(kMachine, name_.c_str());
  EXPECT_EQ(ledger.take(4 * kMachine, kMiB), 4 * kMachine);  // not limited
  EXPECT_EQ(ledger.totals().processes, 0u);
  close(file);
}

TEST_F(Ledger, AFileOfAnotherKindIsLeftAlone) {
  std::ofstream(path()) << std::string(20000, 'x');
  HostLedger ledger;
  ledger.start(kMachine, name_.c_str());
  EXPECT_EQ(ledger.take(4 * kMachine, kMiB), 4 * kMachine);
  std::ifstream file(path());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), std::string(20000, 'x'));
}

TEST_F(Ledger, WithoutANameThereIsNone) {
  HostLedger ledger;
  EXPECT_EQ(ledger.take(4 * kMachine, kMiB), 4 * kMachine);
}

}  // namespace
}  // namespace offload
