// SPDX-License-Identifier: Apache-2.0
#include "tests/workloads/truth.h"

#include "tests/workloads/errors.h"

namespace gpt {
namespace {
thread_local const char* thread_name = "main";
}

Truth::Truth(const std::string& path, const std::string& run) : out_(path) {
  if (!out_) throw BadOption("--truth " + path + ": cannot be written");
  out_ << R"({"format":1,"program":"train_gpt",)" << run << "}\n";
}

void Truth::op(int64_t op, const char* kind, const char* name, const char* queue, int64_t step) {
  out_ << R"({"op":)" << op << R"(,"kind":")" << kind << R"(","name":")" << name << R"(","queue":")"
       << queue << R"(","step":)" << step << R"(,"thread":")" << thread_name << "\"}\n";
}

void Truth::freed(const Buffer& buffer, int64_t ops, int64_t clock) {
  // What was allocated to be saved, but never was, is no activation.
  const Role role =
      buffer.role == Role::kActivation && !buffer.saved ? Role::kTemporary : buffer.role;
  out_ << R"({"tensor":)" << buffer.number << R"(,"role":")" << role_name(role) << R"(","name":")"
       << buffer.name << R"(","layer":)" << buffer.layer << R"(,"bytes":)" << buffer.bytes
       << R"(,"address":")" << buffer.address << R"(","step":)" << buffer.born_step << R"(,"born":)"
       << buffer.born_op << R"(,"uses":[)";
  const char* comma = "";
  for (const Use& use : buffer.uses) {
    out_ << comma << "[" << use.op << ",\"" << (use.reads ? "r" : "") << (use.writes ? "w" : "")
         << "\"]";
    comma = ",";
  }
  out_ << R"(],"freed":)" << ops << R"(,"clock":[)" << buffer.born_clock << "," << clock << "]}\n";
}

void Truth::name_thread(const char* name) {
  thread_name = name;
}

}  // namespace gpt
