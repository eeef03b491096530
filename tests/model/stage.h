// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program on the shipped engine, whose threads, worker and GPU go on one step at a time, as
// somebody chooses. Lies in the arena with all it owns, so that it can be put back.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interpose/engine/edges.h"
#include "tests/model/fiber.h"
#include "tests/model/gpu.h"
#include "tests/model/program.h"
#include "tests/unit/engine/model/world.h"

namespace offload::model {

class Stage final : public Director, public EdgeWatcher {
 public:
  explicit Stage(const Program& program);
  ~Stage() override;

  // Goes on to the next choice and says how many there are; 0: the end, and all is well. Throws
  // Failure.
  uint32_t next();
  void choose(uint32_t chosen);
  // Equal for states from which the same can happen.
  uint64_t digest();
  // From the plain course (Bounds): states reached with fewer can go further.
  uint32_t deviations() const { return deviations_; }
  // What of the stacks is in use.
  size_t fibers() const { return fibers_.size(); }
  const Fiber& fiber(size_t index) const { return fibers_[index]->fiber; }
  uint64_t evictions() const { return world_->statistics->bytes_out.get(); }
  std::string dump();

  // Director.
  bool fails(Call call) override;
  void between(Call call) override;
  void asked(const std::shared_ptr<Mark>& mark) override;
  void answered(uint64_t answer) override;
  void wait(const std::shared_ptr<Mark>& mark) override;
  void make_room(Queue& queue) override;
  void look_again(std::unique_lock<Mutex>& lock) override;
  // EdgeWatcher.
  void at(Edge edge) override;
  bool lock(Mutex& mutex) override;

 private:
  enum class State : uint8_t {
    kReady,        // at an edge
    kWantsMutex,   // about to lock
    kAsks,         // a choice of its own: `choices` many
    kForces,       // until `mark` is done, which was chosen to happen
    kWaitsMark,    // until `mark` is done
    kWaitsRoom,    // until `queue` takes another item
    kLooks,        // until anything has changed
    kWaitsTensor,  // until nobody uses what it is about to use
    kWaitsOthers,  // until the other threads of the program have ended
    kNoWork,       // the worker: nothing is due
    kEnded,
  };
  struct Player {
    Stage* stage = nullptr;
    size_t index = 0;
    Fiber fiber;
    State state = State::kReady;
    bool between_actions = true;
    uint64_t history = 0;
    uint32_t choices = 0;
    uint32_t chosen = 0;
    std::shared_ptr<Mark> mark;
    Queue* queue = nullptr;
    uint64_t seen = 0;  // what there was when it began to look
    std::vector<Arg> wanted;
  };

  static void body(void* player);
  void play(size_t index);
  void work();
  void act(const Action& action);
  void act_op(const Action& action);
  void act_inside(const Action& action);
  void act_graphs(const Action& action);
  void act_captured(const Action& action);
  void act_launch(const Action& action);
  void wait_for(const std::vector<Arg>& args);
  bool captures(int stream) { return stream >= 0 && world_->stream(stream).queue->captures; }
  void finish();
  bool inside() const { return in_fiber_; }
  Player& self() { return *fibers_[current_]; }
  void suspend(State state);
  uint32_t ask(uint32_t choices);
  void note(uint64_t value) { self().history = mix(self().history, value); }
  void note_shared();
  bool others_could_go_on();
  bool can_go_on(const Player& player);
  bool free_for(const std::vector<Arg>& args) const;
  void claim(const std::vector<Arg>& args, int by);
  bool program_ended() const;
  uint64_t changes();

  uint32_t offer_players();
  void take(size_t player);
  void resume();
  uint32_t towards(const std::vector<Queue*>& heads);
  bool vain();
  void end_of_all();
  void check_end();

  const Program& program_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Gpu> gpu_;
  std::vector<std::unique_ptr<Player>> fibers_;
  size_t current_ = 0;
  bool in_fiber_ = false;
  bool quiet_ = true;  // no choices: the prologue, and the end
  bool draining_ = false;
  uint32_t deviations_ = 0;
  uint32_t failures_left_ = 0;
  uint32_t in_vain_ = 0;
  size_t owner_ = 0;  // of the engine's mutex, while it is held
  std::optional<Failure> failure_;
  std::vector<size_t> offered_;
  std::vector<Queue*> offered_heads_;
  int vars_[kLetters + 1];  // the last: the graph
  int users_[kLetters + 1] = {};
  std::vector<Arg> graph_args_;  // by letters
  int flags_ = 0;
  int flags_set_ = 0;
};

}  // namespace offload::model
