// SPDX-License-Identifier: Apache-2.0
// Captures and graphs of the program on the modelled GPU. Also what is freed is used in order:
// behind its free and all that came before.

#include "tests/unit/engine/model/failure.h"
#include "tests/unit/engine/model/world.h"

namespace offload::model {

void World::begin_capture(int stream_number) {
  say("capture on " + std::to_string(stream_number));
  const StreamIndex index = index_of(stream_number);
  Stream& captures = stream(stream_number);
  captures.before_capture = std::make_shared<Mark>();
  port.submit(*captures.queue,
              {.run = {}, .records = captures.before_capture, .waits_for = nullptr});
  {
    const Inside inside(*this);
    engine->freeze(index);
  }
  captures.queue->captures = true;
  step();
}

void World::end_capture(int stream_number) {
  say("end of capture on " + std::to_string(stream_number));
  stream(stream_number).queue->captures = false;
  {
    const Inside inside(*this);
    engine->thaw(index_of(stream_number));
  }
  step();
}

int World::try_make_graph(const std::vector<Arg>& args) {
  say("graph:" + describe(args));
  Graph made;
  made.args = args;
  std::vector<Address> words;
  for (const Arg& arg : args) {
    words.push_back(tensor(arg.tensor).address);
    engine->name(pins(), words.back());
  }
  Status status = Status::kOk;
  {
    const Inside inside(*this);
    status = engine->hold(pins(), &made.hold, words);
  }
  step();
  if (status != Status::kOk) return -1;
  for (const Arg& arg : args) {
    const Tensor& named = tensor(arg.tensor);
    made.operands.push_back(
        {named.address, named.bytes, named.id, device.memory().shown_at(named.address)});
  }
  graphs_.push_back(std::move(made));
  return static_cast<int>(graphs_.size()) - 1;
}

int World::make_graph(const std::vector<Arg>& args) {
  const int made = try_make_graph(args);
  if (made < 0) fail(Failure::Kind::kRefused, "make_graph");
  return made;
}

World::Launch World::name_launch(int number, int stream_number) {
  const Graph& launched = graph(number);
  say("launch of graph " + std::to_string(number));
  std::vector<Arg> alive;
  std::vector<size_t> dead;
  for (size_t i = 0; i < launched.args.size(); ++i) {
    Arg arg = launched.args[i];
    const Tensor& operand = tensor(arg.tensor);
    if (!operand.live) {
      dead.push_back(i);
      order(stream_number, operand, true);
      continue;
    }
    if (!operand.written) arg.mode = Mode::kWrite;
    alive.push_back(arg);
  }
  const Op op = name(stream_number, alive);
  for (const size_t i : dead) engine->name(*op.pins, launched.operands[i].address);
  return {number, op, std::move(dead)};
}

void World::forward(Launch& launch) {
  const Graph& launched = graph(launch.graph);
  Memory& memory = device.memory();
  for (const Graph::Operand& operand : launched.operands) {
    if (memory.shown_at(operand.address) != operand.shown)
      fail(Failure::Kind::kFault, "a node was made for memory that is no longer there");
  }
  for (const size_t i : launch.dead) {
    if (!writes(launched.args[i].mode)) continue;
    const Graph::Operand operand = launched.operands[i];
    Item item;
    item.token = mix(operand.address, operand.id);
    item.touches = {{operand.address, operand.bytes, true}};
    item.run = [&memory, operand] {
      std::vector<Memory::Run> runs;
      if (!memory.resolve(operand.address, operand.bytes, &runs))
        fail(Failure::Kind::kFault, "a node met an address that shows nothing");
      for (const Memory::Run& run : runs) {
        for (uint64_t cell = 0; cell < run.count; ++cell)
          run.cells[cell] = mix(operand.address, cell);
      }
    };
    port.submit(*stream(launch.op.stream).queue, std::move(item));
  }
  forward(launch.op);
  for (const size_t i : launch.dead) {
    Tensor& operand = tensor(launched.args[i].tensor);
    operand.writer = {launch.op.stream, launch.op.sequence};
    operand.readers.clear();
  }
}

Status World::try_launch(int number, int stream_number) {
  Launch launch = name_launch(number, stream_number);
  start(launch.op);
  if (launch.op.status != Status::kOk) {
    step();
    return launch.op.status;
  }
  crew.yield();
  forward(launch);
  crew.yield();
  end(launch.op);
  return Status::kOk;
}

void World::launch(int number, int stream_number) {
  if (try_launch(number, stream_number) != Status::kOk) fail(Failure::Kind::kRefused, "launch");
}

void World::destroy_graph(int number) {
  say("destroy graph " + std::to_string(number));
  Graph& old = graph(number);
  old.live = false;
  {
    const Inside inside(*this);
    engine->release(&old.hold);
  }
  step();
}

}  // namespace offload::model
