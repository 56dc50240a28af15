// Prologs and epilogs of a node, one after the other, as the agent's user with a clean environment.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/loop.h"
#include "node/children.h"
#include "wire/basic.pb.h"

namespace berth::node {

struct ScriptRun {
  std::vector<std::string> programs;  // paths and glob patterns
  std::vector<std::string> environment;
  std::chrono::seconds limit{0};  // of all together; 0 = none
};

/// Calls done with "" or what went wrong ("… exited with 3", "… ran longer than 5 s"). A program
/// that runs too long is killed with its process group. Returns a function that stops the run; done
/// is called then too.
std::function<void()> run_scripts(net::Loop& loop, Children& children, ScriptRun run,
                                  std::move_only_function<void(std::string trouble)> done);

/// "NAME=value" of each, and the variables all node scripts get. `conf`: the node's slurm.conf.
std::vector<std::string> script_environment(
    const google::protobuf::RepeatedPtrField<wire::Variable>& given, const std::string& node,
    const std::string& context, const std::string& conf);

}  // namespace berth::node
