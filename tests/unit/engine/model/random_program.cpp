// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/random_program.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>

#include "policies/pressure.h"
#include "tests/unit/engine/model/failure.h"
#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/schedules.h"
#include "tests/unit/engine/model/world.h"

namespace offload::model {

const char* name_of(Flavour flavour) {
  constexpr const char* kNames[] = {"plain",    "hidden",  "flags",
                                    "failures", "threads", "threads-failures"};
  return kNames[static_cast<size_t>(flavour)];
}

namespace {

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, Flavour flavour, uint32_t steps)
      : random_(seed),
        flavour_(flavour),
        steps_(steps),
        pressure_({.alpha = 0.2, .min_size_bytes = 1}) {
    schedule_ = make_schedule(below(8) == 0 ? "needed" : "random:" + std::to_string(random_()));
    choose_settings();
    world_.emplace(settings_, *schedule_);
    world_->policy.random.seed(random_());
    world_->policy.shuffle = below(2) == 0;
    world_->policy.per_thousand = below(3) == 0 ? 0 : static_cast<uint32_t>(below(400));
  }

  void run() {
    World& w = *world_;
    if (failing()) {
      for (size_t i = 0; i < static_cast<size_t>(Call::kCount); ++i) {
        if (below(2) == 0) w.port.fail_by_chance(static_cast<Call>(i), 100, random_());
      }
    }
    if (threaded()) {
      for (int i = 0; i < 3; ++i) w.add_stream();
      std::vector<std::function<void()>> bodies;
      const size_t threads = 2 + below(2);
      for (size_t i = 0; i < threads; ++i) bodies.push_back([this] { play(); });
      working_ = threads;
      bodies.push_back([this] { work(); });
      w.crew.run(bodies, random_());
    } else {
      const size_t count = 1 + below(4);
      for (size_t i = 0; i < count; ++i) w.add_stream();
      play();
    }
    settle();
  }

  World& world() { return *world_; }
  uint64_t refused() const { return refused_; }

 private:
  static constexpr uint64_t kLargestTensor = 7;
  static constexpr uint64_t kLargestSlab = 5;

  uint64_t below(uint64_t end) { return random_() % end; }
  bool failing() const {
    return flavour_ == Flavour::kFailures || flavour_ == Flavour::kThreadsFailures;
  }
  bool threaded() const {
    return flavour_ == Flavour::kThreads || flavour_ == Flavour::kThreadsFailures;
  }

  void choose_settings() {
    settings_.device_granules = 12 + below(20);
    settings_.largest_extent = uint32_t{1} << below(4);
    settings_.host_granules = below(3) == 0 ? settings_.largest_extent + below(12) : 200;
    settings_.grace = static_cast<uint32_t>(below(5));
    settings_.piece_granules = 1 + below(3);
    settings_.evicted = below(2) == 0 ? EvictedShows::kHostCopy : EvictedShows::kNothing;
    if (settings_.evicted == EvictedShows::kNothing && settings_.host_granules < 200) {
      settings_.largest_extent = 1;  // parts of pinned blocks cannot always be joined
    }
    settings_.finished_only = below(6) == 0;
    settings_.patience = 300;
    settings_.fenced_free = below(3) == 0;
    settings_.verify = below(6) == 0;
    settings_.min_granules = 1 + below(2);
    settings_.slot_chunk_granules = 1 + below(8);
    if (below(6) == 0 && settings_.host_granules >= 200)
      settings_.card_granules = settings_.device_granules - 1;
    if (below(4) == 0) settings_.policy = &pressure_;
    if (flavour_ == Flavour::kHidden) {
      // So roomy that nothing has to leave before its grace is over.
      settings_.device_granules = 80;
      settings_.card_granules = 0;
      settings_.largest_extent = 1;
      settings_.grace = 2 + static_cast<uint32_t>(below(4));
      settings_.policy = nullptr;
    }
    if (World::tracing) {
      std::printf(
          "device %llu, card %llu, host %llu, largest %u, grace %u, finished only %d, fenced free "
          "%d\n",
          static_cast<unsigned long long>(settings_.device_granules),
          static_cast<unsigned long long>(settings_.card_granules),
          static_cast<unsigned long long>(settings_.host_granules), settings_.largest_extent,
          settings_.grace, settings_.finished_only, settings_.fenced_free);
    }
    own_streams_ = threaded() && below(2) == 0;
    live_limit_ = flavour_ == Flavour::kHidden ? 60 : settings_.device_granules * 2;
  }

