// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/module/unpack.h"

#include <dlfcn.h>

namespace simgpu {
namespace {

struct Zstd {
  size_t (*decompress)(void*, size_t, const void*, size_t) = nullptr;
  unsigned (*is_error)(size_t) = nullptr;
};

const Zstd& zstd() {
  static const Zstd functions = [] {
    Zstd found;
    if (void* handle = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL)) {
      found.decompress =
          reinterpret_cast<decltype(found.decompress)>(dlsym(handle, "ZSTD_decompress"));
      found.is_error = reinterpret_cast<decltype(found.is_error)>(dlsym(handle, "ZSTD_isError"));
    }
    return found;
  }();
  return functions;
}

class Lz4Block {
 public:
  Lz4Block(const uint8_t* data, size_t stored_bytes, size_t limit, std::string* out)
      : at_(data), end_(data + stored_bytes), limit_(limit), out_(out) {}

  bool run() {
    while (at_ < end_) {
      const uint8_t token = *at_++;
      size_t literals = token >> 4;
      if (!extend(&literals) || literals > left() || out_->size() + literals > limit_) return false;
      out_->append(reinterpret_cast<const char*>(at_), literals);
      at_ += literals;
      if (at_ == end_) break;  // the last sequence has no match
      if (left() < 2) return false;
      const size_t distance = at_[0] | static_cast<size_t>(at_[1]) << 8;
      at_ += 2;
      size_t match = token & 15U;
      if (!extend(&match)) return false;
      match += 4;
      if (distance == 0 || distance > out_->size() || out_->size() + match > limit_) return false;
      // Byte by byte: a match may overlap what it is producing.
      for (size_t i = 0; i < match; ++i) out_->push_back((*out_)[out_->size() - distance]);
    }
    return out_->size() == limit_;
  }

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  bool extend(size_t* length) {
    if (*length != 15) return true;
    uint8_t more = 0;
    do {
      if (at_ == end_) return false;
      more = *at_++;
      *length += more;
    } while (more == 255);
    return true;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  size_t limit_;
  std::string* out_;
};

}  // namespace

bool unpack_zstd(const uint8_t* data, size_t stored_bytes, size_t bytes, std::string* out,
                 std::string* error) {
  if (zstd().decompress == nullptr || zstd().is_error == nullptr) {
    *error = "compressed code needs libzstd.so.1, which is not installed";
    return false;
  }
  out->resize(bytes);
  const size_t result = zstd().decompress(out->data(), bytes, data, stored_bytes);
  if (zstd().is_error(result) != 0 || result != bytes) {
    *error = "compressed code is damaged (zstd)";
    return false;
  }
  return true;
}

bool unpack_lz4(const uint8_t* data, size_t stored_bytes, size_t bytes, std::string* out,
                std::string* error) {
  out->clear();
  out->reserve(bytes);
  if (Lz4Block(data, stored_bytes, bytes, out).run()) return true;
  *error = "compressed code is damaged (LZ4)";
  return false;
}

}  // namespace simgpu
