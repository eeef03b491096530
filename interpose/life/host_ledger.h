// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machine's ledger of pinned host memory: a table in shared memory, one row per process that
// has pinned some for moved buffers, of one user and one process namespace. Each may pin an equal
// part of what there was before any did; rows of processes that are gone, however they ended, are
// cleared by whoever comes next. Without shared memory there is no ledger, and no limit but the
// own.

#include <cstdint>

#include "interpose/memory/host_share.h"

namespace offload {

class HostLedger final : public HostShare {
 public:
  static constexpr uint32_t kRows = 256;

  constexpr HostLedger() = default;
  // Before the first take(). `machine_bytes`: what all may pin, as far as this process can tell.
  // `name`: of the shared memory, for tests; null: by user and namespace.
  void start(uint64_t machine_bytes, const char* name = nullptr);

  uint64_t take(uint64_t wanted_bytes, uint64_t unit_bytes) override;
  void give(uint64_t bytes) override;

  // Processes with a row, this one included, and what they have pinned in all; 0, 0 without a
  // ledger.
  struct Totals {
    uint32_t processes = 0;
    uint64_t pinned_bytes = 0;
  };
  Totals totals();

 private:
  struct Row;
  struct Table;
  class Locked;
  bool join();
  Row* own_row(Table& table);

  uint64_t machine_bytes_ = 0;
  char name_[64] = {};
  Table* table_ = nullptr;
  int process_ = 0;  // whose row it is: a forked child has none
  bool said_ = false;
};

// The process's one; lives for ever.
HostLedger& host_ledger();

}  // namespace offload