  void play() {
    if (own_streams_) world_->add_stream(true);
    while (steps_ > 0) {
      --steps_;
      action();
      if (!flags_.empty() && below(4) == 0) set_oldest_flag();
    }
    --working_;
  }

  void work() {
    while (working_ > 0) {
      world_->worker_step();
      world_->step();
    }
  }

  void settle() {
    World& w = *world_;
    while (!flags_.empty()) set_oldest_flag();
    if (flavour_ == Flavour::kFlags) w.run_all();  // what stood behind them has time enough
    if (capturing_ >= 0) w.end_capture(capturing_);
    for (size_t i = 0; i < static_cast<size_t>(Call::kCount); ++i) {
      w.port.fail_by_chance(static_cast<Call>(i), 0, 1);
    }
    // Beside what graphs keep where it is, the largest tensor may not fit.
    uint64_t largest = 0;
    for (const int index : live_) largest = std::max<uint64_t>(largest, granules_of(index));
    for (size_t i = 0; i < w.graphs() && largest > room(); ++i) {
      if (w.graph(static_cast<int>(i)).live) w.destroy_graph(static_cast<int>(i));
    }
    w.finish();
  }

  void action() {
    const uint64_t what = below(100);
    if (what < 45) return some_op();
    if (what < 50) return some_graph();
    if (what < 68) return some_allocation();
    if (what < 82) return some_free();
    if (what < 88) {
      world_->worker_step();
      return world_->step();
    }
    if (what < 91) return world_->idle(any_stream(), 1 + static_cast<uint32_t>(below(3)));
    if (what < 94) return look();
    if (what < 95) {
      {
        const World::Inside inside(*world_);
        world_->engine->trim(below(settings_.device_granules) * kGranule);
      }
      return world_->step();
    }
    if (what < 97) return other_streams();
    if (what < 98) return read_back();
    if (what < 99) return some_capture();
    if (flavour_ == Flavour::kFlags && flags_.size() < 3) {
      world_->wait_for_flag(any_stream(), next_flag_);
      flags_.push_back(next_flag_++);
    }
  }

  int any_stream() {
    for (;;) {
      const int index = static_cast<int>(below(world_->streams()));
      const World::Stream& chosen = world_->stream(index);
      const bool others = chosen.per_thread && chosen.thread != world_->thread();
      if (chosen.live && !others && capturing_ != index) return index;
    }
  }

