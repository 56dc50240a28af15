// gres.conf as typed values: the devices of nodes, line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bits.h"
#include "conf/complaints.h"
#include "conf/source.h"

namespace berth::conf {

inline constexpr std::size_t kMaxFilesPerLine = 1024;
// Bounds of all lines together.
inline constexpr std::size_t kMaxGresFiles = std::size_t{1} << 20;
inline constexpr std::size_t kMaxGresNodes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxGresLines = 200000;
inline constexpr std::size_t kMaxGlobalGresLines = 256;  // without NodeName=: read for every node

/// One line of gres.conf. A line may have only AutoDetect=.
struct GresLine {
  Location at;
  std::optional<std::vector<std::string>> nodes;  // unset = every node
  std::string name;                               // "" on a line of AutoDetect= only
  std::string type;
  std::vector<std::string> files;  // expanded
  bool one_device = false;         // MultipleFiles=: all files are one device
  std::optional<Located<std::uint64_t>> count;
  std::optional<Located<Bits>> cores;
  std::optional<Located<std::vector<int>>> links;
  std::vector<std::string> flags;                  // in the spelling of the manual
  std::optional<Located<std::string>> autodetect;  // lower case

  /// How many devices (with files) or units (without) the line describes.
  [[nodiscard]] std::uint64_t amount() const;
  [[nodiscard]] bool has_flag(std::string_view flag) const;
  /// Flags= says which variables tell jobs of the GPUs.
  [[nodiscard]] bool names_variables() const;
};

struct GresConf {
  std::vector<GresLine> lines;
};

/// AutoDetect= for a node: of a line that names it, else of one for all; nullptr = there is none.
/// `lines`: those that are for the node.
const Located<std::string>* autodetect_of(std::span<const GresLine* const> lines);

/// Reads gres.conf; nullopt when there is none.
std::optional<GresConf> read_gres_conf(const FileSource& source, std::string_view cluster_name,
                                       Complaints& complaints, std::string_view name = "gres.conf");

}  // namespace berth::conf
