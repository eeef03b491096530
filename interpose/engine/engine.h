// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine of one device: which buffer holds which memory, and how memory changes hands in stream
// order (protocol: README.md beside this file). Plain logic over Port; hooks, tests and the worker
// drive it. It does not start threads and does not read the environment.
//
// Threads: every public function may be called from any host thread, except that one ThreadPins
// belongs to one thread (tests play several threads in one by passing several). The mutex is taken
// inside; begin_op and end_op of an op whose buffers are all resident do not take it. Nothing here
// allocates from the program's heap.

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "interpose/engine/buffer.h"
#include "interpose/engine/clauses.h"
#include "interpose/engine/config.h"
#include "interpose/engine/edges.h"
#include "interpose/engine/graph_hold.h"
#include "interpose/engine/pins.h"
#include "interpose/engine/port.h"
#include "interpose/engine/streams.h"
#include "interpose/engine/tables.h"
#include "interpose/engine/transfers.h"
#include "interpose/life/not_cancelled.h"
#include "interpose/memory/extents.h"
#include "interpose/memory/parking.h"
#include "interpose/memory/slabs.h"
#include "interpose/memory/slots.h"
#include "interpose/memory/window.h"
#include "policies/policy.h"
#include "profiler/statistics.h"

namespace offload {

struct AllocationInfo {
  Address base = 0;
  uint64_t bytes = 0;  // as asked for
  uint64_t id = 0;
  bool stream_ordered = false;  // from allocate_async
};

class Engine {
 public:
  Engine(Port& port, const EngineConfig& config, Policy& policy, Statistics& statistics);
  // Reserves the window. An error leaves an engine that must not be used.
  Status initialise();

  // --- Streams, of the device's context and of others that use its memory. `id` is unique per
  // stream in its context for the life of the process (cuStreamGetId).
  StreamIndex stream(const NativeStream& native, uint64_t id, bool per_thread);
  StreamIndex known_stream(const NativeStream& native, uint64_t id);  // kNoStream: not followed
  // Before the driver destroys it: leaves an event behind.
  void stream_destroyed(void* context, uint64_t id);
  bool follows_streams_of(void* context);
  // A context other than the device's own is about to be destroyed: what it was given with our
  // memory is waited for, as nothing could be put behind it any more. And it died, with its streams
  // and events.
  void other_context_ends(void* context);
  void other_context_gone(void* context);
  // Around an op that waits for what the host does later (stream memory operations, external
  // semaphores, host functions): before it is forwarded, and after.
  void external_wait_begin(StreamIndex stream);
  void external_wait_end(StreamIndex stream);
  // For the engine of a device that is used from now on: the events behind such ops, of whatever
  // engine. They live until their context ends, and are only ever recorded again. `opening`:
  // there is one that has not been forwarded yet.
  struct Waiting {
    Event event;
    void* context;
  };
  OwnVector<Waiting> external_waits(bool* opening);
  void external_wait_before(const Waiting& waiting);

  // Around a capture: before the driver is asked to begin it (or to let the stream join one), and
  // when the stream no longer captures. In between nothing of ours is recorded there and it is not
  // made to wait. Called by a thread that may record on the stream.
  void freeze(StreamIndex stream);
  void thaw(StreamIndex stream);
  bool frozen(StreamIndex stream);
  uint32_t frozen_streams() const { return streams_.frozen_count(); }
  // The frozen streams, for which the caller asks the driver whether they still capture.
  OwnVector<StreamIndex> list_frozen();
  NativeStream native(StreamIndex stream) const { return streams_.native(stream); }

  // --- Allocation. `bytes` > 0. kOutOfMemory only after all that may move has moved.
  Status allocate(uint64_t bytes, ThreadPins* pins, Address* out);  // cuMemAlloc
  Status allocate_async(uint64_t bytes, StreamIndex stream, ThreadPins* pins,
                        Address* out);  // cuMemAllocAsync
  // kNotOurs: not in the window. kInvalid: in the window, but not the base of a live allocation.
  Status free(
      Address base,
      ThreadPins* pins);  // synchronous, or fenced with every stream (config.free_is_fenced)
  Status free_async(Address base, StreamIndex stream, ThreadPins* pins);
  bool owns(Address address) const { return window_.contains(address); }
  // The live allocation that holds `address`; false: none.
  bool describe(Address address, AllocationInfo* out);

