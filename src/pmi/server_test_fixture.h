// For tests of the server: a step on some nodes, a launch tree of a few lines, tasks that are
// strings.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pmi/mapping.h"
#include "pmi/server.h"

namespace berth::pmi {

/// PMI-2: with its length before it.
inline std::string framed(std::string_view text) {
  return fmt::format("{:<6}{}", text.size(), text);
}

using Layout = std::vector<std::vector<std::uint32_t>>;  // the ranks of each node
inline const Layout kOneTask = {std::vector<std::uint32_t>{0}};

/// Everything but answers and fences is kept in `events`; those are carried out.
class Cluster {
 public:
  explicit Cluster(const Layout& layout, Step step = {}) {
    step.id = "12.0";
    for (const auto& ranks : layout) step.size += static_cast<std::uint32_t>(ranks.size());
    step.mapping = process_mapping(layout);
    for (const auto& ranks : layout) {
      step.ranks = ranks;
      for (const std::uint32_t rank : ranks) node_of_[rank] = nodes_.size();
      nodes_.emplace_back().server = std::make_unique<Server>(step);
    }
  }

  Server& of(std::uint32_t rank) { return *nodes_[node_of_.at(rank)].server; }
  void send(std::uint32_t rank, std::string_view bytes) {
    of(rank).received(rank, bytes);
    run();
  }
  /// What the task has got since the last call.
  std::string got(std::uint32_t rank) { return std::exchange(inbox_[rank], {}); }
  std::string ask(std::uint32_t rank, std::string_view bytes) {
    send(rank, bytes);
    return got(rank);
  }
  void close(std::uint32_t rank) {
    of(rank).closed(rank);
    run();
  }
  void init(std::uint32_t rank) { ask(rank, "cmd=init pmi_version=1 pmi_subversion=1\n"); }
  void init2(std::uint32_t rank) {
    ask(rank, "cmd=init pmi_version=2 pmi_subversion=0\n" + framed("cmd=fullinit;"));
  }

  /// Carries out what is to be done until nothing is.
  void run() {
    for (bool again = true; again;) {
      again = false;
      for (Node& node : nodes_) {
        for (Event& event : node.server->take()) {
          again = true;
          if (auto* answer = std::get_if<Answer>(&event)) {
            inbox_[answer->rank] += answer->bytes;
          } else if (auto* part = std::get_if<Contribution>(&event)) {
            node.parts[part->number] = std::move(part->bytes);
          } else if (std::holds_alternative<Departed>(event)) {
            node.departed = true;
          } else {
            events.push_back(std::move(event));
          }
        }
      }
      again = merge() || again;
    }
  }

  std::vector<Event> events;
  std::uint64_t fences = 0;  // that are over

 private:
  struct Node {
    std::unique_ptr<Server> server;
    std::map<std::uint64_t, std::string> parts;
    bool departed = false;
  };

  bool merge() {
    const std::uint64_t number = fences + 1;
    std::string merged;
    bool wanted = false;
    for (const Node& node : nodes_) {
      const auto part = node.parts.find(number);
      if (part == node.parts.end() && !node.departed) return false;
      if (part != node.parts.end()) merged.insert(0, part->second);  // any order will do
      wanted = wanted || part != node.parts.end();
    }
    if (!wanted) return false;
    fences = number;
    for (const Node& node : nodes_) {
      if (node.parts.contains(number) && !node.server->fenced(number, merged)) std::abort();
    }
    return true;
  }

  std::vector<Node> nodes_;
  std::map<std::uint32_t, std::size_t> node_of_;
  std::map<std::uint32_t, std::string> inbox_;
};

}  // namespace berth::pmi
