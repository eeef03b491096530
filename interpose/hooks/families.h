// SPDX-License-Identifier: Apache-2.0
// No include guard: included once in each file of hooks, after a definition of its FAMILY_<name>.
// See define.h.

#ifndef FAMILY_allocation
#define FAMILY_allocation(...)
#endif
#ifndef FAMILY_stream_ordered
#define FAMILY_stream_ordered(...)
#endif
#ifndef FAMILY_pools
#define FAMILY_pools(...)
#endif
#ifndef FAMILY_launches
#define FAMILY_launches(...)
#endif
#ifndef FAMILY_copies
#define FAMILY_copies(...)
#endif
#ifndef FAMILY_box_copies
#define FAMILY_box_copies(...)
#endif
#ifndef FAMILY_fills
#define FAMILY_fills(...)
#endif
#ifndef FAMILY_queries
#define FAMILY_queries(...)
#endif
#ifndef FAMILY_streams
#define FAMILY_streams(...)
#endif
#ifndef FAMILY_contexts
#define FAMILY_contexts(...)
#endif
#ifndef FAMILY_modules
#define FAMILY_modules(...)
#endif
#ifndef FAMILY_driver_memory
#define FAMILY_driver_memory(...)
#endif
#ifndef FAMILY_mappings
#define FAMILY_mappings(...)
#endif
#ifndef FAMILY_waits
#define FAMILY_waits(...)
#endif
#ifndef FAMILY_capture
#define FAMILY_capture(...)
#endif
#ifndef FAMILY_graphs
#define FAMILY_graphs(...)
#endif
#ifndef FAMILY_graph_nodes
#define FAMILY_graph_nodes(...)
#endif
#ifndef FAMILY_descriptors
#define FAMILY_descriptors(...)
#endif
#ifndef FAMILY_sharing
#define FAMILY_sharing(...)
#endif
#ifndef FAMILY_peers
#define FAMILY_peers(...)
#endif
#ifndef FAMILY_proc_address
#define FAMILY_proc_address(...)
#endif

#define HOOK(symbol, base, version, suffix, family, effect, function) \
  FAMILY_##family(symbol, base, version, suffix, function)
#include "interpose/hooks.def"
