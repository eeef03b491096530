// SPDX-License-Identifier: Apache-2.0
#include "interpose/graphs/graph_names.h"

#include <algorithm>
#include <utility>

#include "interpose/driver/table.h"

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

// What `from` holds becomes the other's; what that holds already counts once.
template <typename Find>
void GraphNames::merge(const Record& from, Find&& find) {
  GraphHold twice;
  {
    const std::lock_guard lock(mutex_);
    Record& record = find();
    record.names.add(from.names);
    record.embedded = record.embedded || from.embedded;
    for (const GraphHold::Held& each : from.hold) {
      if (!record.hold.add(each)) twice.add(each);
    }
  }
  engine_.release(&twice);
}

// `find` says whose record it is, under the mutex.
template <typename Find>
Status GraphNames::record_in(Find&& find, const NodeNames& names, ThreadPins& pins) {
  Record fresh;
  fresh.names = names;
  for (const Address word : names.words) engine_.name(pins, word);
  const Status status = engine_.hold(pins, &fresh.hold);
  if (status == Status::kOk) merge(fresh, find);
  return status;
}

Status GraphNames::record(CUgraph graph, const NodeNames& names, ThreadPins& pins) {
  return record_in([&]() -> Record& { return of(graph); }, names, pins);
}

Status GraphNames::record(CUgraphExec exec, const NodeNames& names, ThreadPins& pins) {
  return record_in([&]() -> Record& { return execs_[exec]; }, names, pins);
}

Status GraphNames::record(CUgraphNode node, const NodeNames& names, ThreadPins& pins) {
  CUgraph graph = nullptr;
  if (find_node(node, &graph)) return record(graph, names, pins);
  return record_in([&]() -> Record& { return everywhere_; }, names, pins);
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
  copy.names = known->second.names;
  engine_.hold_also(known->second.hold, &copy.hold);
  return copy;
}

void GraphNames::add(CUgraph from, CUgraph to) {
  merge(copy_of(from), [&]() -> Record& { return of(to); });
}

void GraphNames::add(CUgraph from, CUgraphExec to) {
  merge(copy_of(from), [&]() -> Record& { return execs_[to]; });
}

void GraphNames::put_back(CUgraph graph, const Record& taken) {
  merge(taken, [&]() -> Record& { return graphs_[graph]; });
}

void GraphNames::put_back(CUgraphExec exec, const Record& taken) {
  merge(taken, [&]() -> Record& { return execs_[exec]; });
}

void GraphNames::replace(CUgraph from, CUgraphExec to) {
  Record entry = copy_of(from);
  {
    const std::lock_guard lock(mutex_);
    std::swap(execs_[to], entry);
  }
  engine_.release(&entry.hold);
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

void GraphNames::forget_nodes() {
  const std::lock_guard lock(mutex_);
  nodes_.clear();
}

}  // namespace offload
