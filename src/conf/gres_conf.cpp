// Reading gres.conf.
#include "conf/gres_conf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "conf/keys.h"
#include "conf/slurm_lines.h"
#include "conf/values.h"
#include "text/cpumask.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::conf {
namespace {

constexpr std::array<std::string_view, 10> kFlags = {
    "CountOnly",      "explicit",    "one_sharing",   "all_sharing", "env_uuid",
    "nvidia_gpu_env", "amd_gpu_env", "intel_gpu_env", "opencl_env",  "no_gpu_env"};
/// Those that say which variables tell jobs of the GPUs; the last one excludes the others.
constexpr std::array<std::string_view, 5> kVariableFlags = {
    "nvidia_gpu_env", "amd_gpu_env", "intel_gpu_env", "opencl_env", "no_gpu_env"};
constexpr std::string_view kByUuid = "env_uuid";
constexpr std::array<std::string_view, 7> kAutoDetect = {"nvml", "nvidia", "rsmi", "oneapi",
                                                         "nrt",  "full",   "off"};

class GresReader {
 public:
  GresReader(GresConf& out, Complaints& complaints) : out_(out), complaints_(complaints) {}

  void line(const Line& line) {
    warn_of_repeats(line.pairs, complaints_);
    GresLine out;
    out.at = line.pairs.front().at;
    for (const Pair& pair : line.pairs) {
      if (used_key(gres_keys(), pair, "gres.conf", complaints_) != nullptr) apply(pair, out);
    }
    if (!out.nodes && ++global_lines_ > kMaxGlobalGresLines) {
      complaints_.error(out.at,
                        fmt::format("more than {} lines without NodeName=", kMaxGlobalGresLines));
    }
    if (out_.lines.size() == kMaxGresLines) {
      complaints_.error(out.at, fmt::format("more than {} lines", kMaxGresLines));
    }
    if (!complaints_.failed()) check(out);
    if (!complaints_.failed()) inherit_variables(out);
    if (!complaints_.failed()) out_.lines.push_back(std::move(out));
  }

 private:
  void apply(const Pair& pair, GresLine& line) {
    if (is(pair, "NodeName")) nodes(pair, line);
    if (is(pair, "Name")) line.name = pair.value;
    if (is(pair, "Type")) line.type = pair.value;
    if (is(pair, "File") || is(pair, "MultipleFiles")) files(pair, line);
    if (is(pair, "Count")) count(pair, line);
    if (is(pair, "Cores") || is(pair, "CPUs")) cores(pair, line);
    if (is(pair, "Links") || is(pair, "Link")) links(pair, line);
    if (is(pair, "Flags")) {
      if (auto given = some_of(pair, kFlags, complaints_)) flags(*given, line);
    }
    if (is(pair, "AutoDetect")) put(line.autodetect, one_of(pair, kAutoDetect, complaints_));
  }

  void nodes(const Pair& pair, GresLine& line) {
    if (total_nodes_ > kMaxGresNodes) return;  // said already
    auto names = text::expand_hostlist(pair.value);
    if (!names) {
      complaints_.error(pair.at, names.error().what());
      return;
    }
    total_nodes_ += names->size();
    if (total_nodes_ > kMaxGresNodes) {
      complaints_.error(pair.at, "the NodeName= of gres.conf name too many nodes in all");
      return;
    }
    line.nodes = std::move(*names);
  }

  void files(const Pair& pair, GresLine& line) {
    auto names = text::expand_hostlist(pair.value);
    if (!names || names->empty()) {
      complaints_.error(pair.at, fmt::format("{}={}: allowed are paths like /dev/nvidia0 or "
                                             "/dev/nvidia[0-3]",
                                             pair.key, shown(pair.value)));
      return;
    }
    total_files_ += names->size();
    if (names->size() > kMaxFilesPerLine || total_files_ > kMaxGresFiles) {
      complaints_.error(pair.at, fmt::format("{}= names more than {} files", pair.key,
                                             names->size() > kMaxFilesPerLine ? kMaxFilesPerLine
                                                                              : kMaxGresFiles));
      return;
    }
    if (!line.files.empty()) {
      complaints_.error(pair.at, "File= and MultipleFiles= exclude each other");
      return;
    }
    line.files = std::move(*names);
    line.one_device = is(pair, "MultipleFiles");
  }

  void count(const Pair& pair, GresLine& line) {
    // The grammar of counts (K … P) is that of resource lists.
    const auto item = text::parse_node_gres("x:" + pair.value);
    if (!item || item->size() != 1 || !item->front().type.empty() || pair.value.empty()) {
      complaints_.error(pair.at, fmt::format("Count={}: allowed is a whole number, with K, M, G, T "
                                             "or P if wanted",
                                             shown(pair.value)));
      return;
    }
    line.count = Located<std::uint64_t>{item->front().count, pair.at};
  }

