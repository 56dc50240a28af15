// Merging Gres= of slurm.conf with the lines of gres.conf.
#include "site/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "site/site.h"
#include "text/tres.h"

namespace berth::site {
namespace {

using conf::GresLine;

/// "gpu:a100" or "gpu".
std::string full_name(std::string_view name, std::string_view type) {
  return type.empty() ? std::string(name) : fmt::format("{}:{}", name, type);
}

class Merger {
 public:
  Merger(const conf::NodeLine& line, const cluster::Node& shape,
         std::span<const GresLine* const> lines, bool has_gres_conf, std::string_view node_name,
         conf::Complaints& complaints)
      : line_(line),
        shape_(shape),
        lines_(lines),
        has_gres_conf_(has_gres_conf),
        node_name_(node_name),
        complaints_(complaints) {}

  Devices merge() {
    Devices out;
    if (line_.gres) {
      for (const text::TresItem& item : line_.gres->value) {
        const bool seen =
            std::ranges::find(out.gres, item.name, &cluster::Gres::name) != out.gres.end();
        if (!seen && !text::is_part_of_gpu(item.name)) out.gres.push_back(plain(item.name));
        if (item.no_consume) {
          complaints_.warn_once(
              line_.gres->at, "no_consume",
              fmt::format("{}: no_consume is not planned for; it is counted as used", item.name));
        }
      }
      for (const text::TresItem& item : line_.gres->value) {
        if (text::is_part_of_gpu(item.name)) shared(item, out.gres);
      }
    }
    warn_of_undeclared();
    note_unknown(out);
    return out;
  }

 private:
  [[nodiscard]] std::vector<const GresLine*> lines_of(std::string_view name) const {
    std::vector<const GresLine*> out;
    std::ranges::copy_if(lines_, std::back_inserter(out),
                         [&](const GresLine* line) { return line->name == name; });
    return out;
  }

  [[nodiscard]] std::vector<const text::TresItem*> items_of(std::string_view name) const {
    std::vector<const text::TresItem*> out;
    for (const text::TresItem& item : line_.gres->value) {
      if (item.name == name) out.push_back(&item);
    }
    return out;
  }

  /// gpu, nic and everything else that is not a share of a GPU.
  cluster::Gres plain(const std::string& name) {
    cluster::Gres gres;
    gres.name = name;
    const auto lines = lines_of(name);
    const bool has_files = std::ranges::any_of(
        lines, [](const GresLine* l) { return !l->files.empty() && !l->has_flag("CountOnly"); });
    gres.given_explicitly =
        std::ranges::any_of(lines, [](const GresLine* l) { return l->has_flag("explicit"); });
    gres.counted = name != "gpu" && !has_files;
    if (name == "gpu") check_variables(lines);
    if (gres.counted) {
      count_only(gres, lines);
    } else {
      individually(gres, lines);
    }
    return gres;
  }

  /// A pool: units without indices, one entry for each type.
  void count_only(cluster::Gres& gres, const std::vector<const GresLine*>& lines) {
    std::uint64_t described = 0;
    for (const GresLine* line : lines) described += line->amount();
    std::uint64_t wanted = 0;
    for (const text::TresItem* item : items_of(gres.name)) {
      wanted += item->count;
      cluster::Device pool;
      pool.type = item->type;
      pool.units = item->count;
      pool.record = static_cast<int>(gres.devices.size());
      gres.devices.push_back(std::move(pool));
    }
    if (!lines.empty() && described != wanted) mismatch(gres.name, "", wanted, described);
  }

