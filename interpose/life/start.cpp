// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/start.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "interpose/doors/environment.h"
#include "interpose/life/exit.h"
#include "interpose/life/fail_closed.h"
#include "interpose/life/fork.h"
#include "interpose/life/pytorch.h"
#include "profiler/base/log.h"
#include "profiler/base/options_environment.h"
#include "profiler/base/own_file.h"
#include "profiler/statistics.h"

namespace offload {
namespace {

constinit Options process_options{};
constinit OptionProblems problems{};
constinit bool usable = false;
constinit std::atomic<bool> met{false};
constinit pthread_once_t started = PTHREAD_ONCE_INIT;
constinit pthread_once_t met_driver = PTHREAD_ONCE_INIT;

void start_once() {
  look_for_stderr();
  bind_environment();
  usable = read_options(environ, process_options, problems);
  if (process_options.disable) return;
  const bool ours = set_pytorch_variables(process_options.pytorch_alloc);
  open_environment(process_options.pytorch_alloc, ours);
  forward_in_children();
  if (process_options.report != Report::kOff || process_options.log >= LogLevel::kInfo)
    speak_at_exit_without_driver();
}

// What is wrong with the options is said by the processes that they concern, not by every child of
// a shell script.
void meet_driver() {
  met.store(true, std::memory_order_relaxed);
  start_log(process_options, problems);
  statistics().start();
  if (process_options.disable) {
    statistics().set_reason(usable ? Reason::disabled : Reason::bad_options);
  }
  listen_to_traps();
  report_at_exit();
}

__attribute__((constructor)) void library_was_loaded() {
  start();
}

}  // namespace

void start() {
  pthread_once(&started, &start_once);
}

const Options& options() {
  start();
  return process_options;
}

bool driver_was_met() {
  return met.load(std::memory_order_relaxed);
}

void start_to_speak() {
  start_log(process_options, problems);
}

bool driver_in_use() {
  start();
  pthread_once(&met_driver, &meet_driver);
  return !process_options.disable;
}

}  // namespace offload