  void cores(const Pair& pair, GresLine& line) {
    const auto set = text::parse_id_set(pair.value);
    if (!set) {
      complaints_.error(pair.at, fmt::format("{}={}: allowed is a list of core numbers like 0-7,16",
                                             pair.key, shown(pair.value)));
      return;
    }
    line.cores = Located<Bits>{*set, pair.at};
  }

  void links(const Pair& pair, GresLine& line) {
    Located<std::vector<int>> out{{}, pair.at};
    for (const std::string& word : word_list(pair).value) {
      const bool self = word == "-1";
      const auto number = text::parse_number(word, 1000000);
      if ((!self && !number) || out.value.size() == kMaxFilesPerLine) {
        complaints_.error(pair.at,
                          fmt::format("Links={}: allowed is a number for each device, -1 for "
                                      "the device itself, like -1,4,0,0",
                                      shown(pair.value)));
        return;
      }
      out.value.push_back(self ? -1 : static_cast<int>(*number));
    }
    if (!out.value.empty()) line.links = std::move(out);
  }

  void flags(const Located<std::vector<std::string>>& given, GresLine& line) {
    line.flags = given.value;
    const auto named = std::ranges::count_if(
        kVariableFlags, [&](std::string_view flag) { return line.has_flag(flag); });
    if (line.has_flag("no_gpu_env") && named > 1) {
      complaints_.error(given.at, "Flags=no_gpu_env excludes the other flags of variables");
    }
    if (line.has_flag("one_sharing") && line.has_flag("all_sharing")) {
      complaints_.error(given.at, "Flags=one_sharing and all_sharing exclude each other");
    }
  }

  /// Of the line directly above, when that is about the same.
  void inherit_variables(GresLine& line) const {
    if (line.name != "gpu" || out_.lines.empty()) return;
    if (line.names_variables() || line.has_flag(kByUuid)) return;
    const GresLine& above = out_.lines.back();
    if (above.name != line.name || above.type != line.type || above.nodes != line.nodes) return;
    for (const std::string_view flag : kVariableFlags) {
      if (above.has_flag(flag)) line.flags.emplace_back(flag);
    }
    if (above.has_flag(kByUuid)) line.flags.emplace_back(kByUuid);
  }

  /// A flag that means nothing for such a resource.
  void warn_of_flags(const GresLine& line) {
    const bool shared = line.name == "shard" || line.name == "mps";
    for (const std::string& flag : line.flags) {
      const bool sharing = flag == "one_sharing" || flag == "all_sharing";
      const bool general = flag == "CountOnly" || flag == "explicit";
      if (general || (sharing ? shared : line.name == "gpu")) continue;
      complaints_.unused(line.at, fmt::format("Flags={} of {}", flag, line.name));
    }
  }

  void check(const GresLine& line) {
    if (line.name.empty() && !line.autodetect) {
      complaints_.error(line.at, "the line has no Name= (and no AutoDetect=)");
    }
    const std::size_t devices = line.one_device ? 1 : line.files.size();
    if (line.links && devices > 1) {
      complaints_.error(line.links->at,
                        fmt::format("Links= describes one device, this line has {}; "
                                    "write one line for each File",
                                    devices));
    }
    warn_of_flags(line);
    const bool shared = text::is_part_of_gpu(line.name);
    if (!shared && line.count && devices > 0 && line.count->value != devices) {
      complaints_.error(line.count->at,
                        fmt::format("Count={} but File= names {}; leave Count= away",
                                    line.count->value, devices));
    }
  }

  GresConf& out_;
  Complaints& complaints_;
  std::size_t total_nodes_ = 0;
  std::size_t total_files_ = 0;
  std::size_t global_lines_ = 0;
};

}  // namespace

std::uint64_t GresLine::amount() const {
  if (!files.empty()) return one_device ? 1 : files.size();
  return count ? count->value : 1;
}

bool GresLine::has_flag(std::string_view flag) const {
  return std::ranges::find(flags, flag) != flags.end();
}

bool GresLine::names_variables() const {
  return std::ranges::any_of(kVariableFlags, [&](std::string_view flag) { return has_flag(flag); });
}

const Located<std::string>* autodetect_of(std::span<const GresLine* const> lines) {
  const Located<std::string>* for_all = nullptr;
  const Located<std::string>* own = nullptr;
  for (const GresLine* line : lines) {
    if (line->autodetect) (line->nodes ? own : for_all) = &*line->autodetect;
  }
  return own != nullptr ? own : for_all;
}

std::optional<GresConf> read_gres_conf(const FileSource& source, std::string_view cluster_name,
                                       Complaints& complaints, std::string_view name) {
  GresConf out;
  GresReader reader(out, complaints);
  const bool found = read_lines(source, name, cluster_name, complaints,
                                [&](const Line& line) { reader.line(line); });
  if (!found) return std::nullopt;
  return out;
}

}  // namespace berth::conf
