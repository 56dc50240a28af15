// What `berth bind` in a line of the script will give each process that it runs in. Internal to the
// module.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "explain/explain.h"
#include "place/bind_words.h"
#include "place/local_ranks.h"

namespace berth::explain {

class Bind {
 public:
  /// `words` of the line, from what starts the processes on.
  explicit Bind(std::span<const std::string> words);

  /// Gives the process what bind will: `environment` is its own, `rank` its place on the node.
  /// Where bind refuses, a note of the step says why.
  void apply(Step& step, Task& task, const Environment& environment, place::LocalRank rank);

 private:
  /// What all ranks of a node take.
  struct Node {
    place::LocalShare share;
    std::vector<place::LocalChoice> choices;  // by rank
  };

  static Result<Node> read_node(const std::string& share, const place::LocalRank& any);
  Result<void> give(Task& task, const Environment& environment, place::LocalRank rank);

  std::optional<Result<place::BindWords>> words_;
  std::map<std::pair<std::string, std::uint32_t>, Result<Node>> nodes_;  // share and ranks there
};

}  // namespace berth::explain