  // --- Operations. name() what the op's arguments name, begin_op(), forward, end_op(). begin_op
  // makes everything resident and `stream` wait for what fills it. Anything but kOk: do not
  // forward, answer with the error; the pins are already dropped.
  void name(ThreadPins& pins, Address address) const {
    if (const PageEntry entry = window_.lookup(address); entry != nullptr)
      name_entry(pins, entry, address);
  }
  void name_words(ThreadPins& pins, const void* words,
                  size_t bytes) const;  // every aligned 8-byte word
  Status begin_op(ThreadPins& pins, StreamIndex stream);
  void end_op(ThreadPins& pins, StreamIndex stream);

  // A copy wrote `bytes` at `to`: addresses of ours among its words make `to` a table of names. To
  // be called while the copy's op is pinned; `from` is readable host memory, or lies in the window.
  void data_copied(Address to, const void* from, uint64_t bytes);
  // Where the other end is another device's: what tables of this device in [begin, end) name, added
  // to `words`; and that it was overwritten with what names nothing here.
  void read_tables(Address begin, Address end, OwnVector<Address>* words) const {
    tables_.read(begin, end, words);
  }
  void forget_tables(Address begin, Address end) { tables_.forget(begin, end); }

  // The allocation around `address` may not move any more (exported, encoded in a descriptor). It
  // is restored first.
  Status keep(Address address, ThreadPins& pins);

  // What `pins` name is brought home by the host, its content complete, and stays there until the
  // hold is released; blocks of slabs that these words name, and tables there, stay the program's
  // until then. The pins are dropped. Anything but kOk: nothing was added.
  Status hold(ThreadPins& pins, GraphHold* hold, std::span<const Address> words = {});
  void hold_also(const GraphHold& from, GraphHold* to);
  // Empties it. What was freed meanwhile may be used again behind every op that named it.
  void release(GraphHold* hold);

  // Nothing moves from here on; what is evicted is restored now. The first reason is kept. Never
  // fails the program. `say`: so, where all comes home; what does not is said in any case.
  void retire(const char* reason, ThreadPins& pins, bool say = true);
  bool retired() const { return retired_.load(std::memory_order_acquire); }

  // --- What the program may ask.
  void memory_info(uint64_t* free_bytes, uint64_t* total_bytes);
  uint64_t live_bytes() const;
  uint64_t mapped_bytes() const;
  void trim(uint64_t keep_bytes);  // gives parked and pooled memory back to the driver
  // The driver has no memory left for its own needs: gives it some `bytes`, moving buffers away if
  // need be. The thread may have an op begun. What was given, 0: nothing could be. Then how it
  // ended: it helped, and is gone for good, or it did not.
  uint64_t give_way(uint64_t bytes);
  void gave_way(uint64_t bytes, bool helped);

  // --- The worker. One round over what is due; true if something was done. wait_for_work() blocks
  // until there may be something to do, a short time at the most.
  bool worker_step();
  void wait_for_work();
  void stop_worker();  // makes wait_for_work return at once from now on

  // The context died with everything in it. Forgets streams and events; gives all memory back.
  // False: copies were under way, and are not counted.
  bool context_gone();

  // Tells the statistics what has completed meanwhile; for the report.
  void collect();
  // The same, unless somebody holds the mutex: at the end of the process that may be the caller
  // itself.
  bool try_collect();
  void tell_transfers(TransferSink sink, void* context) { transfers_.tell(sink, context); }

  PinRegistry& pin_registry() { return pin_registry_; }
  uint64_t ops() const { return streams_.ops(); }

 private:
  friend class EngineTest;
  // Also while the mutex is let go in the midst of something.
  class Lock : private NotCancelled, public std::unique_lock<Mutex> {
   public:
    using std::unique_lock<Mutex>::unique_lock;
  };

