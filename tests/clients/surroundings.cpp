// SPDX-License-Identifier: Apache-2.0
// What else goes on in a process while buffers move: threads that come and go, forks, signals.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;

void look_at_all(Client& client, const std::vector<CUdeviceptr>& buffers) {
  for (size_t i = 0; i < buffers.size(); ++i)
    client.expect(buffers[i], filled(static_cast<uint32_t>(1000 * i)));
}

// --- threads that are at work until the process ends

std::atomic<int> wrong_calls{0};
std::atomic<int> turns{0};

// Once the process is ending the driver may refuse: then there is nothing left to do but to wait.
void good(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  ++wrong_calls;
  for (;;) pause();
}

void work_for_ever(Client own) {
  good(own.cuda.cuCtxSetCurrent(own.context));
  good(own.cuda.cuStreamCreate(&own.stream, CU_STREAM_NON_BLOCKING));
  const CUfunction fill = own.function("fill");
  std::vector<CUdeviceptr> buffers(12);
  for (uint32_t turn = 0;; ++turn, ++turns) {
    for (CUdeviceptr& at : buffers) {
      good(own.cuda.cuMemAlloc(&at, kBytes));
      uint32_t words = kWords;
      void* arguments[] = {&at, &words, &turn};
      good(own.cuda.cuLaunchKernel(fill, 4, 1, 1, 64, 1, 1, 0, own.stream, arguments, nullptr));
    }
    for (const CUdeviceptr at : buffers) {
      uint32_t first = 0;
      good(own.cuda.cuMemcpyDtoHAsync(&first, at, sizeof first, own.stream));
      good(own.cuda.cuStreamSynchronize(own.stream));
      good(first == turn ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
      good(own.cuda.cuMemFree(at));
    }
  }
}

void be_busy(Client& client) {
  for (int i = 0; i < 2; ++i) std::thread(work_for_ever, client).detach();
  while (turns < 4 && wrong_calls == 0) std::this_thread::yield();
  CHECK(wrong_calls == 0);
  std::puts("busy");
  std::fflush(stdout);
}

void end_exit(Client& client) {
  be_busy(client);
  std::exit(3);
}
void end_exit_of_a_thread(Client& client) {
  be_busy(client);
  std::thread([] { std::exit(6); }).join();
}
void end_at_once(Client& client) {
  be_busy(client);
  _exit(4);
}
void end_quickly(Client& client) {
  be_busy(client);
  std::quick_exit(5);
}
void end_abort(Client& client) {
  be_busy(client);
  std::abort();
}
void end_crash(Client& client) {
  be_busy(client);
  *static_cast<volatile int*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) =
      1;
}
void end_terminated(Client& client) {
  be_busy(client);
  kill(getpid(), SIGTERM);
  for (;;) pause();
}
void end_killed(Client& client) {
  be_busy(client);
  kill(getpid(), SIGKILL);
  for (;;) pause();
}
// The same image once more: what it does is not mixed up with what was before.
void end_exec(Client& client) {
  be_busy(client);
  execl("/proc/self/exe", "client", "proc", "stash", nullptr);
}

// --- children

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// What the driver says to a child of a process that has used it; and the child goes on as children
// do: it allocates, starts threads, and ends through the exit handlers.
[[noreturn]] void be_a_child(Client& client, CUdeviceptr parents, bool tell) {
  for (size_t i = 0; i < 100; ++i) std::free(std::malloc(1000 * i + 1));
  std::thread([] {}).join();
  CUdeviceptr at = 0;
  uint32_t word = 0;
  CUstream stream = nullptr;
  const CUresult results[] = {client.cuda.cuMemAlloc(&at, kBytes),
                              client.cuda.cuMemcpyDtoH(&word, parents, sizeof word),
                              client.cuda.cuMemsetD32(parents, 1, 4),
                              client.cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                              client.cuda.cuCtxSynchronize(),
                              client.cuda.cuMemFreeAsync(parents, nullptr),
                              client.cuda.cuMemFree(parents)};
  if (tell) {
    for (const CUresult result : results) std::printf("child: %d\n", result);
    std::fflush(stdout);
  }
  std::exit(11);
}

void forks_while_busy(Client& client) {
  be_busy(client);
  const CUdeviceptr mine = client.allocate();
  client.fill(mine, 4);
  for (int turn = 0; turn < 20; ++turn) {
    const pid_t child = fork();
    if (child == 0) be_a_child(client, mine, turn == 0);
    CHECK(wait_for(child) == 11);
  }
  client.expect(mine, filled(4));
  client.free(mine);
  CHECK(wrong_calls == 0);
  std::exit(9);
}

