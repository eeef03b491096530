// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each graph of the program's names, and each instance of one, and that it stays where it is
// while they live. Filled while nodes are made, by capture or by hand. More may be recorded than
// the nodes name (a node's parameters are set anew, a node goes), never less; an update of an
// instance by a graph starts afresh.
//
// Threads: any; a mutex of its own, above the engine's.

#include <mutex>

#include "interpose/driver/cuda_api.h"
#include "interpose/engine/engine.h"

namespace offload {

// A captured copy of what may be a table of pointers: it is looked through at every launch, as the
// copy is made at every launch.
struct TableCopy {
  CUdeviceptr to;
  const void* from;
  size_t bytes;
};

struct NodeNames {
  OwnVector<Address> words;  // of the window; sorted in what add() makes
  OwnVector<TableCopy> copies;
  bool waits = false;  // for what the host does

  void add(const NodeNames& other);
};

class GraphNames {
 public:
  explicit GraphNames(Engine& engine) : engine_(engine) {}

  // A node of the graph, or of the instance, is about to name this. kOk: it is at home, and stays.
  Status record(CUgraph graph, const NodeNames& names, ThreadPins& pins);
  Status record(CUgraphExec exec, const NodeNames& names, ThreadPins& pins);
  // The same for a node of a graph that is looked for.
  Status record(CUgraphNode node, const NodeNames& names, ThreadPins& pins);
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
    NodeNames names;
    GraphHold hold;
    bool embedded = false;
  };
  Record take(CUgraph graph);
  Record take(CUgraphExec exec);
  void put_back(CUgraph graph, const Record& taken);
  void put_back(CUgraphExec exec, const Record& taken);
  void release(Record taken) { engine_.release(&taken.hold); }

  // A node is gone, and its handle may come back as another's.
  void forget_nodes();

  // Calls `use` with what the instance names, in parts, under the mutex.
  template <typename Use>
  void look(CUgraphExec exec, Use&& use) {
    const std::lock_guard lock(mutex_);
    if (const auto known = execs_.find(exec); known != execs_.end()) use(known->second.names);
    use(everywhere_.names);
  }

 private:
  template <typename Find>
  Status record_in(Find&& find, const NodeNames& names, ThreadPins& pins);
  template <typename Find>
  void merge(const Record& from, Find&& find);
  Record& of(CUgraph graph);
  Record copy_of(CUgraph graph);
  bool find_node(CUgraphNode node, CUgraph* graph);

  Engine& engine_;
  std::mutex mutex_;
  OwnMap<CUgraph, Record> graphs_;
  OwnMap<CUgraphExec, Record> execs_;
  OwnMap<CUgraphNode, CUgraph> nodes_;  // of those that were looked for, and their graphs' others
  Record everywhere_;                   // named by nodes whose graph is not known
};

}  // namespace offload
