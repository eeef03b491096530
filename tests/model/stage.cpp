// SPDX-License-Identifier: Apache-2.0
// Who goes on next.

#include "tests/model/stage.h"

#include <algorithm>
#include <cstdio>

#include "tests/unit/engine/model/inspect.h"

namespace offload::model {

namespace {

// The schedule has no say: the stage runs the GPU.
class NoSchedule final : public Schedule {
 public:
  size_t pick(Device&, const std::vector<Queue*>&) override { return 0; }
};
NoSchedule no_schedule;

constexpr uint32_t kHang = 1500;  // looks in vain

}  // namespace

Stage::Stage(const Program& program) : program_(program) {
  for (int& var : vars_) var = -1;
  world_ = std::make_unique<World>(program.settings, no_schedule);
  World& w = *world_;
  w.check_books = false;
  w.remember_streams = true;
  w.device.keep_clocks = true;
  w.port.no_timed_events = !program.bounds.timed;
  w.port.fail_call(Call::kCreate, 0, Status::kOutOfMemory);
  gpu_ = std::make_unique<Gpu>(w.device);
  w.port.director = this;
  watch_edges(this);
  for (int i = 0; i < program.streams; ++i) w.add_stream();
  for (int i = 0; i < program.streams; ++i) w.index_of(i);
  failures_left_ = program.bounds.failures;
  const size_t count = program.threads.size() + (program.bounds.worker ? 1 : 0);
  for (size_t i = 0; i < count; ++i) {
    auto player = std::make_unique<Player>();
    player->stage = this;
    player->index = i;
    player->fiber.start(i, &Stage::body, player.get());
    if (i >= program.threads.size()) player->state = State::kNoWork;
    fibers_.push_back(std::move(player));
    world_->as(i);
    w.pins();
  }
}

Stage::~Stage() {
  watch_edges(nullptr);
}

void Stage::body(void* argument) {
  auto* player = static_cast<Player*>(argument);
  Stage& stage = *player->stage;
  try {
    stage.play(player->index);
  } catch (const Failure& failure) {
    stage.failure_ = failure;
  }
  player->state = State::kEnded;
  player->fiber.suspend();
}

void Stage::suspend(State state) {
  self().state = state;
  self().fiber.suspend();
}

uint32_t Stage::ask(uint32_t choices) {
  self().choices = choices;
  suspend(State::kAsks);
  note(self().chosen);
  return self().chosen;
}

void Stage::note_shared() {
  note(EngineTest::shared_digest(*world_->engine));
}

bool Stage::program_ended() const {
  for (size_t i = 1; i < program_.threads.size(); ++i) {
    if (fibers_[i]->state != State::kEnded) return false;
  }
  return true;
}

bool Stage::free_for(const std::vector<Arg>& args) const {
  return std::all_of(args.begin(), args.end(), [&](const Arg& arg) {
    const int users = users_[arg.tensor];
    return arg.mode == Mode::kNothing || users == 0 || (arg.mode == Mode::kRead && users > 0);
  });
}

void Stage::claim(const std::vector<Arg>& args, int by) {
  for (const Arg& arg : args) {
    if (arg.mode == Mode::kNothing) continue;
    int& users = users_[arg.tensor];
    users += arg.mode == Mode::kRead ? by : -by;
  }
}

// All that a thread which looks again may be looking for.
uint64_t Stage::changes() {
  Engine& engine = *world_->engine;
  return mix(mix(EngineTest::digest(engine, world_->port), EngineTest::shared_digest(engine)),
             gpu_->steps());
}

bool Stage::can_go_on(const Player& player) {
  switch (player.state) {
    case State::kReady:
    case State::kForces:
      return true;
    case State::kWantsMutex:
      return !EngineTest::holds_mutex(*world_->engine);
    case State::kWaitsMark:
      return gpu_->can_reach(*player.mark);
    case State::kWaitsRoom:
      return player.queue->items.size() < program_.bounds.queue_items ||
             !gpu_->heads_towards(*player.queue).empty();
    case State::kLooks:
      return changes() != player.seen;
    case State::kWaitsTensor:
      return free_for(player.wanted);
    case State::kWaitsOthers:
      return program_ended();
    case State::kNoWork:
      // What it looked at in vain it looks at again once anything has changed.
      return EngineTest::jobs(*world_->engine) != 0 && changes() != player.seen;
    case State::kAsks:
    case State::kEnded:
      return false;
  }
  return false;
}

bool Stage::others_could_go_on() {
  if (quiet_) return false;
  for (size_t i = 0; i < fibers_.size(); ++i) {
    if (i != current_ && can_go_on(*fibers_[i])) return true;
  }
  return false;
}

// The players that may go on; the present one first. 0: taken, without a choice.
uint32_t Stage::offer_players() {
  offered_.clear();
  const Player& present = self();
  const bool present_can = can_go_on(present);
  if (present_can) offered_.push_back(current_);
  const bool may_stop = !quiet_ && (!present_can || present.between_actions ||
                                    deviations_ < program_.bounds.deviations);
  for (size_t i = 0; i < fibers_.size() && may_stop; ++i) {
    if (i != current_ && can_go_on(*fibers_[i])) offered_.push_back(i);
  }
  if (offered_.empty()) {
    if (!vain()) fail(Failure::Kind::kHang, "nobody can go on\n" + dump());
    return 0;
  }
  if (offered_.size() > 1) return static_cast<uint32_t>(offered_.size());
  take(offered_[0]);
  return 0;
}

// Whoever looks again would do so after a moment, and the GPU goes on meanwhile.
bool Stage::vain() {
  size_t who = fibers_.size();
  for (size_t i = 0; i < fibers_.size(); ++i) {
    const size_t index = (current_ + i) % fibers_.size();
    if (fibers_[index]->state == State::kLooks) who = index;
  }
  if (who == fibers_.size() || ++in_vain_ > kHang) return false;
  if (const auto& heads = gpu_->heads(); !heads.empty()) {
    gpu_->step(*heads[0]);
    return true;
  }
  take(who);
  return true;
}

void Stage::take(size_t index) {
  Player& present = self();
  if (index != current_ && !present.between_actions && present.state != State::kEnded &&
      can_go_on(present)) {
    ++deviations_;
  }
  current_ = index;
  if (self().state != State::kLooks) in_vain_ = 0;
  if (self().state == State::kWaitsMark && !self().mark->done) {
    self().state = State::kForces;
    return;
  }
  if (self().state == State::kWaitsRoom &&
      self().queue->items.size() >= program_.bounds.queue_items) {
    gpu_->step(*gpu_->heads_towards(*self().queue)[0]);
    return;
  }
  resume();
}

void Stage::resume() {
  world_->as(current_);
  self().between_actions = false;
  in_fiber_ = true;
  self().fiber.resume();
  in_fiber_ = false;
  if (failure_) throw Failure(*failure_);
}

// 0: a step was taken, without a choice.
uint32_t Stage::towards(const std::vector<Queue*>& heads) {
  if (heads.empty()) fail(Failure::Kind::kHang, "the GPU cannot go on\n" + dump());
  if (heads.size() > 1 && !quiet_) {
    offered_heads_ = heads;
    return static_cast<uint32_t>(heads.size());
  }
  gpu_->step(*heads[0]);
  return 0;
}

uint32_t Stage::next() {
  for (;;) {
    offered_.clear();
    offered_heads_.clear();
    if (draining_) {
      if (gpu_->idle()) {
        check_end();
        return 0;
      }
      if (const uint32_t count = towards(gpu_->heads()); count != 0) return count;
      continue;
    }
    Player& present = self();
    if (present.state == State::kForces) {
      if (present.mark->done) {
        resume();
      } else if (const uint32_t count = towards(gpu_->heads_towards(*present.mark)); count != 0) {
        return count;
      }
      continue;
    }
    if (present.state == State::kAsks) {
      if (!quiet_) return present.choices;
      present.chosen = 0;
      resume();
      continue;
    }
    // The worker ends its round first.
    if (fibers_[0]->state == State::kEnded &&
        (!program_.bounds.worker || fibers_.back()->between_actions)) {
      end_of_all();
      continue;
    }
    if (const uint32_t count = offer_players(); count != 0) return count;
  }
}

void Stage::choose(uint32_t chosen) {
  if (!offered_heads_.empty()) return gpu_->step(*offered_heads_[chosen]);
  if (!offered_.empty()) return take(offered_[chosen]);
  self().chosen = chosen;
  resume();
}

// The program has ended; what the GPU still has to do may be done in any order.
void Stage::end_of_all() {
  draining_ = true;
  gpu_->settle();
}

void Stage::check_end() {
  quiet_ = true;
  world_->as(0);
  for (int round = 0; round < 10 && world_->engine->worker_step(); ++round) {
  }
  EngineTest::check(*world_->engine, world_->device.memory());
}

uint64_t Stage::digest() {
  Engine& engine = *world_->engine;
  uint64_t sum = mix(EngineTest::digest(engine, world_->port), EngineTest::shared_digest(engine));
  sum = mix(sum, world_->digest());
  sum = mix(sum, gpu_->digest());
  sum = mix(sum, world_->device.memory().digest());
  sum = mix(sum, current_ * 16 + failures_left_);
  sum = mix(sum, static_cast<uint64_t>(flags_ * 16 + flags_set_) * 2 + (draining_ ? 1 : 0));
  for (const auto& player : fibers_) {
    sum = mix(sum, player->history);
    sum = mix(sum, static_cast<uint64_t>(player->state) * 2 + (player->between_actions ? 1 : 0));
  }
  const PlayedPolicy& policy = world_->policy;
  sum = mix(sum, policy.wanted_bytes * 2 + (policy.only_first ? 1 : 0));
  for (const uint64_t id : policy.first) sum = mix(sum, id);
  for (const int users : users_) sum = mix(sum, static_cast<uint64_t>(users) + 1000);
  return sum;
}

std::string Stage::dump() {
  constexpr const char* kStates[] = {"ready",       "wants the mutex",    "asks",
                                     "forces",      "waits for an event", "waits for a queue",
                                     "looks again", "waits for a tensor", "waits for others",
                                     "has no work", "has ended"};
  std::string text;
  for (const auto& player : fibers_) {
    text += "thread " + std::to_string(player->index) + " " +
            kStates[static_cast<size_t>(player->state)] + "\n";
  }
  return text + EngineTest::dump_unlocked(*world_->engine) + world_->device.dump();
}

}  // namespace offload::model