  // A piece in HOST whose address still shows its former extent (or nothing yet): the worker's to
  // mend.
  struct PieceJob {
    Buffer* buffer;
    uint32_t piece;
    uint64_t serial;
  };
  // An address that its owner has left: unmapped once the fence has passed, then free.
  struct AddressJob {
    struct Shown {
      Address at;
      uint64_t bytes;
      Extent* extent;  // null: the slot below
      Slot* slot;
      bool gone = false;
    };
    Address address = 0;
    uint32_t granules = 0;
    Fence fence;
    OwnVector<Shown> shown;
  };

  // engine.cpp
  void wait_for_content(const Buffer& buffer, Lock& lock);

  // operations.cpp
  void name_entry(ThreadPins& pins, PageEntry entry, Address address) const;
  Status begin_op_slowly(ThreadPins& pins, StreamIndex stream);
  Status make_resident(ThreadPins& pins, Lock& lock);
  void order_behind_fill(Buffer& buffer, StreamIndex stream);

  // eviction.cpp
  uint64_t resident_bytes(const Buffer& buffer, Wanted wanted = kAnySize) const;
  bool evictable(const Buffer& buffer, bool waive_grace) const;
  Fence use_fence(const Buffer& buffer);
  bool pinned(const Buffer& buffer);  // by any thread; remembered
  Fence leave_fence(const Buffer& buffer, bool waive_grace);
  uint64_t evict(Buffer& buffer, bool waive_grace, bool for_restore);
  bool evict_piece(Buffer& buffer, Piece& piece, const Fence& leave, bool for_restore,
                   std::optional<Event>* begin);
  bool pin_lacking(Lock& lock);
  // Whether the driver may wait for all that it was given before it pins host memory.
  bool pins_behind_work() const {
    return config_.evicted == EvictedShows::kNothing && holds(Clause::kFlagKeepsPinning);
  }
  size_t choose_victims(bool waive_grace);
  uint64_t evict_at_least(uint64_t bytes, bool waive_grace, bool for_restore,
                          Wanted wanted = kAnySize);
  void relieve_pressure(Lock& lock);
  void cancel(Buffer& buffer);
  bool hand_over(Buffer& buffer, uint32_t piece, bool even_pinned = false);
  bool hand_over_oldest(bool even_pinned, Wanted wanted = kAnySize);

  // restore.cpp. kNotReady: the mutex was let go, and all that was known may be stale: start over.
  Status restore(Buffer& buffer, ThreadPins* pins, Lock& lock);
  Status restore_piece(Buffer& buffer, Piece& piece, ThreadPins* pins, Lock& lock, Event* begin);
  Extent* extent_for(Piece& piece, ThreadPins* pins, Lock& lock, Status* status);
  bool show(Buffer& buffer, Piece& piece, Extent* extent, Lock& lock);

  // rehearsal.cpp
  bool rehearsing() const;
  void rehearse_leave(Buffer& buffer);
  void rehearse_return(Buffer& buffer, bool used);
  uint64_t rehearse_leaving(uint64_t bytes, bool waive_grace);
  void rehearse_room();

  // graphs.cpp
  bool hold_one(Buffer& buffer, GraphHold* added);
  void hold_blocks(std::span<const Address> words, GraphHold* added);
  bool find_block(const GraphHold::Held& held, BlockAt* out) const;
  uint32_t* holders_of(const GraphHold::Held& held);
  bool is_held(Address base);
  Status bring_home(const GraphHold& added, ThreadPins& pins, Lock& lock);
  void release_one(const GraphHold::Held& held);
  void release_block(Address at);

  // in_place.cpp
  Status show_slot(Buffer& buffer, Piece& piece, Lock& lock);
  Status use_in_place(ThreadPins& pins, Lock& lock);
  void end_in_place(ThreadPins& pins, Point op);

  // verify.cpp
  void verify_leave(Piece& piece, const Slot& slot, Point copied);
  void verify_slot(Piece& piece);
  void verify_return(const Buffer& buffer, const Piece& piece, Point copied);

