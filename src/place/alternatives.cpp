#include "place/alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "text/words.h"

namespace berth::place {
namespace {

using request::Counts;
using request::GresAsk;

constexpr std::size_t kMostAlternatives = 16;
constexpr std::array kLists = {&Counts::per_job, &Counts::per_node, &Counts::per_socket,
                               &Counts::per_task};

/// Every choice that is written in the counts.
std::set<std::string> choices_in(const Counts& counts) {
  std::set<std::string> out;
  for (const auto list : kLists) {
    for (const GresAsk& ask : counts.*list) {
      if (ask.type.find('|') != std::string::npos) out.insert(ask.type);
    }
  }
  return out;
}

}  // namespace

std::vector<Counts> alternatives(const Counts& counts) {
  std::vector<Counts> out = {counts};
  for (const std::string& choice : choices_in(counts)) {
    std::vector<Counts> more;
    for (const Counts& before : out) {
      for (const std::string_view model : text::split(choice, '|')) {
        if (more.size() == kMostAlternatives) break;
        Counts& one = more.emplace_back(before);
        for (const auto list : kLists) {
          for (GresAsk& ask : one.*list) {
            if (ask.type == choice) ask.type = model;
          }
        }
      }
    }
    out = std::move(more);
  }
  return out;
}

std::string fault_in_alternatives(const Counts& counts) {
  std::size_t all = 1;
  for (const std::string& choice : choices_in(counts)) {
    const auto models = text::split(choice, '|');
    if (std::ranges::any_of(models, &std::string_view::empty)) {
      return fmt::format(
          "a model is missing in '{}': write them with | in between, as in --gpus='a100|h100:4'",
          choice);
    }
    all *= models.size();
    if (all > kMostAlternatives) {
      return fmt::format("'{}' leaves more than {} choices: name fewer models", choice,
                         kMostAlternatives);
    }
  }
  return {};
}

bool made_of(const cluster::Cluster& cluster, const cluster::Allocation& allocation,
             const Counts& counts) {
  for (const auto list : kLists) {
    for (const GresAsk& ask : counts.*list) {
      if (ask.type.empty() || ask.count == 0) continue;
      const bool found =
          std::ranges::any_of(allocation.nodes, [&](const cluster::NodeShare& share) {
            const cluster::Gres* gres = cluster.nodes[share.node].find_gres(ask.name);
            const cluster::GresShare* taken = share.find(ask.name);
            if (gres == nullptr || taken == nullptr) return false;
            for (std::size_t d = 0; d < taken->units.size() && d < gres->devices.size(); ++d) {
              if (taken->units[d] > 0 && gres->devices[d].type == ask.type) return true;
            }
            return false;
          });
      if (!found) return false;
    }
  }
  return true;
}

}  // namespace berth::place
