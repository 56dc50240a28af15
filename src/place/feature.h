// Node features (-C, --prefer): "a&b", "a|(b&c)", "[a|b]", "[a*1&b*2]", and mixes of a filter with
// one bracket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace berth::place {

/// A tree of features joined by & and |.
struct FeatureExpr {
  enum class Kind { name, all, any } kind = Kind::all;
  std::string name;
  std::vector<FeatureExpr> parts;

  [[nodiscard]] bool matches(const cluster::Node& node) const;
  void collect_names(std::vector<std::string>& out) const;
};

struct FeatureAsk {
  FeatureExpr filter;                     // holds for every node; empty `all` = no filter
  std::vector<FeatureExpr> alternatives;  // [a|b]: all nodes from one of them, tried in order
  struct Counted {
    FeatureExpr expr;
    std::uint32_t count = 1;
  };
  std::vector<Counted> counted;  // [a*1&b*2]

  [[nodiscard]] std::vector<std::string> names() const;
};

/// nullopt when the expression is malformed.
std::optional<FeatureAsk> parse_features(std::string_view text);

}  // namespace berth::place
