// The names of Slurm's configuration keys, and which of them berth uses.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conf/lines.h"

namespace berth::conf {

enum class Use {
  used,              // read into the typed configuration
  not_used,          // makes no difference to where tasks are placed: named once
  shown,             // likewise, but read for scontrol show config
  used_not_planned,  // read into the typed configuration, and warned about as the next
  not_planned,       // could make a difference that berth does not plan for: warned about by itself
};

struct Key {
  std::string_view name;  // a trailing '*' stands for any ending
  Use use = Use::not_used;
  std::string_view consequence = {};  // for not_planned: what berth does instead
};

std::span<const Key> slurm_keys();      // global keys of slurm.conf
std::span<const Key> node_keys();       // NodeName= lines
std::span<const Key> partition_keys();  // PartitionName= lines
std::span<const Key> down_node_keys();
std::span<const Key> node_set_keys();
std::span<const Key> gres_keys();
std::span<const Key> cgroup_keys();
std::span<const Key> topology_keys();

/// The key of that name (case does not matter), or nullptr.
const Key* find_key(std::span<const Key> keys, std::string_view name);

/// The key a pair names, when berth uses it. Otherwise nullptr, and the complaint has been made:
/// an error with the nearest known key, or that the key is not used. `what` names the kind of line;
/// `also` are words that could stand there as well, which may be the nearest.
const Key* used_key(std::span<const Key> keys, const Pair& pair, std::string_view what,
                    Complaints& complaints, std::span<const std::string_view> also = {});

}  // namespace berth::conf
