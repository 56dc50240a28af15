// The command line of `berth simulate`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulate/setup.h"
#include "simulate/synthetic.h"
#include "simulate/trace.h"

namespace berth::command {

/// Where a cluster comes from: one of the three.
struct SimulatedCluster {
  std::string conf;     // a directory
  std::string emulate;  // a text
  std::string nodes;    // nodes of openb
  std::vector<simulate::Override> overrides;
  [[nodiscard]] bool named() const { return !conf.empty() || !emulate.empty() || !nodes.empty(); }
};

struct SimulateOptions {
  bool help = false;
  SimulatedCluster cluster;
  std::optional<SimulatedCluster> against;  // what is not named in it is as in the first
  std::string trace;
  std::optional<simulate::Format> format;
  std::optional<simulate::Synthetic> synthetic;
  std::uint64_t seed = 1;
  std::uint64_t most_jobs = 0;  // 0 = all
  double limit_factor = 0;
  bool priorities = false;
  std::string json;
  std::string html;
};

Result<SimulateOptions> read_simulate_options(std::span<const std::string> words);
std::string_view simulate_usage();

}  // namespace berth::command
