// SPDX-License-Identifier: Apache-2.0
#include "tests/model/program.h"

namespace offload::model {

namespace {

std::string letter(int var) {
  return std::string(1, static_cast<char>('a' + var));
}
std::string on(int stream) {
  return stream < 0 ? "" : " on " + std::to_string(stream);
}
Action make(Action::Kind kind, int stream, int var, std::string text) {
  Action action;
  action.kind = kind;
  action.stream = stream;
  action.var = var;
  action.text = std::move(text);
  return action;
}

}  // namespace

Action op(int stream, std::vector<Arg> args) {
  std::string text;
  for (const Arg& arg : args) {
    constexpr const char* kModes[] = {"write ", "update ", "read ", "name "};
    if (!text.empty()) text += ", ";
    text += std::string(arg.named ? "" : "hidden ") + kModes[static_cast<size_t>(arg.mode)] +
            letter(arg.tensor);
  }
  Action action = make(Action::Kind::kOp, stream, -1, text + on(stream));
  action.args = std::move(args);
  return action;
}

Action allocate(int var, uint64_t granules, int stream) {
  Action action = make(Action::Kind::kAllocate, stream, var,
                       letter(var) + "=" + std::to_string(granules) + on(stream));
  action.granules = granules;
  return action;
}
Action release(int var, int stream) {
  return make(Action::Kind::kFree, stream, var, "free " + letter(var) + on(stream));
}
Action press(int var) {
  return make(Action::Kind::kPress, -1, var, "press " + letter(var));
}
Action idle(int stream) {
  return make(Action::Kind::kIdle, stream, -1, "idle" + on(stream));
}
Action synchronize(int stream) {
  return make(Action::Kind::kSynchronize, stream, -1, "wait for" + on(stream));
}
Action wait_for_flag(int stream) {
  return make(Action::Kind::kWaitForFlag, stream, -1, "flag" + on(stream));
}
Action flag_before(int stream) {
  return make(Action::Kind::kFlagBefore, stream, -1, "flag from before" + on(stream));
}
Action set_flag() {
  return make(Action::Kind::kSetFlag, -1, -1, "set flag");
}
Action trim() {
  return make(Action::Kind::kTrim, -1, -1, "trim");
}
Action retire() {
  return make(Action::Kind::kRetire, -1, -1, "retire");
}
Action run_all() {
  return make(Action::Kind::kRunAll, -1, -1, "run all");
}

Action new_stream() {
  return make(Action::Kind::kNewStream, -1, -1, "new stream");
}

Action begin_capture(int stream) {
  return make(Action::Kind::kBeginCapture, stream, -1, "capture" + on(stream));
}
Action end_capture(int stream) {
  return make(Action::Kind::kEndCapture, stream, -1, "end of capture" + on(stream));
}
Action launch(int stream) {
  return make(Action::Kind::kLaunch, stream, -1, "launch" + on(stream));
}
Action destroy_graph() {
  return make(Action::Kind::kDestroyGraph, -1, -1, "destroy the graph");
}

std::string Program::text() const {
  const auto list = [](const std::vector<Action>& actions) {
    std::string text;
    for (const Action& action : actions) text += (text.empty() ? "" : "; ") + action.text;
    return text;
  };
  std::string all = name + ": device " + std::to_string(settings.device_granules) + ", host " +
                    std::to_string(settings.host_granules) + ", extents up to " +
                    std::to_string(settings.largest_extent) + ", grace " +
                    std::to_string(settings.grace) +
                    (settings.evicted == EvictedShows::kNothing ? ", unmapped" : "") +
                    (settings.finished_only ? ", finished" : "") + " [" + list(prologue) + "]";
  for (const auto& thread : threads) all += " | " + list(thread);
  return all;
}

}  // namespace offload::model
