// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/model/world.h"

#include <algorithm>
#include <cstdio>

#include "tests/unit/engine/arena_heap.h"
#include "tests/unit/engine/model/failure.h"
#include "tests/unit/engine/model/inspect.h"
#include "tests/unit/engine/model/kernel.h"

namespace offload::model {

namespace {

uint64_t card_bytes(const Settings& settings) {
  return (settings.card_granules != 0 ? settings.card_granules : settings.device_granules) *
         kGranule;
}

EngineConfig config_of(const Settings& settings) {
  EngineConfig config;
  config.granularity = kGranule;
  config.limit_bytes = settings.device_granules * kGranule;
  config.device_bytes = card_bytes(settings);
  config.host_limit_bytes = settings.host_granules * kGranule;
  config.min_size_bytes = settings.min_granules * kGranule;
  config.slot_chunk_bytes = settings.slot_chunk_granules * kGranule;
  config.grace_ops = settings.grace;
  config.largest_extent_granules = settings.largest_extent;
  config.copy_piece_bytes = settings.piece_granules * kGranule;
  config.evicted = settings.evicted;
  config.move = settings.move;
  config.finished_victims_only = settings.finished_only;
  config.queue_depth = settings.queue_depth;
  config.patience_ms = settings.patience;
  config.verify = settings.verify;
  config.free_is_fenced = settings.fenced_free;
  config.window_bytes = settings.window_granules * kGranule;
  return config;
}

}  // namespace

void World::say(const std::string& what) const {
  if (tracing) std::printf("%zu: %s\n", thread(), what.c_str());
}

std::string World::describe(const std::vector<Arg>& args) {
  std::string text;
  for (const Arg& arg : args) {
    text += " " + std::to_string(arg.tensor) + "wurn"[static_cast<size_t>(arg.mode)] +
            (arg.named ? "" : "!") + states(arg.tensor);
  }
  return text;
}

World::World(const Settings& settings, Schedule& schedule)
    : device(card_bytes(settings), schedule),
      port(device, crew),
      statistics(std::make_unique<Statistics>()),
      fenced_free_(settings.fenced_free) {
  Policy& chosen = settings.policy != nullptr ? *settings.policy : policy;
  engine = std::make_unique<Engine>(port, config_of(settings), chosen, *statistics);
  if (engine->initialise() != Status::kOk) fail(Failure::Kind::kRefused, "initialise");
  port.unlocked = [this] { return EngineTest::unlocked(*engine); };
  if (tracing) port.say = [this](const std::string& what) { say("  " + what); };
  port.own_stream = [this]() -> Queue* {
    for (const Stream& own : streams_) {
      if (own.live && own.per_thread && own.thread == thread()) return own.queue;
    }
    fail(Failure::Kind::kMisuse, "a per-thread stream of a thread that has none");
  };
}

World::~World() {
  engine.reset();
  graphs_.clear();
  free_own_heap();
}

ThreadPins& World::pins() {
  ThreadPins*& mine = pins_[thread()];
  if (mine == nullptr) mine = engine->pin_registry().acquire();
  return *mine;
}

uint64_t World::digest() {
  uint64_t sum = 0;
  for (const Tensor& each : tensors_) {
    sum = mix(sum, each.address * 4 + (each.live ? 2 : 0) + (each.written ? 1 : 0));
    sum = mix(sum, each.last_named_op);
    if (!each.expected.empty()) sum = mix(sum, each.expected[0]);
    if (each.writer)
      sum = mix(mix(sum, each.writer->sequence), static_cast<uint64_t>(each.writer->stream));
    for (const auto& [stream, sequence] : each.readers) {
      sum = mix(mix(sum, sequence), static_cast<uint64_t>(stream));
    }
  }
  for (const Graph& each : graphs_) {
    sum = mix(sum, each.live ? 1 : 0);
    for (const Graph::Operand& operand : each.operands) sum = mix(sum, operand.shown);
  }
  for (const Stream& each : streams_) {
    sum = mix(sum, each.submitted * 2 + (each.queue->captures ? 1 : 0));
    for (const uint64_t joined : each.joined) sum = mix(sum, joined);
  }
  for (const uint64_t saw : host_saw_) sum = mix(sum, saw);
  return sum;
}

int World::born(Status status, Address address, uint64_t bytes, const char* what) {
  step();
  if (status != Status::kOk) {
    if (what != nullptr) fail(Failure::Kind::kRefused, what);
    return -1;
  }
  Tensor fresh;
  fresh.address = address;
  fresh.bytes = (bytes + kCellBytes - 1) / kCellBytes * kCellBytes;
  fresh.live = true;
  fresh.expected.resize(fresh.bytes / kCellBytes);
  AllocationInfo info;
  if (!engine->describe(address, &info) || info.base != address || info.bytes != bytes) {
    fail(Failure::Kind::kInvariant, "describe() does not know a new allocation");
  }
  fresh.id = info.id;
  for (const Tensor& other : tensors_) {
    if (other.live && other.address < address + bytes && address < other.address + other.bytes) {
      fail(Failure::Kind::kInvariant, "two allocations overlap");
    }
  }
  tensors_.push_back(std::move(fresh));
  say("tensor " + std::to_string(tensors_.size() - 1) + " of " + std::to_string(bytes) + " at " +
      std::to_string(address));
  return static_cast<int>(tensors_.size()) - 1;
}

Status World::allocate_inside(uint64_t bytes, StreamIndex index, Address* address) {
  const Inside inside(*this);
  return index == kNoStream ? engine->allocate(bytes, &pins(), address)
                            : engine->allocate_async(bytes, index, &pins(), address);
}

Status World::free_inside(Address address, StreamIndex index) {
  const Inside inside(*this);
  return index == kNoStream ? engine->free(address, &pins())
                            : engine->free_async(address, index, &pins());
}

int World::allocate(uint64_t bytes) {
  Address address = 0;
  const Status status = allocate_inside(bytes, kNoStream, &address);
  return born(status, address, bytes, "allocate");
}

int World::try_allocate(uint64_t bytes) {
  Address address = 0;
  const Status status = allocate_inside(bytes, kNoStream, &address);
  return born(status, address, bytes, nullptr);
}

int World::try_allocate_async(uint64_t bytes, int stream_number) {
  Address address = 0;
  const Status status = allocate_inside(bytes, index_of(stream_number), &address);
  const int index = born(status, address, bytes, nullptr);
  if (index >= 0) tensor(index).writer = {stream_number, ++stream(stream_number).submitted};
  return index;
}

int World::allocate_async(uint64_t bytes, int stream_number) {
  const int index = try_allocate_async(bytes, stream_number);
  if (index < 0) fail(Failure::Kind::kRefused, "allocate_async");
  return index;
}

void World::gone(Tensor& old) {
  old.live = false;
  old.expected.clear();
}

void World::free(int index) {
  Tensor& old = tensor(index);
  say("free " + std::to_string(index));
  gone(old);
  std::vector<uint64_t> submitted;
  for (const Stream& each : streams_) {
    // Calls of other threads that have not returned yet are not before this one.
    submitted.push_back(each.unfinished_calls.empty() ? each.submitted
                                                      : *each.unfinished_calls.begin() - 1);
  }
  if (free_inside(old.address, kNoStream) != Status::kOk) fail(Failure::Kind::kRefused, "free");
  if (!fenced_free_) {
    for (size_t i = 0; i < submitted.size(); ++i) {
      host_saw_[i] = std::max(host_saw_[i], submitted[i]);
    }
  }
  step();
}

void World::free_async(int index, int stream_number) {
  Tensor& old = tensor(index);
  say("free " + std::to_string(index) + " on " + std::to_string(stream_number));
  order(stream_number, old, true);
  gone(old);
  if (free_inside(old.address, index_of(stream_number)) != Status::kOk) {
    fail(Failure::Kind::kRefused, "free_async");
  }
  old.writer = {stream_number, ++stream(stream_number).submitted};
  old.readers.clear();
  step();
}

World::Op World::begin(int stream_number, const std::vector<Arg>& args) {
  Op op = name(stream_number, args);
  start(op);
  return op;
}

void World::start(Op& op) {
  const Inside inside(*this);
  op.status = engine->begin_op(*op.pins, op.index);
}

World::Op World::name(int stream_number, const std::vector<Arg>& args) {
  for (const Arg& arg : args) {
    if (arg.mode == Mode::kNothing) continue;
    order(stream_number, tensor(arg.tensor), writes(arg.mode) || !arg.named);
  }
  Op op{stream_number, args, &pins(), index_of(stream_number), Status::kOk, 0};
  for (const Arg& arg : args) {
    if (!arg.named) continue;
    engine->name(*op.pins, tensor(arg.tensor).address + static_cast<Address>(arg.offset));
  }
  return op;
}

void World::forward(Op& op) {
  Stream& on = stream(op.stream);
  const uint64_t number = next_op_[thread()]++ + (thread() << 32);
  if (tracing) {
    say("op " + std::to_string(number) + " on " + std::to_string(op.stream) + ":" +
        describe(op.args));
  }
  const uint64_t sequence = op.sequence = ++on.submitted;
  on.unfinished_calls.insert(sequence);
  std::vector<KernelArg> kernel;
  uint64_t value = mix(number, 7);
  for (const Arg& arg : op.args) {
    const Tensor& touched = tensor(arg.tensor);
    KernelArg given{touched.address, touched.bytes, arg.mode, arg.tensor, 0, {}};
    if (reads(arg.mode)) {
      if (!touched.written) fail(Failure::Kind::kMisuse, "the program reads what it never wrote");
      given.expected = fold(touched.expected);
      if (tracing) given.cells = touched.expected;
      value = mix(value, given.expected);
    }
    kernel.push_back(given);
  }
  for (const Arg& arg : op.args) {
    Tensor& touched = tensor(arg.tensor);
    if (writes(arg.mode)) {
      uint64_t cell = 0;
      for (Cell& expected : touched.expected) {
        expected = mix(mix(value, static_cast<uint64_t>(arg.tensor)), cell++);
      }
      touched.written = true;
      touched.writer = {op.stream, sequence};
      touched.readers.clear();
    } else if (arg.mode == Mode::kRead) {
      touched.readers[op.stream] = sequence;
    }
  }
  Memory& memory = device.memory();
  Item item;
  item.token = value;
  for (const KernelArg& arg : kernel) {
    item.token = mix(item.token, arg.address);
    if (arg.mode != Mode::kNothing)
      item.touches.push_back({arg.address, arg.bytes, writes(arg.mode)});
  }
  item.run = [&memory, kernel, number, value] { run_kernel(memory, kernel, number, value); };
  port.submit(*on.queue, std::move(item));
  device.schedule().at(Schedule::Point::kSubmit, device);
}

void World::end(const Op& op) {
  engine->end_op(*op.pins, op.index);
  stream(op.stream).unfinished_calls.erase(op.sequence);
  for (const Arg& arg : op.args) {
    if (arg.named) tensor(arg.tensor).last_named_op = engine->ops();
  }
  step();
}

Status World::try_op(int stream_number, const std::vector<Arg>& args) {
  Op op = begin(stream_number, args);
  if (op.status != Status::kOk) {
    if (tracing)
      say("refused: " + describe(args) + "\n" + EngineTest::dump(*engine) + device.dump());
    step();
    return op.status;
  }
  crew.yield();
  forward(op);
  crew.yield();
  end(op);
  return Status::kOk;
}

void World::op(int stream_number, const std::vector<Arg>& args) {
  if (try_op(stream_number, args) != Status::kOk) fail(Failure::Kind::kRefused, "op");
}

void World::idle(int stream_number, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) op(stream_number, {});
}

