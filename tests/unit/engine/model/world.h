// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program on the modelled GPU, through the engine, and what it would compute without it. Kernels
// read all of what they touch and write values that depend on it; each knows what it would have
// read without the engine, and a difference is a Failure. Accesses of different streams that
// conflict are ordered by events of the program's own, as a correct program does.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "interpose/engine/engine.h"
#include "tests/unit/engine/model/device.h"
#include "tests/unit/engine/model/kernel.h"
#include "tests/unit/engine/model/policy.h"
#include "tests/unit/engine/model/port.h"

namespace offload::model {

inline constexpr uint64_t kGranule = 4096;

struct Settings {
  uint64_t device_granules = 8;  // the engine's limit
  uint64_t card_granules = 0;    // what there really is; 0: the limit
  uint64_t host_granules = 64;
  uint32_t largest_extent = 4;
  uint32_t grace = 2;
  uint64_t piece_granules = 1;  // of copies
  EvictedShows evicted = EvictedShows::kHostCopy;
  bool finished_only = false;
  bool fenced_free = false;
  uint32_t queue_depth = 512;
  uint32_t patience = 20;
  bool move = true;
  bool verify = false;
  uint64_t min_granules = 1;
  uint64_t slot_chunk_granules = 1;
  uint64_t window_granules = 0;  // 0: the engine chooses
  Policy* policy = nullptr;      // null: the world's own, `policy`
};

struct Arg {
  int tensor;
  Mode mode;
  bool named = true;
  int64_t offset = 0;  // of the address that names it
};
inline Arg write(int tensor) {
  return {tensor, Mode::kWrite};
}
inline Arg update(int tensor) {
  return {tensor, Mode::kUpdate};
}
inline Arg read(int tensor) {
  return {tensor, Mode::kRead};
}
inline Arg phantom(int tensor) {
  return {tensor, Mode::kNothing};
}
inline Arg hidden_write(int tensor) {
  return {tensor, Mode::kWrite, false};
}
inline Arg hidden_update(int tensor) {
  return {tensor, Mode::kUpdate, false};
}
inline Arg hidden_read(int tensor) {
  return {tensor, Mode::kRead, false};
}

class World {
 public:
  World(const Settings& settings, Schedule& schedule);
  ~World();

  // --- The program. Streams and tensors are numbers. What fails must not, unless it says "try".
  // `context`: another than the device's own, as a number.
  int add_stream(bool per_thread = false, uintptr_t context = 0);
  void destroy_stream(int stream);
  int allocate(uint64_t bytes);
  int try_allocate(uint64_t bytes);  // -1: refused
  int allocate_async(uint64_t bytes, int stream);
  int try_allocate_async(uint64_t bytes, int stream);
  void free(int tensor);
  void free_async(int tensor, int stream);
  // An op in one go, and in its steps, between which others may do something.
  void op(int stream, const std::vector<Arg>& args);
  Status try_op(int stream, const std::vector<Arg>& args);
  struct Op {
    int stream;
    std::vector<Arg> args;
    ThreadPins* pins;
    StreamIndex index;
    Status status;
    uint64_t sequence = 0;
  };
  Op begin(int stream, const std::vector<Arg>& args);  // name, then start
  Op name(int stream, const std::vector<Arg>& args);
  void start(Op& op);  // without the engine's mutex if nothing has to be done
  void forward(Op& op);
  void end(const Op& op);
  // `count` ops that name nothing.
  void idle(int stream, uint32_t count);
  // `waiter` waits for all that `stream` was given so far (an event of the program's).
  void join(int waiter, int stream);
  void synchronize(int stream);
  // An op that waits for the host to set `flag`, as the hooks tell it; `meanwhile`: what another
  // thread does once the driver has it, before they tell.
  void wait_for_flag(int stream, int flag, const std::function<void()>& meanwhile = {});
  // The driver had that op before the engine was there, which is told of the event behind it.
  void flag_before(int stream, int flag);
  // A copy from the host that writes the addresses of `named` into a table, as the hooks tell it.
  void copy_table(int stream, int table, const std::vector<int>& named);
  // The stream captures, and nothing of the engine's may touch it, until it no longer does.
  void begin_capture(int stream);
  void end_capture(int stream);
  // A graph of one node that does this, made now and launched later, as an op in one go. What its
  // node names must then be shown where it was: a driver may have looked. It may have been freed;
  // then the node writes what is nobody's. -1: refused.
  int make_graph(const std::vector<Arg>& args);
  int try_make_graph(const std::vector<Arg>& args);
  void launch(int graph, int stream);
  Status try_launch(int graph, int stream);
  // And in its steps, with start() and end() of its op in between. A node that would read what was
  // never written writes it.
  struct Launch;
  Launch name_launch(int graph, int stream);
  void forward(Launch& launch);
  void destroy_graph(int graph);
  // The context is destroyed with all that was queued; every tensor is gone.
  bool lose_context();  // as Engine::context_gone()
  // A context other than the device's own is destroyed; its work must be done.
  void lose_other_context(uintptr_t context);
  // The same, and before the engine hears that it is gone another has its handle: a stream of that.
  int replace_other_context(uintptr_t context, const std::vector<Arg>& args);
  void set_flag(int flag) { device.set_flag(flag); }
  // Reads a tensor back now.
  void check(int tensor);
  // Reads everything that is alive, waits for everything, and checks the engine's books.
  void finish();

