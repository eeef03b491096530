// SPDX-License-Identifier: Apache-2.0
// Graphs and their instances: made, launched, updated, gone. What their nodes name:
// graph_nodes.cpp.

#include <atomic>
#include <utility>

#include "interpose/hooks/define.h"
#include "interpose/hooks/operation.h"
#include "interpose/rules.h"
#include "profiler/base/log.h"

namespace offload {
namespace {

template <Entry E, typename... Arguments>
CUresult instantiate(CUgraphExec* exec, CUgraph graph, Arguments... arguments) {
  Session* active = session();
  const CUresult result =
      with_device_memory(0, [&] { return real<E>()(exec, graph, arguments...); });
  if (result == CUDA_SUCCESS && active != nullptr && exec != nullptr && obeys(Rule::kInstanceNames))
    active->graphs.add(graph, *exec);
  return result;
}

// What kernels launch cannot be seen.
void launched_by_device(unsigned long long flags) {
  if (session() == nullptr || (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0) return;
  give_up(Reason::unknown_entry, "a graph is to be launched from the GPU");
}

// What a graph allocates is the driver's, and what graphs name stays where it is.
CUresult said_if_refused(CUresult result) {
  static constinit std::atomic<bool> said{false};
  if (result == CUDA_ERROR_OUT_OF_MEMORY && !said.exchange(true, std::memory_order_relaxed)) {
    log_warn(
        "out of memory: a graph needs more GPU memory than the driver has, with all that "
        "liboffload could give up: what graphs name cannot leave, nor what is in use; a smaller "
        "batch or fewer graphs avoid it");
  }
  return result;
}

}  // namespace

template <Entry E>
CUresult graph_instantiate_old(CUgraphExec* exec, CUgraph graph, CUgraphNode* node, char* log,
                               size_t log_bytes) {
  return instantiate<E>(exec, graph, node, log, log_bytes);
}

template <Entry E>
CUresult graph_instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  launched_by_device(flags);
  return instantiate<E>(exec, graph, flags);
}

template <Entry E>
CUresult graph_instantiate_with_params(CUgraphExec* exec, CUgraph graph,
                                       CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters != nullptr) launched_by_device(parameters->flags);
  return instantiate<E>(exec, graph, parameters);
}

// One operation that names all that the nodes name. All of it is at home already, but for what
// tables of pointers have come to name since.
template <Entry E>
CUresult graph_launch(CUgraphExec exec, CUstream stream) {
  Session* active = session();
  if (active == nullptr) return real<E>()(exec, stream);
  Operation operation(*active);
  if (captures_watched()) [[unlikely]]
    operation.look_for_capture(stream, RealType<E>::per_thread);
  bool waits = false;
  OwnVector<TableCopy> copies;
  active->graphs.look(exec, [&](const NodeNames& names) {
    for (const Address word : names.words) {
      if (obeys(Rule::kLaunchNames)) operation.name(word);
    }
    copies.insert(copies.end(), names.copies.begin(), names.copies.end());
    waits = waits || names.waits;
  });
  for (const TableCopy& copy : copies) {
    operation.record_table(copy);
    if (obeys(Rule::kCopiedTablesAreLookedThrough)) operation.name_table(copy);
  }
  if (waits && obeys(Rule::kGraphsWait)) operation.may_wait();
  for (const TableCopy& copy : copies) {
    if (const CUresult refused = operation.expect_table(copy); refused != CUDA_SUCCESS)
      return refused;
  }
  if (const CUresult refused = operation.begin(stream, RealType<E>::per_thread);
      refused != CUDA_SUCCESS)
    return refused;
  for (const TableCopy& copy : copies) {
    if (!operation.recording()) operation.table_copied(copy);
  }
  return operation.end(
      said_if_refused(with_device_memory(0, [&] { return real<E>()(exec, stream); })));
}

template <Entry E, typename... Arguments>
CUresult graph_exec_update(CUgraphExec exec, CUgraph graph, Arguments... arguments) {
  const CUresult result =
      with_device_memory(0, [&] { return real<E>()(exec, graph, arguments...); });
  Session* active = session();
  if (result == CUDA_SUCCESS && active != nullptr && obeys(Rule::kUpdateReplaces))
    active->graphs.replace(graph, exec);
  return result;
}

template <Entry E>
CUresult graph_clone(CUgraph* clone, CUgraph graph) {
  const CUresult result = real<E>()(clone, graph);
  Session* active = session();
  if (result == CUDA_SUCCESS && active != nullptr && clone != nullptr && obeys(Rule::kCloneNames))
    active->graphs.add(graph, *clone);
  return result;
}

// What is launched still runs: what it names goes to others behind it.
template <Entry E, typename Handle>
CUresult graph_destroy(Handle handle) {
  Session* active = session();
  if (active == nullptr) return real<E>()(handle);
  GraphNames::Record taken = active->graphs.take(handle);
  const CUresult result = real<E>()(handle);
  if (result == CUDA_SUCCESS) {
    GraphNames::release(std::move(taken));
  } else {
    active->graphs.put_back(handle, std::move(taken));
  }
  return result;
}

template <Entry E>
CUresult graph_destroy_node(CUgraphNode node) {
  Session* active = session();
  if (active == nullptr) return real<E>()(node);
  GraphNames::Part taken;
  const CUgraph graph = active->graphs.take(node, &taken);
  const CUresult result = real<E>()(node);
  if (result == CUDA_SUCCESS || graph == nullptr) {
    GraphNames::drop(std::move(taken));
  } else {
    active->graphs.set(graph, node, std::move(taken));
  }
  return result;
}

}  // namespace offload

#define FAMILY_graphs DEFINE_HOOK
#include "interpose/hooks/families.h"