void World::wait_for_flag(int stream_number, int flag, const std::function<void()>& meanwhile) {
  const StreamIndex index = index_of(stream_number);
  engine->external_wait_begin(index);
  Item item;
  item.flag = flag;
  port.submit(*stream(stream_number).queue, std::move(item));
  ++stream(stream_number).submitted;
  if (meanwhile) meanwhile();
  engine->external_wait_end(index);
  step();
}

void World::flag_before(int stream_number, int flag) {
  const NativeStream native = engine->native(index_of(stream_number));
  Item item;
  item.flag = flag;
  port.submit(*stream(stream_number).queue, std::move(item));
  ++stream(stream_number).submitted;
  Event behind = nullptr;
  if (port.create_event(native.context, false, &behind) != Status::kOk ||
      port.record(behind, native) != Status::kOk) {
    return fail(Failure::Kind::kRefused, "an event behind the flag");
  }
  engine->external_wait_before({behind, native.context});
  step();
}

void World::copy_table(int stream_number, int table, const std::vector<int>& named) {
  Op copy = begin(stream_number, {write(table)});
  if (copy.status != Status::kOk) fail(Failure::Kind::kRefused, "copy of a table");
  std::vector<Address> words;
  for (const int index : named) words.push_back(tensor(index).address);
  forward(copy);
  engine->data_copied(tensor(table).address, words.data(), words.size() * sizeof(Address));
  end(copy);
}