  void individually(cluster::Gres& gres, const std::vector<const GresLine*>& lines) {
    std::vector<cluster::Device> described = described_devices(lines);
    const auto items = items_of(gres.name);
    const bool typed_lines =
        std::ranges::any_of(described, [](const cluster::Device& d) { return !d.type.empty(); });
    // Lines without Type= describe devices of whatever type slurm.conf counts.
    const bool by_type = typed_lines && !items.front()->type.empty();
    std::uint64_t total = 0;
    int record = static_cast<int>(lines.size());
    for (const text::TresItem* item : items) {
      total += std::min<std::uint64_t>(item->count, kMaxGpusPerNode + 1);
      if (total > kMaxGpusPerNode) {
        complaints_.error(
            line_.gres->at,
            fmt::format("{}:{} is more than the {} devices a node may "
                        "have",
                        full_name(item->name, item->type), item->count, kMaxGpusPerNode));
        return;
      }
      const std::uint64_t found = claim(*item, by_type, described, record++);
      if (by_type && found != item->count) mismatch(item->name, item->type, item->count, found);
    }
    if (!lines.empty() && !by_type && total != described.size()) {
      mismatch(gres.name, "", total, described.size());
    }
    for (cluster::Device& device : described) {
      if (device.units != 0) continue;
      device.units = 1;
      gres.devices.push_back(std::move(device));
    }
    for (const auto& [type, of_record] : extra_) {
      cluster::Device device;
      device.type = type;
      device.record = of_record;
      device.variables = found_variables();
      gres.devices.push_back(std::move(device));
    }
    extra_.clear();
    fit_links(gres);
  }

  /// Marks (by zero units) the described devices that the item counts, and remembers those it
  /// counts beyond them. How many were there to be claimed.
  std::uint64_t claim(const text::TresItem& item, bool by_type,
                      std::vector<cluster::Device>& described, int record) {
    std::uint64_t found = 0;
    std::uint64_t claimed = 0;
    for (cluster::Device& device : described) {
      if (device.units == 0 || (by_type && device.type != item.type)) continue;
      ++found;
      if (claimed == item.count) continue;
      if (device.type.empty()) device.type = item.type;
      device.units = 0;
      ++claimed;
    }
    for (; claimed < item.count; ++claimed) extra_.push_back({item.type, record});
    return found;
  }

  /// The devices that gres.conf describes, in its order.
  std::vector<cluster::Device> described_devices(const std::vector<const GresLine*>& lines) {
    std::vector<cluster::Device> out;
    for (std::size_t record = 0; record < lines.size(); ++record) {
      const GresLine& line = *lines[record];
      cluster::Device device;
      device.type = line.type;
      device.record = static_cast<int>(record);
      device.variables = variables_of(line);
      if (line.cores) device.sockets = sockets_of(line);
      if (line.links) device.links = line.links->value;
      const std::uint64_t amount = std::min<std::uint64_t>(line.amount(), kMaxGpusPerNode + 1);
      for (std::uint64_t i = 0; i < amount && out.size() <= kMaxGpusPerNode; ++i) {
        if (!line.files.empty()) device.file = line.files[line.one_device ? 0 : i];
        if (line.one_device && line.files.size() > 1) {
          device.other_files.assign(line.files.begin() + 1, line.files.end());
        }
        out.push_back(device);
      }
    }
    return out;
  }

  /// Those of Flags=, else of what AutoDetect= finds, else all.
  [[nodiscard]] cluster::GpuVariables variables_of(const GresLine& line) const {
    cluster::GpuVariables out = found_variables();
    if (line.names_variables()) {
      out = {};
      out.cuda = line.has_flag("nvidia_gpu_env");
      out.rocr = line.has_flag("amd_gpu_env");
      out.level_zero = line.has_flag("intel_gpu_env");
      out.opencl = line.has_flag("opencl_env");
    }
    out.by_uuid = line.has_flag("env_uuid");
    return out;
  }

  [[nodiscard]] cluster::GpuVariables found_variables() const {
    cluster::GpuVariables out;
    const auto* method = conf::autodetect_of(lines_);
    if (method == nullptr) return out;
    if (method->value == "nvml" || method->value == "nvidia") out.only("nvidia");
    if (method->value == "rsmi") out.only("amd");
    if (method->value == "oneapi") out.only("intel");
    out.of_vendor = method->value == "full";
    return out;
  }

  /// Of GPUs of one type all lines have to say the same.
  void check_variables(const std::vector<const GresLine*>& lines) {
    std::map<std::string_view, const GresLine*> first;
    for (const GresLine* line : lines) {
      const GresLine* same = first.emplace(line->type, line).first->second;
      if (variables_of(*line) == variables_of(*same)) continue;
      complaints_.error(
          line->at, fmt::format("Flags= of {} differ from those of {} for node {}; what jobs "
                                "are told of GPUs of one type must be the same",
                                full_name(line->name, line->type), shown(same->at), node_name_));
      return;
    }
  }

