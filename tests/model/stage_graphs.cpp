// SPDX-License-Identifier: Apache-2.0
// Captures, and the graph that they make.

#include "tests/model/stage.h"

namespace offload::model {

void Stage::act_graphs(const Action& action) {
  World& w = *world_;
  switch (action.kind) {
    case Action::Kind::kBeginCapture:
      return w.begin_capture(action.stream);
    case Action::Kind::kEndCapture:
      if (captures(action.stream)) w.end_capture(action.stream);
      return;
    case Action::Kind::kLaunch:
      return act_launch(action);
    default:
      break;
  }
  const std::vector<Arg> args = {Arg{kGraph, Mode::kUpdate}};
  wait_for(args);
  if (vars_[kGraph] < 0 || !w.graph(vars_[kGraph]).live) return;
  claim(args, 1);
  w.destroy_graph(vars_[kGraph]);
  claim(args, -1);
}

// Nothing runs: what the op names is held. One graph at a time, of one node.
void Stage::act_captured(const Action& action) {
  World& w = *world_;
  std::vector<Arg> named;
  for (const Arg& arg : action.args) named.push_back({arg.tensor, Mode::kRead});
  named.push_back({kGraph, Mode::kUpdate});
  wait_for(named);
  if (action.args.empty()) return;
  if (vars_[kGraph] >= 0 && w.graph(vars_[kGraph]).live) return;
  std::vector<Arg> given;
  for (Arg arg : action.args) {
    const int tensor = vars_[arg.tensor];
    if (tensor < 0 || !w.tensor(tensor).live) return;
    arg.tensor = tensor;
    given.push_back(arg);
  }
  claim(named, 1);
  const int made = w.try_make_graph(given);
  if (made >= 0) {
    vars_[kGraph] = made;
    graph_args_ = action.args;
  } else if (!program_.refuses) {
    fail(Failure::Kind::kRefused, action.text);
  }
  claim(named, -1);
}

void Stage::act_launch(const Action& action) {
  World& w = *world_;
  const auto used = [&] {
    std::vector<Arg> args = {Arg{kGraph, Mode::kUpdate}};
    if (vars_[kGraph] < 0) return args;
    const World::Graph& graph = w.graph(vars_[kGraph]);
    for (size_t i = 0; i < graph_args_.size(); ++i) {
      // What its letter means now may be another, which is none of the graph's.
      if (vars_[graph_args_[i].tensor] != graph.args[i].tensor) continue;
      const bool reads = w.tensor(graph.args[i].tensor).written;
      args.push_back({graph_args_[i].tensor, reads ? graph_args_[i].mode : Mode::kWrite});
    }
    return args;
  };
  while (!free_for(used())) wait_for(used());
  if (vars_[kGraph] < 0 || !w.graph(vars_[kGraph]).live) return;
  const std::vector<Arg> args = used();
  claim(args, 1);
  World::Launch launch = w.name_launch(vars_[kGraph], action.stream);
  w.start(launch.op);
  if (launch.op.status == Status::kOk) {
    if (others_could_go_on()) {
      suspend(State::kReady);
      note_shared();
    }
    w.forward(launch);
    w.end(launch.op);
  } else {
    fail(Failure::Kind::kRefused, "what a graph names is there, and its launch is refused");
  }
  claim(args, -1);
}

}  // namespace offload::model