  // room.cpp
  enum class Room : uint8_t {
    kMade,    // something was freed: look again
    kWaited,  // the mutex was let go: start over
    kNone,    // all that may move has moved
  };
  Room make_room(uint32_t granules, ThreadPins* pins, bool for_restore, Lock& lock);
  bool create_after_all(uint32_t granules, bool exactly, Lock& lock);
  Extent* create(uint32_t granules, Lock& lock);
  bool destroy(Extent* extent, Lock& lock);
  void describe_shortage(uint32_t granules, bool for_restore);
  unsigned long long in_granules(uint64_t bytes) const { return bytes / config_.granularity; }
  bool reshape(uint32_t granules, bool may_wait, Lock& lock);
  uint64_t destroy_pooled(bool may_wait, Lock& lock);
  bool finished_with(Extent& extent);
  bool unshow(Extent* extent, Lock& lock);
  Extent* take_pooled(uint32_t granules);
  Extent* take_exact(uint32_t granules, ThreadPins* pins, Lock& lock, Status* status);
  bool leaves_reserve(uint64_t granules) const;
  bool leaves_room_to_swap(uint64_t granules) const;
  Room may_grow(uint32_t granules, bool for_slab, Lock& lock);
  bool take_extents(uint32_t granules, ThreadPins* pins, Lock& lock, OwnVector<Extent*>* out);
  void put_back(Extent* extent, const Fence& fence);
  bool reclaim_parked(const Buffer* only);  // null: the oldest
  bool reclaim_empty_slab();
  bool wait_for_slot(Lock& lock);
  bool wait_for_finished(ThreadPins* pins, Lock& lock);

  // line.cpp
  // A call that may wait for others; begins and ends with the mutex held.
  class Request {
   public:
    Request(Engine& engine, ThreadPins* pins);
    ~Request();
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    Engine& engine_;
    ThreadPins* pins_;
  };
  void look_again(Lock& lock);
  bool another_turn(ThreadPins& pins);
  bool wait_in_line(ThreadPins* pins, Lock& lock);
  void claim_all();
  bool others_go_first(const ThreadPins* pins) const;
  void stand_aside(ThreadPins* pins, Lock& lock);
  void end_going_first();

  // allocation.cpp
  Status allocate_on(uint64_t bytes, StreamIndex stream, ThreadPins* pins, Address* out);
  Status allocate_small(uint64_t bytes, StreamIndex stream, ThreadPins* pins, Lock& lock,
                        Address* out);
  Status allocate_large(uint64_t bytes, StreamIndex stream, ThreadPins* pins, Lock& lock,
                        Address* out);
  bool map_all(Address address, uint32_t granules, const OwnVector<Extent*>& extents, Lock& lock);
  void born(Buffer& buffer, uint64_t bytes, StreamIndex stream, Lock& lock);
  void order_new_owner(const Fence& fence, StreamIndex stream, Lock& lock);
  bool usable_now(const Fence& fence, StreamIndex stream);
  Buffer* new_buffer();

  // freeing.cpp
  Status free_with(Address base, Fence fence, Lock& lock);
  bool free_buffer(Buffer& buffer, Fence fence, Lock& lock);
  void park(Buffer& buffer, Fence fence);
  void dissolve(Buffer& buffer, const Fence& fence);
  Fence everything_submitted();
  void leave_address(AddressJob job);
  static void forget_job(AddressJob* job);

  // worker.cpp
  void tend_later(Buffer& buffer, const Piece& piece);
  enum class Tended : uint8_t { kDone, kLater };
  Tended tend_piece(const PieceJob& job, Lock& lock);
  Tended tend_address(AddressJob& job, Lock& lock);
  Piece* piece_of(const PieceJob& job, PieceState state) const;
  void collect_completed();
  void wait_not_busy(Buffer& buffer, Lock& lock);

  // The statistics' count of ops follows when it is about to be looked at, so that an op does not
  // pay for it.
  void count_ops() {
    statistics_.operations.add(streams_.ops() - counted_ops_);
    counted_ops_ = streams_.ops();
  }

