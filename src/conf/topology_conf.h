// topology.conf and topology.yaml as typed values: the switches or blocks of the network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conf/complaints.h"
#include "conf/source.h"

namespace berth::conf {

inline constexpr std::size_t kMaxNetworkUnits = 65536;
inline constexpr std::size_t kMaxNetworkNodes = std::size_t{1}
                                                << 20;  // named on all lines together

enum class NetworkPlugin { flat, tree, block };

struct SwitchLine {
  Location at;
  std::string name;
  std::vector<std::string> switches;  // expanded; a line has these …
  std::vector<std::string> nodes;     // … or these
  std::uint32_t link_speed = 1;
};

struct BlockLine {
  Location at;
  std::string name;
  std::vector<std::string> nodes;  // expanded
};

struct TopologyConf {
  std::string file;  // where it was read
  std::string name = "default";
  NetworkPlugin plugin = NetworkPlugin::flat;
  std::vector<SwitchLine> switches;  // of a tree: connected without circles, names differ
  std::vector<BlockLine> blocks;     // of blocks: names differ
  /// Ascending; each level is the one before times a power of two. Never empty with blocks.
  std::vector<std::uint32_t> block_sizes;
};

/// Reads topology.yaml, or else topology.conf for the plugin that slurm.conf names; nullopt when
/// the network is flat and no file says more. `plugin_at`: where the plugin is named. Whether the
/// nodes exist is for others to say.
std::optional<TopologyConf> read_topology(const FileSource& source, NetworkPlugin plugin,
                                          const Location& plugin_at, std::string_view cluster_name,
                                          Complaints& complaints);

/// The second half of reading, for both files: what one line cannot see by itself.
void check_topology(TopologyConf& conf, Complaints& complaints);

/// topology.yaml; nullopt when there is none.
std::optional<TopologyConf> read_topology_yaml(const FileSource& source, Complaints& complaints);

}  // namespace berth::conf
