// SPDX-License-Identifier: Apache-2.0
#include "interpose/life/fail_closed.h"

#include <cstdio>

#include "interpose/doors/bypass.h"
#include "interpose/doors/traps.h"
#include "interpose/life/sessions.h"
#include "interpose/life/start.h"
#include "interpose/rules.h"
#include "profiler/base/log.h"

namespace offload {
namespace {

constexpr size_t kSentenceBytes = 160;
constinit std::atomic<bool> unguarded{false};

bool all_retired() {
  return find_session([](const Session& each) { return !each.engine.retired(); }) == nullptr;
}

bool trapped_entry_called(const char* entry) {
  if (session() == nullptr)
    return false;  // there is nothing of ours that it could touch; it may be called again
  statistics().passed_through(PassThrough::unknown_entry);
  log_debug("the program called %s", entry);
  char sentence[kSentenceBytes];
  std::snprintf(sentence, sizeof(sentence),
                "the program called %s, whose effect on memory liboffload does not know", entry);
  if (obeys(Rule::kUnknownEndsMoving)) give_up(Reason::unknown_entry, sentence);
  return true;
}

}  // namespace

void listen_to_traps() {
  set_trap_listener(&trapped_entry_called);
}

void look_for_bypasses() {
  char file[256];
  if (all_retired() || !find_bypass(file, sizeof(file))) return;
  char sentence[sizeof(file) + kSentenceBytes];
  std::snprintf(sentence, sizeof(sentence),
                "%s reaches the driver past liboffload (was it opened with RTLD_DEEPBIND?)", file);
  give_up(Reason::bypassed, sentence);
}

// Nobody will tell when that entry is called, so it counts as called now.
void no_more_traps(const char* entry) {
  unguarded.store(true, std::memory_order_release);
  if (session() != nullptr) catch_up();
  log_debug("%s is handed out without a trap: there are no more", entry);
}

void catch_up() {
  look_for_bypasses();
  if (unguarded.load(std::memory_order_acquire)) {
    give_up(Reason::unknown_entry,
            "the program knows more unknown entries of the driver than liboffload can guard");
  }
}

}  // namespace offload
