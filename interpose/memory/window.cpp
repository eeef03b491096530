// SPDX-License-Identifier: Apache-2.0
#include "interpose/memory/window.h"

#include <sys/mman.h>

#include <bit>

namespace offload {

namespace {

// Zero-filled and sparse: most pages of the window are never touched.
void* sparse_table(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

constexpr uintptr_t kSlabTag = 1;
constexpr uint64_t kGap = 1;  // pages on each side

}  // namespace

Status Window::reserve(Port& port, uint64_t bytes, uint64_t granularity) {
  shift_ = static_cast<uint32_t>(std::countr_zero(granularity));
  const uint64_t floor = bytes >= (uint64_t{8} << 30) ? kLowHalfFloor : 0;
  const Status status = space_.reserve(port, bytes, granularity, floor);
  if (status != Status::kOk) return status;
  pages_ = bytes >> shift_;
  names_ = static_cast<std::atomic<PageEntry>*>(sparse_table(pages_ * sizeof(*names_)));
  owners_ = static_cast<uintptr_t*>(sparse_table(pages_ * sizeof(*owners_)));
  if (names_ == nullptr || owners_ == nullptr) return Status::kOutOfMemory;
  base_ = space_.base();
  bytes_ = bytes;
  return Status::kOk;
}

Window::~Window() {
  if (names_ != nullptr) munmap(static_cast<void*>(names_), pages_ * sizeof(*names_));
  if (owners_ != nullptr) munmap(owners_, pages_ * sizeof(*owners_));
}

Address Window::take(uint64_t granules) {
  const Address at = space_.take(granules + 2 * kGap);
  return at == 0 ? 0 : at + (kGap << shift_);
}

void Window::give_back(Address address, uint64_t granules) {
  space_.give_back(address - (kGap << shift_), granules + 2 * kGap);
}

void Window::name(uint64_t first_page, uint64_t pages, PageEntry entry) {
  for (uint64_t i = 0; i < pages; ++i) {
    names_[first_page + i].store(entry, std::memory_order_release);
  }
}

void Window::show_buffer(Address address, uint64_t granules, Buffer* buffer) {
  for (uint64_t i = 0; i < granules; ++i) {
    owners_[page(address) + i] = reinterpret_cast<uintptr_t>(buffer);
  }
  name(page(address) - kGap, granules + 2 * kGap, buffer);
}

void Window::show_slab(Address address, uint64_t granules, Slab* slab) {
  for (uint64_t i = 0; i < granules; ++i) {
    owners_[page(address) + i] = reinterpret_cast<uintptr_t>(slab) | kSlabTag;
  }
}

void Window::hide(Address address, uint64_t granules) {
  for (uint64_t i = 0; i < granules; ++i) owners_[page(address) + i] = 0;
  name(page(address) - kGap, granules + 2 * kGap, nullptr);
}

void Window::mark_tables(Address address, uint64_t bytes) {
  const uint64_t first = page(address);
  name(first, page(address + bytes - 1) - first + 1, tables());
}

Buffer* Window::buffer_at(Address address) const {
  if (!contains(address)) return nullptr;
  const uintptr_t owner = owners_[page(address)];
  return (owner & kSlabTag) != 0 ? nullptr : reinterpret_cast<Buffer*>(owner);
}

Slab* Window::slab_at(Address address) const {
  if (!contains(address)) return nullptr;
  const uintptr_t owner = owners_[page(address)];
  return (owner & kSlabTag) == 0 ? nullptr : reinterpret_cast<Slab*>(owner & ~kSlabTag);
}

}  // namespace offload
