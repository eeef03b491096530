// SPDX-License-Identifier: Apache-2.0
#include "tests/model/search.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <unordered_map>

#include "tests/model/arena.h"
#include "tests/model/stage.h"

namespace offload::model {

namespace {

// What was in the arena and on the fibers' stacks. Buffers are used again.
class Snapshot {
 public:
  void take(const Stage& stage) {
    parts_.clear();
    bytes_ = 0;
    add(Arena::base(), Arena::used_bytes());
    for (size_t i = 0; i < stage.fibers(); ++i) {
      char* begin = stage.fiber(i).stack_begin();
      add(begin, static_cast<size_t>(stage.fiber(i).stack_end() - begin));
    }
  }
  void put_back() const {
    const char* from = content_.data();
    for (const Part& part : parts_) {
      std::memcpy(part.at, from, part.bytes);
      from += part.bytes;
    }
  }

 private:
  struct Part {
    char* at;
    size_t bytes;
  };
  void add(char* at, size_t bytes) {
    parts_.push_back({at, bytes});
    if (content_.size() < bytes_ + bytes) content_.resize(bytes_ + bytes);
    std::memcpy(content_.data() + bytes_, at, bytes);
    bytes_ += bytes;
  }
  std::vector<Part> parts_;
  std::vector<char> content_;
  size_t bytes_ = 0;
};

struct Node {
  Snapshot snapshot;
  uint32_t chosen = 0;
  uint32_t count = 0;
};

// The stage in the arena, and the way in and out of it.
class Theatre {
 public:
  explicit Theatre(const Program& program) {
    Arena::reset();
    const Arena::Open open;
    stage_ = new Stage(program);
  }
  ~Theatre() { watch_edges(nullptr); }  // the rest is given up with the arena
  Stage& stage() { return *stage_; }
  // The number of choices; 0: the end, or a failure.
  uint32_t next(Found* found) {
    return guarded(found, [&] { return stage_->next(); });
  }
  bool choose(uint32_t chosen, Found* found) {
    return guarded(found, [&] {
             stage_->choose(chosen);
             return 1u;
           }) != 0;
  }
  uint64_t digest() {
    const Arena::Open open;
    return stage_->digest();
  }

 private:
  template <typename Body>
  uint32_t guarded(Found* found, Body&& body) {
    Failure::Kind kind{};
    const char* what = nullptr;
    size_t length = 0;
    try {
      const Arena::Open open;
      return body();
    } catch (const Failure& failure) {
      kind = failure.kind;
      what = failure.what.data();
      length = failure.what.size();
      // Copied outside of the arena.
      found->failed = true;
      found->failure = {kind, std::string(what, length)};
    }
    return 0;
  }
  Stage* stage_ = nullptr;
};

}  // namespace

Found explore(const Program& program) {
  Found found;
  Theatre theatre(program);
  std::unordered_map<uint64_t, uint32_t> seen;
  std::vector<std::unique_ptr<Node>> path;
  size_t depth = 0;
  const auto tell = [&] {
    for (size_t i = 0; i < depth; ++i) found.choices.push_back(path[i]->chosen);
  };
  for (;;) {
    const uint32_t count = theatre.next(&found);
    if (found.failed) {
      tell();
      return found;
    }
    bool go_on = count != 0;
    if (count == 0) ++found.ends;
    if (go_on) {
      const uint32_t used = theatre.stage().deviations();
      const auto [at, is_new] = seen.try_emplace(theatre.digest(), used);
      if (!is_new && at->second <= used) {
        ++found.seen_again;
        go_on = false;
      }
      at->second = std::min(at->second, used);
    }
    if (go_on && found.states >= program.bounds.states) {
      found.cut_short = true;
      return found;
    }
    if (go_on) {
      ++found.states;
      if (depth == path.size()) path.push_back(std::make_unique<Node>());
      Node& node = *path[depth++];
      node.snapshot.take(theatre.stage());
      node.chosen = 0;
      node.count = count;
      found.deepest = std::max<uint64_t>(found.deepest, depth);
    } else {
      while (depth > 0 && path[depth - 1]->chosen + 1 == path[depth - 1]->count) --depth;
      if (depth == 0) return found;
      Node& node = *path[depth - 1];
      ++node.chosen;
      node.snapshot.put_back();
    }
    if (!theatre.choose(path[depth - 1]->chosen, &found)) {
      tell();
      return found;
    }
  }
}

Found replay(const Program& program, const Choices& choices) {
  Found found;
  Theatre theatre(program);
  for (size_t i = 0;; ++i) {
    if (theatre.next(&found) == 0) break;
    const uint32_t chosen = i < choices.size() ? choices[i] : 0;
    found.choices.push_back(chosen);
    if (!theatre.choose(chosen, &found)) break;
  }
  return found;
}

Found wander(const Program& program, uint64_t runs, uint64_t seed) {
  Found found;
  std::mt19937_64 random(seed);
  Theatre theatre(program);
  Snapshot start;
  start.take(theatre.stage());
  for (uint64_t run = 0; run < runs; ++run) {
    start.put_back();
    found.choices.clear();
    // Some runs hardly ever take another way than the first, some often.
    const uint64_t rate = 1 + random() % 8;
    for (;;) {
      const uint32_t count = theatre.next(&found);
      if (found.failed) return found;
      if (count == 0) break;
      ++found.states;
      const auto chosen = static_cast<uint32_t>(random() % rate == 0 ? random() % count : 0);
      found.choices.push_back(chosen);
      if (!theatre.choose(chosen, &found)) return found;
    }
    found.deepest = std::max<uint64_t>(found.deepest, found.choices.size());
    ++found.ends;
  }
  return found;
}

std::string text_of(const Choices& choices) {
  std::string text;
  for (const uint32_t each : choices) text += (text.empty() ? "" : ",") + std::to_string(each);
  return text;
}

Choices choices_of(const std::string& text) {
  Choices choices;
  for (size_t at = 0; at < text.size();) {
    size_t used = 0;
    choices.push_back(static_cast<uint32_t>(std::stoul(text.substr(at), &used)));
    at += used + 1;
  }
  return choices;
}

}  // namespace offload::model
