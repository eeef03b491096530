// SPDX-License-Identifier: Apache-2.0
// Pointers that are no argument of their own: in a struct, in a table that the host wrote, in one
// that a kernel wrote.

#include <memory>

#include "tests/clients/client.h"

namespace clients {
namespace {

constexpr uint32_t kCrowd = 20;

// 32 KiB by value; what it names stands far apart in it.
struct Table {
  uint32_t count = kWords;
  uint32_t unused = 0;
  CUdeviceptr at[4093] = {};
};

void struct_of_pointers(Client& client) {
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  auto table = std::make_unique<Table>();
  CUdeviceptr sum = client.allocate();
  client.fill(sum, 3);
  std::vector<uint32_t> wanted = filled(3);
  const size_t places[] = {0, 17, 1000, 4092};
  for (size_t i = 0; i < std::size(places); ++i) {
    table->at[places[i]] = buffers[i];
    mix_on_host(wanted, filled(static_cast<uint32_t>(1000 * i)));
  }
  client.launch(client.function("mix_struct"), {&sum, table.get()}, {8, sizeof(Table)});
  client.expect(sum, wanted);
  client.disperse(buffers);
}

void mix_through(Client& client, CUdeviceptr sum, CUdeviceptr table, uint32_t entries) {
  uint32_t words = kWords;
  client.launch(client.function("mix_table"), {&sum, &table, &entries, &words}, {8, 8, 4, 4});
}

// The table is written once; what it points to has left long before it is used. Small, and large
// enough to be moved itself.
void table_from_host(Client& client) {
  for (const size_t table_bytes : {size_t{4096}, kBytes}) {
    const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
    const CUdeviceptr table = client.allocate(table_bytes);
    std::vector<CUdeviceptr> entries(8);
    for (size_t i = 0; i < entries.size(); ++i) entries[i] = i % 2 == 0 ? buffers[i / 2] : 0;
    CHECK_CUDA(
        client.cuda.cuMemcpyHtoD(table, entries.data(), entries.size() * sizeof(CUdeviceptr)));
    const std::vector<CUdeviceptr> more = client.crowd(kCrowd);
    const CUdeviceptr sum = client.allocate();
    client.fill(sum, 5);
    std::vector<uint32_t> wanted = filled(5);
    mix_through(client, sum, table, 8);
    for (uint32_t i = 0; i < 4; ++i) mix_on_host(wanted, filled(1000 * i));
    client.expect(sum, wanted);
    // An overwritten table names other buffers.
    for (size_t i = 0; i < entries.size(); ++i) entries[i] = i < 2 ? buffers[10 + i] : 0;
    CHECK_CUDA(client.cuda.cuMemcpy(table, reinterpret_cast<CUdeviceptr>(entries.data()),
                                    entries.size() * sizeof(CUdeviceptr)));
    mix_through(client, sum, table, 8);
    for (uint32_t i = 0; i < 2; ++i) mix_on_host(wanted, filled(1000 * (10 + i)));
    client.expect(sum, wanted);
    client.disperse(buffers);
    client.disperse(more);
    client.free(table);
    client.free(sum);
  }
}

// Grouped products do this: one kernel writes the pointers, the next one follows them.
void table_on_device(Client& client) {
  CUdeviceptr table = client.allocate(4096);
  const std::vector<CUdeviceptr> buffers = client.crowd(kCrowd);
  const CUdeviceptr sum = client.allocate();
  client.fill(sum, 9);
  std::vector<uint32_t> wanted = filled(9);
  for (uint32_t first = 0; first + 3 <= kCrowd; first += 3) {
    CUdeviceptr named[3] = {buffers[first], buffers[first + 1], buffers[first + 2]};
    client.launch(client.function("build_table"), {&table, &named[0], &named[1], &named[2]},
                  {8, 8, 8, 8});
    mix_through(client, sum, table, 3);
    for (uint32_t i = 0; i < 3; ++i) mix_on_host(wanted, filled(1000 * (first + i)));
  }
  client.expect(sum, wanted);
  client.disperse(buffers);
}

}  // namespace

const std::vector<Scenario> kTableScenarios = {
    {"struct-of-pointers", &struct_of_pointers},
    {"table-from-host", &table_from_host},
    {"table-on-device", &table_on_device},
};

}  // namespace clients
