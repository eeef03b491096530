// SPDX-License-Identifier: Apache-2.0
#include "interpose/graphs/graph_names.h"

#include <algorithm>
#include <utility>

#include "interpose/driver/table.h"
#include "interpose/life/sessions.h"

namespace offload {

void NodeNames::add(const NodeNames& other) {
  for (const Address word : other.words) {
    const auto at = std::lower_bound(words.begin(), words.end(), word);
    if (at == words.end() || *at != word) words.insert(at, word);
  }
  for (const TableCopy& copy : other.copies) {
    const bool known = std::any_of(copies.begin(), copies.end(), [&](const TableCopy& each) {
      return each.to == copy.to && each.from == copy.from && each.bytes == copy.bytes;
    });
    if (!known) copies.push_back(copy);
  }
  waits = waits || other.waits;
}

GraphNames::Record& GraphNames::of(CUgraph graph) {
  Record& known = graphs_[graph];
  return known.embedded ? everywhere_ : known;
}

// What both hold is in `twice`, to be released.
void GraphNames::merge_part(Part& from, Part* to, Part* twice) {
  to->names.add(from.names);
  to->holds.merge(from.holds, &twice->holds);
}

// What `from` holds becomes the other's; what that holds already counts once. `find` says whose
// record it is, under the mutex.
template <typename Find>
void GraphNames::merge(Record from, Find&& find) {
  OwnVector<Part> twice(1 + from.nodes.size());
  {
    const std::lock_guard lock(mutex_);
    Record& record = find();
    record.embedded = record.embedded || from.embedded;
    merge_part(from.all, &record.all, &twice[0]);
    size_t i = 0;
    for (auto& [node, part] : from.nodes) merge_part(part, &record.nodes[node], &twice[++i]);
  }
  for (Part& part : twice) part.holds.release();
}

template <typename Find>
void GraphNames::set_in(Find&& find, CUgraphNode node, Part part) {
  {
    const std::lock_guard lock(mutex_);
    std::swap(find().nodes[node], part);
  }
  part.holds.release();
}

// One device after the other: what one has brought home stays there, but nothing is pinned while
// the next makes room.
Status GraphNames::prepare(const NodeNames& names, Part* part) {
  for (Session* each = session(); each != nullptr; each = next_of(*each)) {
    Engine& engine = each->engine;
    const auto own = [&engine](Address word) { return engine.owns(word); };
    if (std::none_of(names.words.begin(), names.words.end(), own)) continue;
    ThreadPins& pins = each->pins();
    for (const Address word : names.words) engine.name(pins, word);
    const Status status = engine.hold(pins, &part->holds.of(engine), names.words);
    if (status == Status::kOk) continue;
    part->holds.release();
    return status;
  }
  part->names.add(names);
  return Status::kOk;
}

Status GraphNames::record(CUgraph graph, const NodeNames& names) {
  Record fresh;
  const Status status = prepare(names, &fresh.all);
  if (status == Status::kOk) merge(std::move(fresh), [&]() -> Record& { return of(graph); });
  return status;
}

void GraphNames::set(CUgraph graph, CUgraphNode node, Part part) {
  set_in([&]() -> Record& { return of(graph); }, node, std::move(part));
}

void GraphNames::set(CUgraphExec exec, CUgraphNode node, Part part) {
  set_in([&]() -> Record& { return execs_[exec]; }, node, std::move(part));
}

void GraphNames::set(CUgraphNode node, Part part) {
  CUgraph graph = nullptr;
  if (find_node(node, &graph)) return set(graph, node, std::move(part));
  set_in([&]() -> Record& { return everywhere_; }, node, std::move(part));
}

bool GraphNames::find_node(CUgraphNode node, CUgraph* graph) {
  OwnVector<CUgraph> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = nodes_.find(node); at != nodes_.end()) {
      *graph = at->second;
      return true;
    }
    for (const auto& [each, entry] : graphs_) known.push_back(each);
  }
  for (const CUgraph each : known) {
    size_t count = 0;
    if (real<Entry::cuGraphGetNodes>()(each, nullptr, &count) != CUDA_SUCCESS) continue;
    OwnVector<CUgraphNode> nodes(count);
    if (real<Entry::cuGraphGetNodes>()(each, nodes.data(), &count) != CUDA_SUCCESS) continue;
    nodes.resize(count);
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) continue;
    const std::lock_guard lock(mutex_);
    for (const CUgraphNode sibling : nodes) nodes_[sibling] = each;
    *graph = each;
    return true;
  }
  return false;
}

GraphNames::Record GraphNames::copy_of(CUgraph graph) {
  const std::lock_guard lock(mutex_);
  Record copy;
  const auto known = graphs_.find(graph);
  if (known == graphs_.end()) return copy;
  const auto add = [](const Part& from, Part* to) {
    to->names = from.names;
    from.holds.hold_also(&to->holds);
  };
  add(known->second.all, &copy.all);
  for (const auto& [node, part] : known->second.nodes) add(part, &copy.nodes[node]);
  return copy;
}

// For another graph, whose nodes have other handles.
GraphNames::Record GraphNames::in_one(Record record) {
  Record twice;
  for (auto& [node, part] : record.nodes) merge_part(part, &record.all, &twice.nodes[node]);
  record.nodes.clear();
  release(std::move(twice));
  return record;
}

void GraphNames::add(CUgraph from, CUgraph to) {
  merge(in_one(copy_of(from)), [&]() -> Record& { return of(to); });
}

void GraphNames::add(CUgraph from, CUgraphExec to) {
  merge(copy_of(from), [&]() -> Record& { return execs_[to]; });
}

void GraphNames::put_back(CUgraph graph, Record taken) {
  merge(std::move(taken), [&]() -> Record& { return graphs_[graph]; });
}

void GraphNames::put_back(CUgraphExec exec, Record taken) {
  merge(std::move(taken), [&]() -> Record& { return execs_[exec]; });
}

void GraphNames::release(Record taken) {
  taken.all.holds.release();
  for (auto& [node, part] : taken.nodes) part.holds.release();
}

void GraphNames::replace(CUgraph from, CUgraphExec to) {
  Record entry = in_one(copy_of(from));
  {
    const std::lock_guard lock(mutex_);
    std::swap(execs_[to], entry);
  }
  release(std::move(entry));
}

void GraphNames::embedded(CUgraph graph) {
  const std::lock_guard lock(mutex_);
  graphs_[graph].embedded = true;
}

GraphNames::Record GraphNames::take(CUgraph graph) {
  const std::lock_guard lock(mutex_);
  const auto known = graphs_.find(graph);
  if (known == graphs_.end()) return {};
  Record taken = std::move(known->second);
  graphs_.erase(known);
  std::erase_if(nodes_, [graph](const auto& node) { return node.second == graph; });
  return taken;
}

GraphNames::Record GraphNames::take(CUgraphExec exec) {
  const std::lock_guard lock(mutex_);
  const auto known = execs_.find(exec);
  if (known == execs_.end()) return {};
  Record taken = std::move(known->second);
  execs_.erase(known);
  return taken;
}

CUgraph GraphNames::take(CUgraphNode node, Part* taken) {
  const std::lock_guard lock(mutex_);
  nodes_.clear();
  for (auto& [graph, record] : graphs_) {
    const auto part = record.nodes.find(node);
    if (part == record.nodes.end()) continue;
    *taken = std::move(part->second);
    record.nodes.erase(part);
    return graph;
  }
  return nullptr;
}

}  // namespace offload
