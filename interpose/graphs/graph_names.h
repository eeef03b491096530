// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each graph of the program's names, and each instance of one, and that it stays where it is
// while they live. Filled while nodes are made, by capture or by hand. A node that is made or set
// by hand has a part of its own, and a new setting lets go of what the one before named. All else
// is kept together: more may be recorded there than the nodes name, never less; an update of an
// instance by a graph starts afresh.
//
// Of the process: a graph may name memory of several devices.
//
// Threads: any; a mutex of its own, above the engines'.

#include <mutex>
#include <utility>

#include "interpose/driver/cuda_api.h"
#include "interpose/engine/edges.h"
#include "interpose/engine/engine.h"
#include "interpose/graphs/graph_holds.h"

namespace offload {

// A captured copy of what may be a table of pointers: it is looked through at every launch, as the
// copy is made at every launch.
struct TableCopy {
  CUdeviceptr to;
  const void* from;
  size_t bytes;
};

struct NodeNames {
  OwnVector<Address> words;  // of our windows, or by foreign tables; sorted in what add() makes
  OwnVector<TableCopy> copies;
  bool waits = false;  // for what the host does

  void add(const NodeNames& other);
};

class GraphNames {
 public:
  struct Part {
    NodeNames names;
    GraphHolds holds;
  };

  // A captured operation is about to become a node of the graph. kOk: what it names is at home, and
  // stays.
  Status record(CUgraph graph, const NodeNames& names);
  // The same for a node that is being made or set by hand. Then set() says which it was, or drop()
  // that the driver refused.
  static Status prepare(const NodeNames& names, Part* part);
  void set(CUgraph graph, CUgraphNode node, Part part);
  void set(CUgraphExec exec, CUgraphNode node, Part part);
  void set(CUgraphNode node, Part part);  // of a graph that is looked for
  static void drop(Part part) { part.holds.release(); }
  // The node holds a copy of this graph from now on.
  template <typename Owner>
  void set(Owner owner, CUgraphNode node, CUgraph child) {
    set(owner, node, std::move(in_one(copy_of(child)).all));
  }
  // `to` names what `from` names, too: a clone, a parent, an instance.
  void add(CUgraph from, CUgraph to);
  void add(CUgraph from, CUgraphExec to);
  // `to` names what `from` names, and nothing else any more.
  void replace(CUgraph from, CUgraphExec to);
  // The handle stands for a graph inside a node of another: what it names from now on is taken to
  // be named by all instances.
  void embedded(CUgraph graph);
  // Before the driver destroys one, since its handle may come back at once. Then what was taken is
  // released, or put back if the driver refused.
  struct Record {
    Part all;
    OwnMap<CUgraphNode, Part> nodes;
    bool embedded = false;
  };
  Record take(CUgraph graph);
  Record take(CUgraphExec exec);
  void put_back(CUgraph graph, Record taken);
  void put_back(CUgraphExec exec, Record taken);
  static void release(Record taken);

  // The same for a node that has a part of its own: what it was a part of, or null.
  CUgraph take(CUgraphNode node, Part* taken);

  // Calls `use` with what the instance names, in parts, under the mutex.
  template <typename Use>
  void look(CUgraphExec exec, Use&& use) {
    const std::lock_guard lock(mutex_);
    if (const auto known = execs_.find(exec); known != execs_.end()) look_at(known->second, use);
    look_at(everywhere_, use);
  }

 private:
  template <typename Use>
  static void look_at(const Record& record, Use&& use) {
    use(record.all.names);
    for (const auto& [node, part] : record.nodes) use(part.names);
  }
  template <typename Find>
  void set_in(Find&& find, CUgraphNode node, Part part);
  template <typename Find>
  void merge(Record from, Find&& find);
  static void merge_part(Part& from, Part* to, Part* twice);
  Record& of(CUgraph graph);
  Record copy_of(CUgraph graph);
  static Record in_one(Record record);
  bool find_node(CUgraphNode node, CUgraph* graph);

  PlainMutex mutex_;
  OwnMap<CUgraph, Record> graphs_;
  OwnMap<CUgraphExec, Record> execs_;
  OwnMap<CUgraphNode, CUgraph> nodes_;  // of those that were looked for, and their graphs' others
  Record everywhere_;                   // named by nodes whose graph is not known
};

}  // namespace offload