  /// Cores= as sockets. Slurm wants whole sockets.
  Bits sockets_of(const GresLine& line) {
    const Bits& cores = line.cores->value;
    Bits sockets;
    if (cores.empty()) return sockets;
    if (cores.last() >= shape_.cores()) {
      complaints_.error(
          line.cores->at,
          fmt::format("Cores={} but node {} has cores 0-{} ({} sockets x {} cores)", cores.ranges(),
                      node_name_, shape_.cores() - 1, shape_.sockets, shape_.cores_per_socket));
      return sockets;
    }
    Bits whole;
    cores.each([&](std::size_t core) { sockets.set(shape_.socket_of(core)); });
    sockets.each([&](std::size_t socket) {
      whole |=
          Bits::range(socket * shape_.cores_per_socket, (socket + 1) * shape_.cores_per_socket - 1);
    });
    if (!(whole == cores)) {
      complaints_.warn_once(
          line.cores->at, fmt::format("cores {}", shown(line.cores->at)),
          fmt::format("Cores={} is only a part of socket {} of node {}; Slurm wants whole sockets, "
                      "write Cores={} (planned as if it said so)",
                      cores.ranges(), sockets.ranges(), node_name_, whole.ranges()));
    }
    return sockets;
  }

  /// Links are kept only when each device has one number for every device of gres.conf.
  void fit_links(cluster::Gres& gres) {
    const std::size_t count = gres.devices.size();
    bool bad = false;
    for (cluster::Device& device : gres.devices) {
      if (device.links.empty()) continue;
      bad = bad || device.links.size() < count;
      device.links.resize(std::min(device.links.size(), count));
    }
    if (!bad) return;
    for (const GresLine* line : lines_of(gres.name)) {
      if (!line->links) continue;
      complaints_.warn_once(line->links->at, fmt::format("links {}", shown(line->links->at)),
                            fmt::format("Links= has {} numbers, node {} has {} devices; links are "
                                        "taken as not known",
                                        line->links->value.size(), node_name_, count));
      break;
    }
    for (cluster::Device& device : gres.devices) device.links.clear();
  }

  /// shard and mps.
  void shared(const text::TresItem& item, std::vector<cluster::Gres>& all) {
    const auto gpus = std::ranges::find(all, "gpu", &cluster::Gres::name);
    if (gpus == all.end() || gpus->devices.empty()) {
      complaints_.error(
          line_.gres->at,
          fmt::format("Gres={}:{} needs GPUs to share: add gpu:<count>", item.name, item.count));
      return;
    }
    if (std::ranges::find(all, item.name, &cluster::Gres::name) != all.end()) {
      complaints_.error(line_.gres->at,
                        fmt::format("{} is given twice; give it once, for all GPUs of "
                                    "the node together",
                                    item.name));
      return;
    }
    cluster::Gres gres = shared_over_gpus(item.name, item.count, *gpus);
    const auto lines = lines_of(item.name);
    gres.given_explicitly =
        std::ranges::any_of(lines, [](const GresLine* l) { return l->has_flag("explicit"); });
    for (const GresLine* line : lines) {
      if (line->has_flag("all_sharing")) gres.one_sharing = false;
      if (line->has_flag("one_sharing")) gres.one_sharing = true;
    }
    std::uint64_t described = 0;
    for (const GresLine* line : lines) {
      described += line->count ? line->count->value : item.count;
    }
    if (!lines.empty() && described != item.count) {
      mismatch(item.name, "", item.count, described);
    } else {
      by_file(gres, *gpus, lines);
    }
    all.push_back(std::move(gres));
  }