void commands_while_busy(Client& client) {
  be_busy(client);
  for (int turn = 0; turn < 3; ++turn) {
    std::printf("system: %d\n", std::system("echo from a shell; exit 3"));
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      execlp("echo", "echo", "from exec", nullptr);
      _exit(12);
    }
    std::printf("exec: %d\n", wait_for(child));
    std::fflush(stdout);
    pid_t spawned = 0;
    const char* words[] = {"sh", "-c", "exit 6", nullptr};
    CHECK(posix_spawnp(&spawned, "sh", nullptr, nullptr, const_cast<char**>(words), environ) == 0);
    std::printf("spawn: %d\n", wait_for(spawned));
    std::fflush(stdout);
  }
  CHECK(wrong_calls == 0);
  std::exit(9);
}

// --- threads

// Hundreds of threads, each with a stream and buffers of its own; some leave theirs to others, and
// end where they stand.
void threads_come_and_go(Client& client) {
  constexpr uint32_t kRounds = 40;
  constexpr uint32_t kAtOnce = 5;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  for (uint32_t round = 0; round < kRounds; ++round) {
    CUdeviceptr left[kAtOnce] = {};
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      threads.emplace_back([&client, &buffers, &left, round, i] {
        Client own = client;
        CHECK_CUDA(own.cuda.cuCtxSetCurrent(own.context));
        CHECK_CUDA(own.cuda.cuStreamCreate(&own.stream, CU_STREAM_NON_BLOCKING));
        const uint32_t seed = 100 * round + i;
        left[i] = own.allocate();
        own.fill(left[i], seed);
        own.mix(left[i], buffers[seed % kCrowd]);
        CHECK_CUDA(own.cuda.cuStreamDestroy(own.stream));
        if (i % 2 == 0) pthread_exit(nullptr);
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t seed = 100 * round + i;
      std::vector<uint32_t> wanted = filled(seed);
      mix_on_host(wanted, filled(1000 * (seed % kCrowd)));
      client.expect(left[i], wanted);
      client.free(left[i]);
    }
  }
  look_at_all(client, buffers);
  client.disperse(buffers);
}

// Threads are cancelled in the midst of calls that have to wait for room, and leave neither locks
// nor pins behind.
void threads_cancelled(Client& client) {
  constexpr uint32_t kThreads = 40;
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  CHECK_CUDA(client.cuda.cuCtxSynchronize());
  for (uint32_t i = 0; i < kThreads; ++i) {
    struct Work {
      Client own;
      const std::vector<CUdeviceptr>& buffers;
      uint32_t number;
      CUdeviceptr left = 0;
      bool returned = false;
    } work{client, buffers, i};
    pthread_t thread;
    const auto run = [](void* of) -> void* {
      Work& mine = *static_cast<Work*>(of);
      Client& own = mine.own;
      // In the simulated driver a thread may not end, so it is cancelled only where it is ours.
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
      CHECK_CUDA(own.cuda.cuCtxSetCurrent(own.context));
      CHECK_CUDA(own.cuda.cuStreamCreate(&own.stream, CU_STREAM_NON_BLOCKING));
      mine.left = own.allocate();
      for (uint32_t k = 0; k < 6; ++k) own.mix(mine.buffers[(mine.number + k) % kCrowd], mine.left);
      pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
      pthread_cancel(pthread_self());
      CUdeviceptr other = 0;
      const CUresult got = own.cuda.cuMemAlloc(&other, kBytes);
      const CUresult freed = own.cuda.cuMemFree(mine.left);  // waits for what uses it
      mine.left = other;
      mine.returned = got == CUDA_SUCCESS && freed == CUDA_SUCCESS;
      pthread_testcancel();
      return nullptr;
    };
    CHECK(pthread_create(&thread, nullptr, run, &work) == 0);
    void* ended = nullptr;
    CHECK(pthread_join(thread, &ended) == 0);
    CHECK(ended == PTHREAD_CANCELED && work.returned);
    CHECK_CUDA(client.cuda.cuCtxSynchronize());
    client.free(work.left);
  }
  client.disperse(buffers);
  const std::vector<CUdeviceptr> after = client.crowd(kCrowd);
  look_at_all(client, after);
  client.disperse(after);
}

// What it does must fit on a small stack, as some programs give to their threads.
void small_stack(Client& client) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  CHECK(pthread_attr_setstacksize(&small, size_t{96} << 10) == 0);
  const auto work = [](void* of) -> void* {
    Client own = *static_cast<Client*>(of);
    CHECK_CUDA(own.cuda.cuCtxSetCurrent(own.context));
    const std::vector<CUdeviceptr> buffers = own.crowd(kCrowd);
    look_at_all(own, buffers);
    own.disperse(buffers);
    return nullptr;
  };
  CHECK(pthread_create(&thread, &small, work, &client) == 0);
  pthread_join(thread, nullptr);
}

// --- signals

std::atomic<int> faults{0};
std::atomic<int> ticks{0};

