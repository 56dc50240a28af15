// Options of mpirun, deepspeed and accelerate that decide how many processes there are.
#include "explain/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "lint/launch.h"
#include "text/number.h"

namespace berth::explain {
namespace {

/// The number of --name=N or --name N.
std::optional<std::uint32_t> option(std::span<const std::string> words, std::string_view name) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view value;
    if (words[i] == name && i + 1 < words.size()) {
      value = words[i + 1];
    } else if (words[i].starts_with(name) && words[i].size() > name.size() &&
               words[i][name.size()] == '=') {
      value = std::string_view(words[i]).substr(name.size() + 1);
    } else {
      continue;
    }
    const auto number = text::parse_number(value, kMaxProcesses);
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
  }
  return std::nullopt;
}

bool has_word(std::span<const std::string> words, std::initializer_list<std::string_view> any) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return std::ranges::find(any, word) != any.end(); });
}

bool maps_by_node(std::span<const std::string> words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--map-by" || words[i] == "-map-by") {
      return words[i + 1].starts_with("node");
    }
  }
  return has_word(words, {"--bynode", "-bynode", "--map-by=node"});
}

}  // namespace

MpiLayout mpi_layout(std::span<const std::string> words, const std::vector<std::uint32_t>& slots) {
  MpiLayout layout;
  std::vector<std::uint32_t> room = slots;
  if (const auto per_node = lint::mpirun_per_node(words)) {
    std::ranges::fill(room, std::min(*per_node, kMaxProcesses));
  }
  const std::uint64_t all = std::accumulate(room.begin(), room.end(), std::uint64_t{0});
  const std::uint64_t wanted = lint::mpirun_processes(words).value_or(
      static_cast<std::uint32_t>(std::min<std::uint64_t>(all, kMaxProcesses)));
  const bool more_allowed = has_word(words, {"--oversubscribe", "-oversubscribe"});
  if (wanted > all && !more_allowed) {
    layout.problem = fmt::format(
        "it asks for {} processes and finds {} slot{} (SLURM_TASKS_PER_NODE): Open MPI fails with "
        "\"There are not enough slots available\"",
        wanted, all, all == 1 ? "" : "s");
    return layout;
  }
  if (room.empty()) return layout;
  const std::uint64_t count = std::min<std::uint64_t>(wanted, kMaxProcesses);
  const bool by_node = maps_by_node(words);
  std::vector<std::uint32_t> used(room.size());
  while (layout.node_of_rank.size() < count) {
    bool placed = false;
    for (std::uint32_t node = 0; node < room.size(); ++node) {
      while (used[node] < room[node] && layout.node_of_rank.size() < count) {
        layout.node_of_rank.push_back(node);
        ++used[node];
        placed = true;
        if (by_node) break;
      }
    }
    if (placed) continue;
    for (std::uint32_t& node : room) ++node;  // --oversubscribe: one more round
  }
  return layout;
}

std::optional<std::uint32_t> accelerate_processes(std::span<const std::string> words) {
  const auto all = option(words, "--num_processes");
  if (!all) return std::nullopt;
  return std::max<std::uint32_t>(1,
                                 *all / std::max(1U, option(words, "--num_machines").value_or(1)));
}

std::uint32_t local_processes(std::span<const std::string> words, std::size_t gpus) {
  const auto visible = static_cast<std::uint32_t>(std::clamp<std::size_t>(gpus, 1, kMaxProcesses));
  std::uint32_t count = 1;
  if (const auto torch = lint::read_torch(words)) {
    count = torch->processes(gpus);
  } else if (script::recognise(words).launcher == script::Launcher::deepspeed) {
    count = option(words, "--num_gpus").value_or(visible);
  } else if (script::recognise(words).launcher == script::Launcher::accelerate) {
    count = option(words, "--num_processes").value_or(visible);
  }
  return std::clamp<std::uint32_t>(count, 1, kMaxProcesses);
}

}  // namespace berth::explain