  /// Lines with File= say how many units that GPU has.
  void by_file(cluster::Gres& gres, const cluster::Gres& gpus,
               const std::vector<const GresLine*>& lines) {
    if (lines.empty() ||
        std::ranges::any_of(lines, [](const GresLine* l) { return l->files.empty(); })) {
      return;
    }
    std::vector<std::uint64_t> units(gres.devices.size(), 0);
    for (const GresLine* line : lines) {
      const std::uint64_t total = line->count ? line->count->value : 0;
      for (std::size_t i = 0; i < line->files.size(); ++i) {
        const auto gpu = std::ranges::find(gpus.devices, line->files[i], &cluster::Device::file);
        if (gpu == gpus.devices.end()) {
          complaints_.error(line->at, fmt::format("File={} is not the file of a GPU of node {}",
                                                  conf::shown(line->files[i]), node_name_));
          return;
        }
        const std::uint64_t files = line->files.size();
        units[static_cast<std::size_t>(gpu - gpus.devices.begin())] +=
            total / files + (i < total % files ? 1 : 0);
      }
    }
    for (std::size_t i = 0; i < units.size(); ++i) gres.devices[i].units = units[i];
  }

  void mismatch(std::string_view name, std::string_view type, std::uint64_t wanted,
                std::uint64_t described) {
    const std::string what = full_name(name, type);
    complaints_.warn(
        line_.gres->at,
        fmt::format("node {} has {}:{}, gres.conf describes {}; planned with {}{}", node_name_,
                    what, wanted, described, wanted,
                    described < wanted && (name == "gpu")
                        ? fmt::format(", {} of them usable from any socket", wanted - described)
                        : ""));
  }

  /// Lines that name the node but describe what slurm.conf does not count there.
  void warn_of_undeclared() {
    for (const GresLine* line : lines_) {
      if (line->name.empty() || !line->nodes) continue;
      if (line_.gres && counts(*line)) continue;
      complaints_.warn_once(
          line->at, fmt::format("undeclared {}", shown(line->at)),
          fmt::format("{} of node {} is not in Gres= of its NodeName line ({}); "
                      "planned without it",
                      full_name(line->name, line->type), node_name_, shown(line_.at)));
    }
  }

  /// True when Gres= counts what the line describes: the name, and the type where both give one.
  [[nodiscard]] bool counts(const GresLine& line) const {
    return std::ranges::any_of(items_of(line.name), [&](const text::TresItem* item) {
      return line.type.empty() || item->type.empty() || item->type == line.type;
    });
  }

  void note_unknown(Devices& out) const {
    const auto gpus = std::ranges::find(out.gres, "gpu", &cluster::Gres::name);
    if (gpus == out.gres.end() || gpus->devices.empty()) return;
    const bool known = std::ranges::any_of(gpus->devices, [](const cluster::Device& d) {
      return d.sockets.any() || !d.links.empty();
    });
    if (known) return;
    for (const GresLine* line : lines_) {
      if (line->autodetect) out.autodetect = line->autodetect->value;
    }
    if (!has_gres_conf_) {
      out.unknown = Unknown::no_gres_conf;
    } else if (!out.autodetect.empty() && out.autodetect != "off") {
      out.unknown = Unknown::autodetect;
    } else if (lines_of("gpu").empty()) {
      out.unknown = Unknown::no_line;
    }
  }

  struct Extra {
    std::string type;
    int record = 0;
  };

  const conf::NodeLine& line_;
  const cluster::Node& shape_;
  std::span<const GresLine* const> lines_;
  bool has_gres_conf_;
  std::string_view node_name_;
  conf::Complaints& complaints_;
  std::vector<Extra> extra_;
};

}  // namespace

Devices node_devices(const conf::NodeLine& line, const cluster::Node& shape,
                     std::span<const conf::GresLine* const> lines, bool has_gres_conf,
                     std::string_view node_name, conf::Complaints& complaints) {
  return Merger(line, shape, lines, has_gres_conf, node_name, complaints).merge();
}

cluster::Gres shared_over_gpus(std::string name, std::uint64_t total, const cluster::Gres& gpus) {
  cluster::Gres out;
  out.name = std::move(name);
  out.shares_gpu = true;
  out.one_sharing = out.name == "mps";
  out.devices = gpus.devices;
  const std::uint64_t count = out.devices.size();
  for (std::uint64_t i = 0; i < count; ++i) {
    out.devices[i].units = total / count + (i < total % count ? 1 : 0);
  }
  return out;
}

}  // namespace berth::site