  // A live tensor that no thread is about to write (or, for `alone`, to touch); -1: none.
  int any_tensor(bool alone) {
    if (live_.empty()) return -1;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const int index = live_[below(live_.size())];
      const auto use = users_.find(index);
      if (use == users_.end() || (!alone && use->second > 0)) return index;
    }
    return -1;
  }

  uint64_t granules_of(int index) {
    const Buffer* buffer = EngineTest::buffer_at(*world_->engine, world_->tensor(index).address);
    return buffer != nullptr ? buffer->granules : 0;
  }

  // What movable tensors may take.
  uint64_t room() {
    const uint64_t device =
        settings_.card_granules != 0 ? settings_.card_granules : settings_.device_granules;
    const uint64_t stays = EngineTest::slab_granules(*world_->engine) + held_granules();
    return device > stays ? device - stays : 0;
  }
  // What graphs keep where it is.
  uint64_t held_granules() {
    uint64_t sum = 0;
    for (size_t i = 0; i < world_->graphs(); ++i) {
      const World::Graph& graph = world_->graph(static_cast<int>(i));
      for (const World::Graph::Operand& operand : graph.operands)
        sum += graph.live ? (operand.bytes + kGranule - 1) / kGranule * 9 / 8 + 1 : 0;
    }
    return sum;
  }
  // Nobody else pins anything, nothing fails, and host memory is plenty. While the GPU has not got
  // to a flag that was set, there is only what it has finished with, for which it has a limited
  // time.
  bool must_succeed() {
    bool forwarding = false;
    return !threaded() && !failing() && flags_.empty() && settings_.host_granules >= 200 &&
           !settings_.finished_only && world_->engine->external_waits(&forwarding).empty();
  }

  uint64_t live_granules() {
    uint64_t sum = 0;
    for (const int index : live_) {
      sum += (world_->tensor(index).bytes + kGranule - 1) / kGranule;
    }
    return sum;
  }

  void some_allocation() {
    World& w = *world_;
    uint64_t bytes = below(3) == 0 ? 1 + below(settings_.min_granules * kGranule)
                                   : granules(1 + below(5)) + (below(2) == 0 ? 0 : 1 + below(4000));
    bytes = (bytes + kCellBytes - 1) / kCellBytes * kCellBytes;
    if (bytes < settings_.min_granules * kGranule &&
        room() < kLargestTensor + kLargestSlab * (threaded() ? 3 : 1)) {
      return some_free();  // slabs do not move: leave room for the largest tensor beside them
    }
    if (live_granules() + (bytes + kGranule - 1) / kGranule > live_limit_) return some_free();
    const int index =
        below(2) == 0 ? w.try_allocate(bytes) : w.try_allocate_async(bytes, any_stream());
    if (index < 0) {
      ++refused_;
      const uint64_t needed = (bytes + kGranule - 1) / kGranule;
      if (must_succeed() && bytes >= settings_.min_granules * kGranule && needed <= room()) {
        fail(Failure::Kind::kRefused, "an allocation for which there is room");
      }
      return;
    }
    live_.push_back(index);
  }

  void some_free() {
    World& w = *world_;
    const int index = any_tensor(true);
    if (index < 0) return;
    live_.erase(std::find(live_.begin(), live_.end(), index));
    if (below(3) == 0 && flags_.empty()) {
      // A free that does not wait fences only what it can see: what the program ordered itself.
      w.free(index);
    } else {
      w.free_async(index, any_stream());
    }
  }

  void some_op() {
    World& w = *world_;
    const int stream = any_stream();
    std::vector<Arg> args;
    std::set<int> taken;
    uint64_t size = 0;
    const uint64_t count = 1 + below(3);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t kind = below(10);
      const int index = any_tensor(kind < 6);
      if (index < 0 || !taken.insert(index).second) continue;
      Arg arg{index, kind == 9 ? Mode::kNothing : kind < 6 ? Mode::kUpdate : Mode::kRead};
      World::Tensor& chosen = w.tensor(index);
      if (!chosen.written && arg.mode != Mode::kNothing) {
        if (users_.count(index) != 0) continue;
        arg.mode = Mode::kWrite;
      }
      size += granules_of(index);
      if (size > room()) break;
      if (flavour_ == Flavour::kHidden && chosen.written && chosen.last_named_op != 0 &&
          w.engine->ops() + 1 <= chosen.last_named_op + settings_.grace && below(2) == 0) {
        arg.named = false;
      }
      if (below(8) == 0) arg.offset = static_cast<int64_t>(below(2 * kGranule)) - kGranule;
      if (arg.offset >= static_cast<int64_t>(granules_of(index) * kGranule)) arg.offset = 0;
      if (granules_of(index) == 0) arg.offset = 0;
      args.push_back(arg);
    }
    for (const Arg& arg : args) claim(arg);
    if (w.try_op(stream, args) != Status::kOk) {
      ++refused_;
      if (must_succeed()) fail(Failure::Kind::kRefused, "an op for which there is room");
    }
    for (const Arg& arg : args) release(arg);
  }

  // A stream captures for a while; what it would have been given goes into a graph.
  void some_capture() {
    if (threaded() || world_->streams() < 2) return;  // between a thread's steps it may not begin
    if (capturing_ >= 0) {
      world_->end_capture(capturing_);
      capturing_ = -1;
      return;
    }
    const int stream = any_stream();
    if (stream == 0) return;
    world_->begin_capture(stream);
    capturing_ = stream;
  }

  // Makes a graph, launches one, or destroys one.
  void some_graph() {
    World& w = *world_;
    std::vector<int> graphs;
    for (size_t i = 0; i < w.graphs(); ++i) {
      if (w.graph(static_cast<int>(i)).live && busy_graphs_.count(static_cast<int>(i)) == 0)
        graphs.push_back(static_cast<int>(i));
    }
    const bool may_make = graphs.size() < 2 && held_granules() * 4 < room();
    if (may_make && (graphs.empty() || below(3) == 0)) return make_graph();
    if (graphs.empty()) return;
    const int graph = graphs[below(graphs.size())];
    if (below(4) == 0) return w.destroy_graph(graph);
    launch(graph);
  }

  void make_graph() {
    World& w = *world_;
    std::vector<Arg> args;
    for (uint64_t i = 0, count = 1 + below(2); i < count; ++i) {
      const int index = any_tensor(true);
      if (index < 0 || granules_of(index) == 0 || granules_of(index) * 3 > room()) continue;
      if (!w.tensor(index).written || (!args.empty() && args[0].tensor == index)) continue;
      args.push_back(below(2) == 0 ? update(index) : read(index));
    }
    if (args.empty()) return;
    for (const Arg& arg : args) claim(arg);
    if (w.try_make_graph(args) < 0) ++refused_;
    for (const Arg& arg : args) release(arg);
  }

  void launch(int graph) {
    World& w = *world_;
    const std::vector<Arg> args = w.graph(graph).args;
    for (const Arg& arg : args) {
      const bool used = users_.count(arg.tensor) != 0;
      const bool being_freed = std::find(live_.begin(), live_.end(), arg.tensor) == live_.end();
      if (w.tensor(arg.tensor).live && (used || being_freed)) return;
    }
    for (const Arg& arg : args) claim(arg);
    busy_graphs_.insert(graph);
    if (w.try_launch(graph, any_stream()) != Status::kOk) {
      ++refused_;
      if (must_succeed()) fail(Failure::Kind::kRefused, "a launch of what is at home");
    }
    busy_graphs_.erase(graph);
    for (const Arg& arg : args) release(arg);
  }

  // Readers count up, a writer is -1.
  void claim(const Arg& arg) {
    if (arg.mode == Mode::kNothing) return;
    int& users = users_[arg.tensor];
    users = arg.mode == Mode::kRead ? users + 1 : -1;
  }
  void release(const Arg& arg) {
    if (arg.mode == Mode::kNothing) return;
    int& users = users_[arg.tensor];
    users = arg.mode == Mode::kRead ? users - 1 : 0;
    if (users == 0) users_.erase(arg.tensor);
  }

  void read_back() {
    const int index = any_tensor(true);
    if (index < 0 || !flags_.empty() || !world_->tensor(index).written) return;
    const Arg arg = read(index);
    claim(arg);
    if (world_->try_op(0, {arg}) == Status::kOk) world_->synchronize(0);
    release(arg);
  }

  void look() {
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    world_->engine->memory_info(&free_bytes, &total_bytes);
    if (total_bytes < free_bytes + world_->engine->live_bytes()) {
      fail(Failure::Kind::kInvariant, "memory_info: total is less than free and live");
    }
    world_->engine->collect();
    world_->step();
  }

  void other_streams() {
    World& w = *world_;
    if (w.streams() < 12) {
      w.add_stream();
      return;
    }
    if (threaded() || !flags_.empty()) return;
    const int index = any_stream();
    if (index != 0 && capturing_ < 0) w.destroy_stream(index);
  }

  void set_oldest_flag() {
    world_->set_flag(flags_.front());
    flags_.erase(flags_.begin());
  }

  std::mt19937_64 random_;
  Flavour flavour_;
  uint32_t steps_;
  PressurePolicy pressure_;
  Settings settings_;
  std::unique_ptr<Schedule> schedule_;
  std::optional<World> world_;
  std::vector<int> live_;
  std::map<int, int> users_;
  std::vector<int> flags_;
  std::set<int> busy_graphs_;
  int capturing_ = -1;  // the stream that captures
  int next_flag_ = 0;
  size_t working_ = 1;
  bool own_streams_ = false;  // each thread has a per-thread stream
  uint64_t live_limit_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace

RandomResult run_random(uint64_t seed, Flavour flavour, uint32_t steps) {
  RandomResult result;
  RandomProgram program(seed, flavour, steps);
  World& world = program.world();
  try {
    program.run();
  } catch (const Failure& failure) {
    result.held = false;
    result.what = std::string(name_of(failure.kind)) + ": " + failure.what +
                  "; again with: engine_soak --flavour " + name_of(flavour) + " --seed " +
                  std::to_string(seed) + " --steps " + std::to_string(steps);
  }
  const Statistics& counted = *world.statistics;
  result.ops = world.engine->ops();
  result.refused = program.refused();
  result.bytes_out = counted.bytes_out.get();
  result.bytes_in = counted.bytes_in.get();
  result.cancelled = counted.cancelled_evictions.get();
  result.parked_hits = counted.parked_hits.get();
  result.failed_calls = world.port.failures();
  Snapshot snapshot{};
  counted.read(snapshot);
  for (const Snapshot::Wait& wait : snapshot.waits) result.host_waits += wait.count;
  return result;
}

}  // namespace offload::model
