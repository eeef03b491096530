// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/check/tags.h"

#include <set>

namespace simgpu {

namespace {

const char* intern(std::string_view name) {
  static auto* names = new std::set<std::string, std::less<>>;
  auto it = names->find(name);
  if (it == names->end()) it = names->emplace(name).first;
  return it->c_str();
}

const char* class_name(OpClass kind) {
  switch (kind) {
    case OpClass::kKernel:
      return "kernel ";
    case OpClass::kFill:
    case OpClass::kCopy:
    case OpClass::kAllocation:
    case OpClass::kFree:
      return "";
  }
  return "";
}

}  // namespace

Tags::Tags() : ring_(kRemembered) {}

TagId Tags::add(OpClass kind, std::string_view name, uint64_t stream_id, uint64_t number) {
  const TagId id = ++last_;
  Tag& tag = ring_[id % kRemembered];
  tag.id = id;
  tag.kind = kind;
  tag.name = intern(name);
  tag.stream_id = stream_id;
  tag.number = number;
  tag.pieces.clear();
  tag.readers.clear();
  return id;
}

Tag* Tags::find(TagId id) {
  Tag& tag = ring_[id % kRemembered];
  return id != 0 && tag.id == id ? &tag : nullptr;
}

std::string Tags::describe(TagId id) {
  const Tag* tag = find(id);
  if (tag == nullptr) return "an operation long ago";
  return std::string(class_name(tag->kind)) + tag->name + " (#" + std::to_string(tag->number) +
         " of stream " + std::to_string(tag->stream_id) + ")";
}

}  // namespace simgpu