bool World::lose_context() {
  device.forget_work();
  port.context_lost = true;
  const bool counted = engine->context_gone();
  device.memory().lose_pinned();
  for (Tensor& each : tensors_) each.live = false;
  for (Stream& each : streams_) each.live = false;
  return counted;
}

void World::destroy_other_context(uintptr_t context) {
  engine->other_context_ends(reinterpret_cast<void*>(context));
  for (Stream& each : streams_) {
    if (each.native.context != reinterpret_cast<void*>(context)) continue;
    if (!each.queue->items.empty()) fail(Failure::Kind::kMisuse, each.queue->name + " is busy");
    each.live = false;
  }
  port.destroy_events(reinterpret_cast<void*>(context));
}

void World::lose_other_context(uintptr_t context) {
  destroy_other_context(context);
  engine->other_context_gone(reinterpret_cast<void*>(context));
}

int World::replace_other_context(uintptr_t context, const std::vector<Arg>& args) {
  destroy_other_context(context);
  const int stream = add_stream(false, context);
  op(stream, args);
  engine->other_context_gone(reinterpret_cast<void*>(context));
  return stream;
}

void World::check(int index) {
  op(0, {read(index)});
  synchronize(0);
}

void World::finish() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].live && tensors_[i].written) op(0, {read(static_cast<int>(i))});
  }
  device.run_all();
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (!streams_[i].queue->items.empty()) {
      fail(Failure::Kind::kHang, streams_[i].queue->name + " never ends");
    }
  }
  worker();
  if (check_books) EngineTest::check(*engine, device.memory());
}

bool World::worker_step() {
  const Inside inside(*this);
  return engine->worker_step();
}

void World::worker() {
  while (worker_step()) {
  }
  step();
}

void World::press(const std::vector<int>& tensors) {
  policy.first.clear();
  policy.wanted_bytes = 0;
  for (const int index : tensors) {
    policy.first.push_back(tensor(index).id);
    policy.wanted_bytes += (tensor(index).bytes + kGranule - 1) / kGranule * kGranule;
  }
  policy.only_first = true;
  EngineTest::relieve_pressure(*engine);
  policy.only_first = false;
  policy.wanted_bytes = 0;
  step();
}

void World::run(int stream_number) {
  device.drain(*stream(stream_number).queue);
}

void World::run_lane(Lane lane) {
  device.drain(*static_cast<Queue*>(port.lane(lane).stream));
}

std::string World::states(int index) {
  return EngineTest::states(*engine, tensor(index).address);
}

void World::step() {
  port.progress();
  device.schedule().at(Schedule::Point::kStep, device);
  if (check_books && inside_ == 0) EngineTest::check(*engine, device.memory());
  crew.yield();
}

}  // namespace offload::model
