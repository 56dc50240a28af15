// What switchboard.h promises.
#include "node/switchboard.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "step/spool.h"

namespace berth::node {

Switchboard::Switchboard(std::string file) : file_(std::move(file)) {
  const auto text = file_.empty() ? std::nullopt : step::read_file(file_);
  if (!text) return;
  // "off n1 0", "on n2 1700000000"
  std::istringstream lines(*text);
  for (std::string word, node; lines >> word >> node;) {
    State state;
    if (!(lines >> state.since)) return;
    state.off = word == "off";
    nodes_[node] = state;
  }
}

void Switchboard::meet(const std::string& node, bool off) {
  nodes_.try_emplace(node, State{off, 0});
}

bool Switchboard::off(const std::string& node) const {
  const auto at = nodes_.find(node);
  return at != nodes_.end() && at->second.off;
}

std::int64_t Switchboard::since(const std::string& node) const {
  const auto at = nodes_.find(node);
  return at == nodes_.end() ? 0 : at->second.since;
}

Result<void> Switchboard::turn(const std::vector<std::string>& nodes, bool on, std::int64_t now) {
  for (const std::string& node : nodes) {
    State& state = nodes_[node];
    if (on && state.off) state.since = now;
    state.off = !on;
  }
  return keep();
}

Result<void> Switchboard::keep() const {
  if (file_.empty()) return {};
  std::string text;
  for (const auto& [node, state] : nodes_) {
    text += fmt::format("{} {} {}\n", state.off ? "off" : "on", node, state.since);
  }
  if (!step::write_file(file_, text, 0600, false)) {
    return fail(Code::io, fmt::format("{}: {}", file_, std::strerror(errno)));
  }
  return {};
}

}  // namespace berth::node
