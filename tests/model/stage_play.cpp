// SPDX-License-Identifier: Apache-2.0
// What the threads do, and where they stop.

#include <cstdio>

#include "tests/model/stage.h"
#include "tests/unit/engine/model/inspect.h"

namespace offload::model {

void Stage::play(size_t index) {
  if (index >= program_.threads.size()) return work();
  if (index == 0) {
    for (const Action& action : program_.prologue) act(action);
  }
  quiet_ = quiet_ && index != 0;
  uint64_t place = 0;
  for (const Action& action : program_.threads[index]) {
    self().history = mix(index, ++place);
    self().between_actions = true;
    suspend(State::kReady);
    note(world_->digest());
    act(action);
  }
  self().history = mix(index, ++place);
  if (index != 0) return;
  suspend(State::kWaitsOthers);
  finish();
}

// Rounds while there is something to do.
void Stage::work() {
  for (;;) {
    self().history = 0;
    self().between_actions = true;
    suspend(State::kNoWork);
    world_->engine->worker_step();
    self().seen = changes();
  }
}

void Stage::finish() {
  quiet_ = true;
  for (int stream = 0; stream < static_cast<int>(world_->streams()); ++stream)
    act_graphs(end_capture(stream));
  act_graphs(destroy_graph());
  if (flags_ > 0) {  // there is time enough for what stood behind them
    while (flags_set_ < flags_) world_->set_flag(flags_set_++);
    gpu_->settle();
    while (!gpu_->heads().empty()) gpu_->step(*gpu_->heads()[0]);
  }
  quiet_ = false;
  for (int letter = 0; letter < kLetters; ++letter) {
    const int tensor = vars_[letter];
    if (tensor < 0 || !world_->tensor(tensor).live || !world_->tensor(tensor).written) continue;
    // By one thread, with nothing pinned elsewhere: nothing may be refused.
    if (world_->try_op(0, {read(tensor)}) != Status::kOk &&
        failures_left_ == program_.bounds.failures) {
      fail(Failure::Kind::kRefused, "a tensor cannot come home");
    }
  }
}

void Stage::act(const Action& action) {
  if (action.stream >= static_cast<int>(world_->streams())) return;
  if (World::tracing) {
    std::printf("thread %zu: %s\n%s", current_, action.text.c_str(),
                EngineTest::dump_unlocked(*world_->engine).c_str());
  }
  World& w = *world_;
  if (captures(action.stream) && action.kind != Action::Kind::kEndCapture) {
    if (action.kind == Action::Kind::kOp) act_captured(action);
    return;
  }
  switch (action.kind) {
    case Action::Kind::kOp:
      return act_op(action);
    case Action::Kind::kBeginCapture:
    case Action::Kind::kEndCapture:
    case Action::Kind::kLaunch:
    case Action::Kind::kDestroyGraph:
      return act_graphs(action);
    case Action::Kind::kIdle:
      return w.idle(action.stream, 1);
    case Action::Kind::kSynchronize:
      return w.synchronize(action.stream);
    case Action::Kind::kWaitForFlag:
      return w.wait_for_flag(action.stream, flags_++);
    case Action::Kind::kFlagBefore:
      return w.flag_before(action.stream, flags_++);
    case Action::Kind::kSetFlag:
      if (flags_set_ < flags_) w.set_flag(flags_set_++);
      return gpu_->settle();
    case Action::Kind::kRetire:
      return w.engine->retire("a program", w.pins());
    case Action::Kind::kTrim:
      return w.engine->trim(0);
    case Action::Kind::kNewStream:
      w.add_stream();
      return;
    case Action::Kind::kRunAll:
      while (!gpu_->heads().empty()) gpu_->step(*gpu_->heads()[0]);
      return;
    default:
      return act_inside(action);
  }
}

void Stage::wait_for(const std::vector<Arg>& args) {
  self().wanted = args;
  if (free_for(args)) return;
  suspend(State::kWaitsTensor);
  note(world_->digest());
}

void Stage::act_inside(const Action& action) {
  World& w = *world_;
  int& tensor = vars_[action.var];
  const bool live = tensor >= 0 && w.tensor(tensor).live;
  if (live == (action.kind == Action::Kind::kAllocate)) return;
  if (action.kind == Action::Kind::kPress) return w.press(tensor);
  self().wanted = {Arg{action.var, Mode::kUpdate}};
  if (!free_for(self().wanted)) {
    suspend(State::kWaitsTensor);
    note_shared();
    if ((tensor >= 0 && w.tensor(tensor).live) == (action.kind == Action::Kind::kAllocate)) return;
  }
  const std::vector<Arg> args = self().wanted;
  claim(args, 1);
  if (action.kind == Action::Kind::kFree) {
    action.stream < 0 ? w.free(tensor) : w.free_async(tensor, action.stream);
  } else {
    const uint64_t bytes = action.granules == 0 ? kGranule - 96 : granules(action.granules);
    const int born =
        action.stream < 0 ? w.try_allocate(bytes) : w.try_allocate_async(bytes, action.stream);
    if (born >= 0) tensor = born;
    if (born < 0 && !program_.refuses) fail(Failure::Kind::kRefused, action.text);
  }
  claim(args, -1);
}

void Stage::act_op(const Action& action) {
  World& w = *world_;
  std::vector<Arg> args = action.args;
  wait_for(args);
  std::vector<Arg> given;
  for (Arg arg : args) {
    const int tensor = vars_[arg.tensor];
    if (tensor < 0) return;
    World::Tensor& touched = w.tensor(tensor);
    if (arg.mode != Mode::kNothing) {
      if (!touched.live) return;
      if (!touched.written) arg.mode = Mode::kWrite;
      // A hidden use comes within grace of a named one, or before what was never named leaves.
      const bool near =
          touched.last_named_op == 0
              ? w.states(tensor).find_first_not_of('R') == std::string::npos
              : w.engine->ops() + 1 <= touched.last_named_op + program_.settings.grace;
      // Or it reads what the address shows of the copy in host memory.
      Memory& memory = w.device.memory();
      const Handle shown = memory.shown_at(touched.address);
      const bool slot = shown != 0 && memory.place_of(shown) == Place::kHost;
      if (!arg.named && !near && !(slot && arg.mode == Mode::kRead)) return;
    }
    arg.tensor = tensor;
    given.push_back(arg);
  }
  // A write, for whoever else wants it, if it has become one.
  for (size_t i = 0; i < args.size(); ++i) {
    args[i].mode = given[i].mode;
  }
  claim(args, 1);
  World::Op op = w.name(action.stream, given);
  w.start(op);
  if (op.status == Status::kOk) {
    if (others_could_go_on()) {
      suspend(State::kReady);
      note_shared();
    }
    w.forward(op);
    w.end(op);
  } else if (!program_.refuses) {
    fail(Failure::Kind::kRefused, action.text);
  }
  claim(args, -1);
}

bool Stage::fails(Call call) {
  if (!inside() || quiet_ || failures_left_ == 0) return false;
  if (program_.bounds.only != Call::kCount && program_.bounds.only != call) return false;
  if (ask(2) == 0) return false;
  --failures_left_;
  if (World::tracing) std::printf("  call %d fails\n", static_cast<int>(call));
  return true;
}

// With the mutex held, others do nothing that a call for the GPU or for memory could notice; but
// for these two, which stand for what the stream was given.
void Stage::between(Call call) {
  if (!inside()) return;
  const bool locked = owner_ == current_ && EngineTest::holds_mutex(*world_->engine);
  const bool about_streams = call == Call::kRecord || call == Call::kWait;
  if (locked && !about_streams) return;
  if (!others_could_go_on()) return;
  suspend(State::kReady);
  note_shared();
}

void Stage::asked(const std::shared_ptr<Mark>& mark) {
  if (!inside() || mark->done || quiet_ || !gpu_->can_reach(*mark)) return;
  const bool eager = program_.bounds.eager;
  bool passes = eager;
  if (deviations_ < program_.bounds.deviations && ask(2) == 1) {
    ++deviations_;
    passes = !eager;
  }
  if (!passes) return;
  self().mark = mark;
  suspend(State::kForces);
}

void Stage::answered(uint64_t answer) {
  if (inside()) note(answer);
}

void Stage::wait(const std::shared_ptr<Mark>& mark) {
  if (!inside()) {
    while (!mark->done) {
      const auto& heads = gpu_->heads_towards(*mark);
      if (heads.empty()) fail(Failure::Kind::kHang, "the host waits for what nothing will do");
      gpu_->step(*heads[0]);
    }
    return;
  }
  gpu_->settle();
  while (!mark->done) {
    self().mark = mark;
    suspend(State::kWaitsMark);
  }
  note_shared();
}

void Stage::make_room(Queue& queue) {
  if (program_.bounds.queue_items == 0 || !inside()) return;
  while (queue.items.size() >= program_.bounds.queue_items) {
    self().queue = &queue;
    suspend(State::kWaitsRoom);
  }
}

void Stage::look_again(std::unique_lock<Mutex>& lock) {
  lock.unlock();
  if (!inside()) {
    if (const auto& heads = gpu_->heads(); !heads.empty()) gpu_->step(*heads[0]);
  } else {
    self().seen = changes();
    suspend(State::kLooks);
  }
  lock.lock();
}

void Stage::at(Edge edge) {
  if (!inside() || edge == Edge::kWantMutex || edge == Edge::kHasMutex) return;
  if (!others_could_go_on()) return;
  suspend(State::kReady);
  note_shared();
}

bool Stage::lock(Mutex& mutex) {
  if (!inside()) return false;
  if (mutex.held() || others_could_go_on()) suspend(State::kWantsMutex);
  owner_ = current_;
  note(EngineTest::digest(*world_->engine, world_->port));
  note_shared();
  return true;
}

}  // namespace offload::model
