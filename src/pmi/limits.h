// How much of a task's bytes is believed: what a task sends is bounded here, once.
#pragma once

#include <cstddef>

namespace berth::pmi {

/// What PMI-1 tells its clients (get_maxes). Clients read lines into 1024 bytes and PMI-2 clients
/// refuse longer values, so more would only be promised.
inline constexpr std::size_t kToldName = 256;
inline constexpr std::size_t kToldKey = 64;
inline constexpr std::size_t kToldValue = 1024;

/// The longest line of PMI-1 and the longest message of PMI-2; clients stop at 64 KiB.
inline constexpr std::size_t kMaxMessage = 128 * 1024;
inline constexpr std::size_t kMaxKey = 1024;
inline constexpr std::size_t kMaxValue = 64 * 1024;
/// All that the tasks of a node have put and that no fence has taken yet, with the node's
/// attributes: a contribution fits into one frame of the launch tree.
inline constexpr std::size_t kMaxHeld = std::size_t{32} * 1024 * 1024;
/// All keys of the step after its fences.
inline constexpr std::size_t kMaxShared = std::size_t{256} * 1024 * 1024;
/// One request to start programs: all its lines, and how many programs.
inline constexpr std::size_t kMaxSpawnBytes = std::size_t{1024} * 1024;
inline constexpr std::size_t kMaxSpawnCommands = 1024;
/// Requests of one task that wait for an answer.
inline constexpr std::size_t kMaxOutstanding = 1024;

}  // namespace berth::pmi
