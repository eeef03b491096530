// SPDX-License-Identifier: Apache-2.0
#include "tests/simgpu/driver/fault_list.h"

#include <charconv>

#include "tests/simgpu/driver/error_names.h"
#include "tests/simgpu/driver/options.h"
#include "tests/simgpu/driver/say.h"
#include "tests/simgpu/driver/statistics.h"

namespace simgpu {

namespace {

template <class Number>
bool parse_number(std::string_view text, Number* number) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

bool parse_code(std::string_view text, CUresult* code) {
  int number = 0;
  if (parse_number(text, &number)) {
    *code = static_cast<CUresult>(number);
    return number > 0 && error_name(*code) != nullptr;
  }
  for (number = 1; number < 1000; ++number) {
    const char* name = error_name(static_cast<CUresult>(number));
    if (name == nullptr) continue;
    const std::string_view whole = name;
    if (whole != text && whole != "CUDA_ERROR_" + std::string(text)) continue;
    *code = static_cast<CUresult>(number);
    return true;
  }
  return false;
}

bool parse_rule(std::string_view text, FaultRule* rule) {
  const size_t colon = text.find(':');
  const size_t equals = text.find('=');
  if (colon == std::string_view::npos || equals == std::string_view::npos || colon == 0 ||
      equals < colon) {
    return false;
  }
  rule->name = text.substr(0, colon);
  std::string_view calls = text.substr(colon + 1, equals - colon - 1);
  if (!parse_code(text.substr(equals + 1), &rule->code)) return false;
  if (!calls.empty() && calls.back() == '+') {
    rule->last = UINT64_MAX;
    return parse_number(calls.substr(0, calls.size() - 1), &rule->first) && rule->first > 0;
  }
  if (const size_t dash = calls.find('-'); dash != std::string_view::npos) {
    return parse_number(calls.substr(0, dash), &rule->first) &&
           parse_number(calls.substr(dash + 1), &rule->last) && rule->first > 0;
  }
  if (!parse_number(calls, &rule->first)) return false;
  rule->last = rule->first;
  return rule->first > 0;
}

std::vector<FaultRule>& rules() {
  static auto* all = [] {
    auto* parsed = new std::vector<FaultRule>;
    std::string bad;
    if (!parse_faults(options().faults, parsed, &bad)) {
      say("SIMGPU_FAULTS: \"%s\" is not NAME:CALL=CODE; no fault will be injected", bad.c_str());
      parsed->clear();
    }
    return parsed;
  }();
  return *all;
}

}  // namespace

bool parse_faults(const std::string& text, std::vector<FaultRule>* parsed, std::string* bad) {
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    FaultRule rule;
    if (!parse_rule(std::string_view(text).substr(at, comma - at), &rule)) {
      *bad = text.substr(at, comma - at);
      return false;
    }
    parsed->push_back(std::move(rule));
    at = comma + 1;
  }
  return true;
}

std::string_view base_name(std::string_view symbol) {
  if (symbol.ends_with("_ptsz") || symbol.ends_with("_ptds")) symbol.remove_suffix(5);
  const size_t version = symbol.rfind("_v");
  const bool numbered = version != std::string_view::npos && version + 2 < symbol.size() &&
                        symbol.find_first_not_of("0123456789", version + 2) == symbol.npos;
  return numbered ? symbol.substr(0, version) : symbol;
}

CUresult injected_fault(const char* api) {
  if (rules().empty()) return CUDA_SUCCESS;
  CUresult code = CUDA_SUCCESS;
  const std::string_view symbol = api;
  for (FaultRule& rule : rules()) {
    if (rule.name != symbol && rule.name != base_name(symbol)) continue;
    ++rule.calls;
    if (rule.calls >= rule.first && rule.calls <= rule.last) code = rule.code;
  }
  if (code != CUDA_SUCCESS) ++statistics().calls_failed_on_request;
  return code;
}

bool is_sticky(CUresult code) {
  switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return true;
    default:
      return false;
  }
}

}  // namespace simgpu