  // A driver call that takes its time, without the mutex. Memory that it is about is in nobody's
  // reach meanwhile: it is marked as busy, or was taken out. Who finds no room waits for its end.
  template <typename Call>
  auto without_mutex(Lock& lock, Call&& call) {
    ++let_go_;
    ++calls_under_way_;
    lock.unlock();
    const auto result = call();
    lock.lock();
    --calls_under_way_;
    changed_.notify_all();
    return result;
  }

  // host_wait.cpp
  void wait_on_host(Fence fence, HostWait cause, Lock& lock);
  Status timed_map(Address at, uint64_t bytes, Handle handle, Place place);
  Status timed_unmap(Address at, uint64_t bytes);
  Status submit_copy(Lane lane, Address to, Address from, uint64_t bytes) {
    return streams_.submit(streams_.lane(lane), [&] { return port_.copy(lane, to, from, bytes); });
  }

  uint64_t bytes_of(const Piece& piece) const { return piece.granules * config_.granularity; }
  Address address_of(const Buffer& buffer, const Piece& piece) const {
    return buffer.address + piece.offset;
  }
  uint64_t owned_bytes() const;  // mapped for live buffers and slabs, less what is leaving
  bool only_finished_may_leave() {
    return config_.finished_victims_only ||
           (holds(Clause::kExternalFlag) && streams_.external_wait_pending());
  }
  bool may_move() const { return config_.move && !retired_.load(std::memory_order_relaxed); }

  Port& port_;
  const EngineConfig config_;
  Policy& policy_;
  Statistics& statistics_;

  mutable Mutex mutex_;
  Condition changed_;  // a pin or a job of the worker ended, room may have appeared
  Condition work_;     // for the worker
  std::atomic<bool> retired_{false};
  std::atomic<bool> pressure_{false};  // evicting now: mark streams now and then
  std::atomic<bool> stop_worker_{false};
  std::atomic<uint32_t> waiting_{0};  // threads in line for room

  PinRegistry pin_registry_;
  Window window_;
  Streams streams_;
  Transfers transfers_;
  Extents extents_;
  Slots slots_;
  Slabs slabs_;
  Parking parking_;
  mutable Tables tables_{window_};

  OwnVector<Buffer*> live_;  // movable buffers
  Buffer* recycled_ = nullptr;
  OwnVector<Buffer*> freed_held_;  // kHeld
  OwnVector<void*> forgotten_;     // contexts that are being destroyed
  OwnDeque<PieceJob> leaving_;     // EVG pieces by age of their eviction
  OwnDeque<PieceJob> piece_jobs_;
  OwnDeque<AddressJob*> address_jobs_;
  Fence given_out_;      // what must pass before blocks that no stream allocated may be used
  uint64_t let_go_ = 0;  // how often the mutex was let go in the midst of something
  uint32_t calls_under_way_ = 0;  // without_mutex
  uint64_t gathered_ = 0;         // granules that threads hold which look for more
  uint64_t sought_ = 0;           // granules for new memory that threads still look for
  uint64_t slabs_to_come_ = 0;    // granules of slabs that threads are about to make
  uint64_t leaving_bytes_ = 0;
  uint64_t rehearsed_away_ = 0;  // bytes that would be in host memory
  uint64_t next_id_ = 1;
  uint64_t next_serial_ = 1;
  uint64_t counted_ops_ = 0;
  uint64_t line_next_ = 0;  // tickets of those who wait for room
  uint64_t line_serving_ = 0;
  const ThreadPins* first_ = nullptr;   // whose request has waited often, and goes first
  const ThreadPins* asking_ = nullptr;  // whose search for room the present one is
  bool met_pins_ = false;               // somebody else pinned what might have left, in that
  uint64_t quiet_until_op_ = 0;         // no victim was to be had: do not look again before

  Lacking lacking_;                  // why the last attempt to evict stopped
  bool pinning_ = false;             // a thread pins host memory, without the mutex
  OwnVector<Candidate> candidates_;  // scratch
  OwnVector<uint32_t> order_;
};

}  // namespace offload