void on_fault(int, siginfo_t* info, void*) {
  ++faults;
  mprotect(info->si_addr, 4096, PROT_READ | PROT_WRITE);
}

const char* owner_of(const struct sigaction& action) {
  if (action.sa_handler == SIG_DFL) return "nobody";
  if (action.sa_handler == SIG_IGN) return "ignored";
  Dl_info where;
  if (dladdr(reinterpret_cast<void*>(action.sa_handler), &where) == 0) return "?";
  const char* slash = std::strrchr(where.dli_fname, '/');
  return slash == nullptr ? where.dli_fname : slash + 1;
}

// Handlers for faults of the program's own, and a timer that interrupts every call: they are the
// program's before and after, and nothing is lost between.
void signal_handlers(Client& client) {
  constexpr int kPages = 40;
  struct sigaction action = {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO;
  for (const int number : {SIGSEGV, SIGBUS}) sigaction(number, &action, nullptr);
  struct sigaction tick = {};
  tick.sa_handler = [](int) { ++ticks; };  // and calls are not started again
  sigaction(SIGALRM, &tick, nullptr);
  const itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &often, nullptr);
  auto* pages = static_cast<volatile char*>(
      mmap(nullptr, kPages * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 7);
  std::vector<uint32_t> wanted = filled(7);
  const std::vector<CUdeviceptr> buffers = client.crowd(kPages);
  for (uint32_t i = 0; i < kPages; ++i) {
    pages[4096 * i] = 1;
    client.mix(sum, buffers[i]);
    mix_on_host(wanted, filled(1000 * i));
  }
  client.expect(sum, wanted);
  look_at_all(client, buffers);
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  client.disperse(buffers);
  CHECK(faults == kPages && ticks > 0);
  // The simulated driver takes some of them; that is the same with and without liboffload.
  for (int number = 1; number < 32; ++number) {
    struct sigaction now = {};
    sigaction(number, nullptr, &now);
    std::printf("%d: %s, flags %x\n", number, owner_of(now), static_cast<unsigned>(now.sa_flags));
  }
}

// --- descriptors

void forward_and_backward(Client& client) {
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 7);
  std::vector<uint32_t> wanted = filled(7);
  const std::vector<CUdeviceptr> stash = client.crowd(kCrowd);
  for (uint32_t i = kCrowd; i-- > 0;) {
    client.mix(sum, stash[i]);
    mix_on_host(wanted, filled(1000 * i));
  }
  client.expect(sum, wanted);
  client.disperse(stash);
  client.free(sum);
}

// What liboffload holds does not grow with the program's steps.
void many_steps(Client& client) {
  for (int step = 0; step < 96; ++step) forward_and_backward(client);
}

void few_steps(Client& client) {
  for (int step = 0; step < 6; ++step) forward_and_backward(client);
}

// Whatever standard stream is closed, its number is a file of the program's now.
void own_files(Client& client) {
  for (const char* name : {"own-1", "own-2", "own-3"}) {
    const int number = open(name, O_CREAT | O_WRONLY, 0600);
    CHECK(number >= 0);
    if (number > STDERR_FILENO) unlink(name);
  }
  forward_and_backward(client);
}

std::vector<int> take_all_descriptors() {
  std::vector<int> taken;
  for (int one = 0; (one = open("/dev/null", O_RDONLY)) >= 0;) taken.push_back(one);
  CHECK(errno == EMFILE);
  return taken;
}

// The program runs out of descriptors while it works, and gets them back.
void no_descriptors(Client& client) {
  client.free(client.allocate());
  const std::vector<int> taken = take_all_descriptors();
  forward_and_backward(client);
  for (const int one : taken) close(one);
}

// And does not get them back.
void no_descriptors_any_more(Client& client) {
  client.free(client.allocate());
  take_all_descriptors();
  forward_and_backward(client);
}

}  // namespace

const std::vector<Scenario> kSurroundingScenarios = {
    {"end-exit", &end_exit},
    {"end-exit-of-a-thread", &end_exit_of_a_thread},
    {"end-at-once", &end_at_once},
    {"end-quickly", &end_quickly},
    {"end-abort", &end_abort},
    {"end-crash", &end_crash},
    {"end-terminated", &end_terminated},
    {"end-killed", &end_killed},
    {"end-exec", &end_exec},
    {"forks-while-busy", &forks_while_busy},
    {"commands-while-busy", &commands_while_busy},
    {"threads-come-and-go", &threads_come_and_go},
    {"threads-cancelled", &threads_cancelled},
    {"small-stack", &small_stack},
    {"signal-handlers", &signal_handlers},
    {"own-files", &own_files},
    {"few-steps", &few_steps},
    {"many-steps", &many_steps},
    {"no-descriptors", &no_descriptors},
    {"no-descriptors-any-more", &no_descriptors_any_more},
};

}  // namespace clients
