// SPDX-License-Identifier: Apache-2.0
// The argument scanner: any parameters with any bytes in them. What points into a buffer is named;
// what points nowhere near one is not. The input: the number of parameters, two bytes for each
// (size, and how far behind the last one it lies), then words: a byte that says which buffer
// (0 to 3; else it is no address), two bytes of offset; at the end plain bytes.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "interpose/naming/scan.h"
#include "policies/registry.h"
#include "tests/fuzz/property.h"
#include "tests/unit/doors/idle_port.h"

using namespace offload;

namespace {

constexpr uint64_t kBytes = 8 << 20;
constexpr uint64_t kGap = 2 << 20;  // beside a buffer, that names it too
constexpr size_t kMostParameters = 16;

std::vector<ParameterInfo> parameters;

LayoutAnswer tell(const void*, size_t index, ParameterInfo* out) {
  if (index >= parameters.size()) return LayoutAnswer::kEnd;
  *out = parameters[index];
  return LayoutAnswer::kParameter;
}

struct Fixture {
  IdlePort port;
  PolicyStorage storage;
  Statistics statistics;
  Engine engine;
  ThreadPins* pins;
  Address buffers[4] = {};

  Fixture() : engine(port, config(), make_policy(PolicyName::kNone, {}, storage), statistics) {
    MUST(engine.initialise() == Status::kOk);
    pins = engine.pin_registry().acquire();
    for (Address& buffer : buffers) MUST(engine.allocate(kBytes, pins, &buffer) == Status::kOk);
  }
  static EngineConfig config() {
    EngineConfig config;
    config.limit_bytes = 256ull << 20;
    return config;
  }
};

class Input {
 public:
  Input(const unsigned char* data, size_t size) : at_(data), left_(size) {}
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *at_++;
  }
  bool empty() const { return left_ == 0; }

 private:
  const unsigned char* at_;
  size_t left_;
};

// Words at the addresses of buffers, and around them.
void fill(std::vector<unsigned char>& block, Input& input, const Fixture& fixture) {
  for (size_t at = 0; at + sizeof(Address) <= block.size() && !input.empty();
       at += sizeof(Address)) {
    const uint8_t which = input.byte();
    const uint64_t offset = (uint64_t{input.byte()} << 16 | uint64_t{input.byte()} << 8);
    Address word = which < 4 ? fixture.buffers[which] + offset : uint64_t{which} << 40 | offset;
    if (which >= 4 && which < 8) word = fixture.buffers[which - 4] - offset;
    std::memcpy(&block[at], &word, sizeof word);
  }
  for (unsigned char& each : block) {
    if (input.empty()) break;
    if (const uint8_t change = input.byte(); change >= 0x80) each = change;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  static Fixture& fixture = *new Fixture;
  Input input(data, size);

  parameters.clear();
  size_t offset = 0;
  for (size_t count = input.byte() % (kMostParameters + 1); count > 0; --count) {
    const size_t bytes = input.byte() + size_t{1};
    offset += input.byte();
    parameters.push_back({offset, bytes});
    offset += bytes;
  }
  std::vector<unsigned char> block(offset);
  fill(block, input, fixture);

  // Each parameter in memory of its own size, so that a read past its end is seen.
  std::vector<std::unique_ptr<unsigned char[]>> values;
  std::vector<void*> arguments;
  for (const ParameterInfo& parameter : parameters) {
    values.push_back(std::make_unique<unsigned char[]>(parameter.size));
    std::memcpy(values.back().get(), block.data() + parameter.offset, parameter.size);
    arguments.push_back(values.back().get());
  }
  // What was learnt lives for ever, so the handles of many functions share it.
  static Layouts& layouts = *new Layouts(&tell);
  static char functions[4096];
  static size_t runs = 0;
  layouts.forget_all();
  const Layout& layout = *layouts.learn(&functions[runs++ % sizeof functions]);
  MUST(layout.known);
  name_parameters(layout, arguments.data(),
                  [&](Address word) { fixture.engine.name(*fixture.pins, word); });
  std::set<Address> named;
  for (uint32_t i = 0; i < fixture.pins->collected; ++i) named.insert(fixture.pins->at(i)->address);
  MUST(!fixture.pins->overflow.load());
  fixture.pins->clear();

  // Aligned in the block, whole within one parameter.
  std::set<Address> must;
  std::set<Address> may;
  for (const ParameterInfo& parameter : parameters) {
    const size_t first = (parameter.offset + 7) / 8 * 8;
    for (size_t at = first; at + 8 <= parameter.offset + parameter.size; at += 8) {
      Address word;
      std::memcpy(&word, &block[at], sizeof word);
      for (const Address buffer : fixture.buffers) {
        if (word >= buffer && word < buffer + kBytes) must.insert(buffer);
        if (word + kGap >= buffer && word < buffer + kBytes + kGap) may.insert(buffer);
      }
    }
  }
  MUST(std::includes(named.begin(), named.end(), must.begin(), must.end()));
  MUST(std::includes(may.begin(), may.end(), named.begin(), named.end()));
  return 0;
}