  // --- Around it.
  // The host thread that plays from here on (when no crew does).
  void as(size_t thread) { played_ = thread; }
  size_t thread() const { return crew.running() ? crew.current() : played_; }
  ThreadPins& pins();
  bool worker_step();
  void worker();  // rounds until nothing is due
  // The policy wants this to leave, and nothing else; asked now.
  void press(const std::vector<int>& tensors);
  void press(int tensor) { press(std::vector<int>{tensor}); }
  // Runs everything that was submitted to a stream, or to a lane, and what that needs.
  void run(int stream);
  void run_lane(Lane lane);
  void run_all() { device.run_all(); }
  // Called between the program's calls: others go on, books are checked.
  void step();

  struct Tensor {
    Address address = 0;
    uint64_t bytes = 0;
    uint64_t id = 0;
    bool live = false;
    bool written = false;
    std::vector<Cell> expected;
    struct Access {
      int stream;
      uint64_t sequence;
    };
    std::optional<Access> writer;
    std::map<int, uint64_t> readers;
    uint64_t last_named_op = 0;
  };
  struct Stream {
    Queue* queue;
    NativeStream native;
    uint64_t id;
    bool per_thread;
    size_t thread;
    bool live = true;
    StreamIndex index = kNoStream;  // as the engine knows it
    uint64_t submitted = 1;
    std::set<uint64_t> unfinished_calls;   // submitted by calls that have not returned
    std::vector<uint64_t> joined;          // by stream: ordered behind this much of it
    std::shared_ptr<Mark> before_capture;  // what the program recorded there, for who joins it then
  };
  struct Graph {
    std::vector<Arg> args;
    struct Operand {
      Address address;
      uint64_t bytes;
      uint64_t id;
      Handle shown;
    };
    std::vector<Operand> operands;
    GraphHold hold;
    bool live = true;
  };
  struct Launch {
    int graph;
    Op op;
    std::vector<size_t> dead;  // operands that were freed
  };
  Graph& graph(int index) { return graphs_[static_cast<size_t>(index)]; }
  size_t graphs() const { return graphs_.size(); }
  Tensor& tensor(int index) { return tensors_[static_cast<size_t>(index)]; }
  Stream& stream(int index) { return streams_[static_cast<size_t>(index)]; }
  std::string states(int tensor);
  bool away(int tensor) { return states(tensor).find('H') != std::string::npos; }
  size_t tensors() const { return tensors_.size(); }
  size_t streams() const { return streams_.size(); }
  StreamIndex index_of(int stream);
  uint64_t digest();  // of what the program has done so far

  Crew crew;
  Device device;
  ModelPort port;
  PlayedPolicy policy;
  std::unique_ptr<Statistics> statistics;
  std::unique_ptr<Engine> engine;
  bool check_books = true;
  bool remember_streams = false;  // ask the engine for an index once only
  // Held around calls of the engine: the books are checked only while no thread is inside.
  struct Inside {
    explicit Inside(World& world) : count(world.inside_) { ++count; }
    ~Inside() { --count; }
    int& count;
  };
  static inline bool tracing = false;  // says every call of the program, for a replay

 private:
  void destroy_other_context(uintptr_t context);
  void say(const std::string& what) const;
  std::string describe(const std::vector<Arg>& args);
  Status allocate_inside(uint64_t bytes, StreamIndex index, Address* address);
  Status free_inside(Address address, StreamIndex index);
  int born(Status status, Address address, uint64_t bytes, const char* what);
  void gone(Tensor& tensor);
  void order(int stream, const Tensor& tensor, bool writes);
  bool behind(int stream, const Tensor::Access& access);
  void record_and_wait(int waiter, int stream);
  uint64_t expected_read(uint64_t op, const std::vector<Arg>& args);

  int inside_ = 0;
  bool fenced_free_;
  std::deque<Tensor> tensors_;
  std::deque<Graph> graphs_;
  std::vector<Stream> streams_;
  std::vector<uint64_t> host_saw_;  // by stream: finished, as the program's host knows
  std::map<size_t, ThreadPins*> pins_;
  size_t played_ = 0;
  std::map<void*, uint64_t> next_stream_id_;  // by context: numbers are unique within one
  std::map<size_t, uint64_t> next_op_;        // by thread
};

inline uint64_t granules(uint64_t count) {
  return count * kGranule;
}

}  // namespace offload::model
