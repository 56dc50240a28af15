// What mapping.h promises.
#include "pmi/mapping.h"

#include <fmt/format.h>

#include <optional>

namespace berth::pmi {
namespace {

struct Block {
  std::uint32_t first = 0;
  std::uint32_t nodes = 0;
  std::uint32_t ranks = 0;  // of each node
};

/// The node of each rank, nodes without ranks left out; nullopt when a rank is missing or there
/// twice.
std::optional<std::vector<std::uint32_t>> node_of_ranks(
    std::span<const std::vector<std::uint32_t>> ranks_of_node) {
  std::size_t size = 0;
  for (const auto& ranks : ranks_of_node) size += ranks.size();
  std::vector<std::optional<std::uint32_t>> seen(size);
  std::uint32_t node = 0;
  for (const auto& ranks : ranks_of_node) {
    for (const std::uint32_t rank : ranks) {
      if (rank >= size || seen[rank]) return std::nullopt;
      seen[rank] = node;
    }
    if (!ranks.empty()) ++node;
  }
  std::vector<std::uint32_t> nodes;
  nodes.reserve(size);
  for (const auto& of_rank : seen) nodes.push_back(*of_rank);
  return nodes;
}

/// All ranks, nothing repeated.
std::vector<Block> blocks_of(const std::vector<std::uint32_t>& nodes) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < nodes.size();) {
    std::uint32_t run = 0;
    while (i + run < nodes.size() && nodes[i + run] == nodes[i]) ++run;
    if (!blocks.empty() && blocks.back().first + blocks.back().nodes == nodes[i] &&
        blocks.back().ranks == run) {
      ++blocks.back().nodes;
    } else {
      blocks.push_back({nodes[i], 1, run});
    }
    i += run;
  }
  return blocks;
}

/// Whether these blocks, again and again, are that layout.
bool repeats(std::span<const Block> blocks, const std::vector<std::uint32_t>& nodes) {
  for (std::size_t rank = 0;;) {
    for (const Block& block : blocks) {
      for (std::uint32_t node = 0; node < block.nodes; ++node) {
        for (std::uint32_t i = 0; i < block.ranks; ++i) {
          if (rank == nodes.size()) return true;
          if (nodes[rank++] != block.first + node) return false;
        }
      }
    }
    if (rank == nodes.size()) return true;
  }
}

}  // namespace

std::string process_mapping(std::span<const std::vector<std::uint32_t>> ranks_of_node) {
  const auto nodes = node_of_ranks(ranks_of_node);
  if (!nodes || nodes->empty()) return {};
  const std::vector<Block> blocks = blocks_of(*nodes);
  std::string text = "(vector";
  for (std::size_t used = 0; used < blocks.size(); ++used) {
    // Libraries begin again at a block of node 0, and only there.
    if (used > 0 && blocks.front().first == 0 && repeats(std::span(blocks).first(used), *nodes)) {
      break;
    }
    const Block& block = blocks[used];
    text += fmt::format(",({},{},{})", block.first, block.nodes, block.ranks);
    if (text.size() >= kMaxMapping) return {};
  }
  return text + ')';
}

std::map<std::string, std::string, std::less<>> task_variables(const std::string& id, int fd,
                                                               std::uint32_t rank,
                                                               std::uint32_t size, bool spawned) {
  std::map<std::string, std::string, std::less<>> variables = {
      {"PMI_FD", fmt::to_string(fd)},
      {"PMI_JOBID", id},
      {"PMI_RANK", fmt::to_string(rank)},
      {"PMI_SIZE", fmt::to_string(size)},
  };
  if (spawned) variables["PMI_SPAWNED"] = "1";
  return variables;
}

}  // namespace berth::pmi
