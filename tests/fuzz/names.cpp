// SPDX-License-Identifier: Apache-2.0
// hooks.def: any text as the name of an entry of the driver.

#include <algorithm>
#include <string>

#include "interpose/doors/entries.h"
#include "tests/fuzz/property.h"

using namespace offload;

namespace {

bool is_capital(char c) {
  return c >= 'A' && c <= 'Z';
}
bool spelled_like_an_entry(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && is_capital(name[2]);
}

}  // namespace

int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);

  const NameInfo found = find_symbol(text);
  MUST((found.knowledge == Knowledge::kNotDriver) == !spelled_like_an_entry(text));
  if (found.knowledge == Knowledge::kHooked)
    MUST(info(static_cast<Entry>(found.row)).symbol == text);
  if (found.knowledge == Knowledge::kTrapped) MUST(trap_table()[found.row].symbol == text);

  const std::string_view base = base_of(text);
  MUST(std::string_view(text).starts_with(base));
  MUST(found.knowledge != Knowledge::kHooked || info(static_cast<Entry>(found.row)).base == base);
  const BaseInfo known = find_base(text);
  MUST((known.knowledge == Knowledge::kHooked) == !known.rows.empty());
  MUST(std::all_of(known.rows.begin(), known.rows.end(),
                   [&](Entry entry) { return info(entry).base == text; }));
  return 0;
}
