// --emulate: a cluster in a few words.
//
//   spec   = group { "," group }
//   group  = ( nodes "x" gpus [ ":" type ] | hostlist ) { ":" key "=" value }
//   key    = cpus | sockets | threads | mem | gpus | features | shards
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "site/devices.h"
#include "site/site.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/size.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::site {
namespace {

constexpr std::string_view kExample = "gpu[1-4]:cpus=16:mem=64G:gpus=a100x4,cpu[1-2]:cpus=32";
constexpr std::uint64_t kMaxCpusPerNode = 4096;
constexpr std::uint64_t kMaxMemoryMb = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxShards = 1000000;
constexpr std::size_t kMaxSpec = 65536;

std::unexpected<Error> bad(std::string_view part, std::string_view why) {
  return fail(Code::bad_value, fmt::format("--emulate: \"{}\": {}", conf::shown(part), why),
              fmt::format("write, for example, --emulate 4x4:a100 (nodes x GPUs) or --emulate '{}'",
                          kExample));
}

struct GpuItem {
  std::string type;
  std::uint32_t count = 0;
};

/// One group of equal nodes while it is read.
struct Group {
  std::vector<std::string> names;
  std::uint32_t cpus = 16;
  std::optional<std::uint32_t> sockets;
  std::uint32_t threads = 1;
  std::uint64_t memory_mb = 65536;
  std::vector<GpuItem> gpus;
  std::vector<std::string> features;
  std::uint64_t shards = 0;
};

/// Parts of `s` between separators that stand outside brackets.
std::vector<std::string_view> outside_brackets(std::string_view s, char separator) {
  std::vector<std::string_view> out;
  std::size_t start = 0;
  bool inside = false;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '[') inside = true;
    if (s[i] == ']') inside = false;
    if (s[i] != separator || inside) continue;
    out.push_back(s.substr(start, i - start));
    start = i + 1;
  }
  out.push_back(s.substr(start));
  return out;
}

std::optional<std::uint32_t> small(std::string_view s, std::uint64_t min, std::uint64_t max) {
  const auto number = text::parse_number(s, max);
  if (!number || *number < min) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

/// "4", "a100x4", "a100x2+v100x2".
Result<std::vector<GpuItem>> parse_gpus(std::string_view value) {
  std::vector<GpuItem> out;
  std::uint64_t total = 0;
  for (const std::string_view item : text::split(value, '+')) {
    const std::size_t x = item.rfind('x');
    const bool typed = x != std::string_view::npos;
    const auto count = small(typed ? item.substr(x + 1) : item, 0, kMaxGpusPerNode);
    if (!count || (typed && x == 0)) {
      return bad(item,
                 fmt::format("GPUs are given as a number or TYPExNUMBER (a100x4), at most {} a "
                             "node",
                             kMaxGpusPerNode));
    }
    total += *count;
    out.push_back({std::string(typed ? item.substr(0, x) : ""), *count});
  }
  if (total > kMaxGpusPerNode) {
    return bad(value,
               fmt::format("{} GPUs a node; at most {} are allowed", total, kMaxGpusPerNode));
  }
  const bool any_untyped =
      std::ranges::any_of(out, [](const GpuItem& g) { return g.type.empty(); });
  if (out.size() > 1 && any_untyped)
    return bad(value, "give a type to all GPUs of a node, or to none");
  return out;
}

Result<void> apply_key(std::string_view part, Group& group) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return bad(part, "expected key=value");
  const std::string_view key = part.substr(0, equals);
  const std::string_view value = part.substr(equals + 1);
  if (key == "cpus" || key == "sockets" || key == "threads") {
    const std::uint64_t max = key == "threads" ? 64 : kMaxCpusPerNode;
    const auto number = small(value, 1, max);
    if (!number) return bad(part, fmt::format("allowed is a number from 1 to {}", max));
    if (key == "cpus") group.cpus = *number;
    if (key == "sockets") group.sockets = *number;
    if (key == "threads") group.threads = *number;
  } else if (key == "mem") {
    const auto mb = text::parse_size_mb(value);
    if (!mb || *mb == 0 || *mb > kMaxMemoryMb) return bad(part, "allowed is a size like 64G");
    group.memory_mb = *mb;
  } else if (key == "gpus") {
    auto gpus = parse_gpus(value);
    if (!gpus) return pass(std::move(gpus.error()));
    group.gpus = std::move(*gpus);
  } else if (key == "features") {
    for (const std::string_view feature : text::split(value, '+')) {
      if (feature.empty()) return bad(part, "a feature has no name");
      group.features.emplace_back(feature);
    }
  } else if (key == "shards") {
    const auto number = text::parse_number(value, kMaxShards);
    if (!number) return bad(part, fmt::format("allowed is a number up to {}", kMaxShards));
    group.shards = *number;
  } else {
    const std::vector<std::string> known = {"cpus", "sockets",  "threads", "mem",
                                            "gpus", "features", "shards"};
    const std::string near = text::nearest(key, known);
    return bad(part, near.empty() ? "keys are cpus, sockets, threads, mem, gpus, features, shards"
                                  : fmt::format("did you mean {}=?", near));
  }
  return {};
}

/// "4x4": sets names (numbered on from `numbered`) and GPUs. False when it is not of this form.
Result<bool> apply_product(std::string_view head, Group& group, std::uint64_t& numbered) {
  const std::size_t x = head.find('x');
  if (x == std::string_view::npos) return false;
  const bool digits = head.find_first_not_of("0123456789x") == std::string_view::npos;
  if (!digits || x == 0 || head.find('x', x + 1) != std::string_view::npos) return false;
  const auto nodes = small(head.substr(0, x), 1, text::kMaxHosts);
  const auto gpus = small(head.substr(x + 1), 0, kMaxGpusPerNode);
  if (!nodes || numbered + *nodes > text::kMaxHosts) {
    return bad(head, fmt::format("allowed are 1 to {} nodes", text::kMaxHosts));
  }
  if (!gpus) return bad(head, fmt::format("allowed are 0 to {} GPUs a node", kMaxGpusPerNode));
  for (std::uint32_t i = 0; i < *nodes; ++i)
    group.names.push_back(fmt::format("node{}", ++numbered));
  if (*gpus > 0) group.gpus.push_back({"", *gpus});
  return true;
}

Result<Group> parse_group(std::string_view text, std::uint64_t& numbered) {
  Group group;
  std::vector<std::string_view> parts = outside_brackets(text, ':');
  const auto product = apply_product(parts[0], group, numbered);
  if (!product) return pass(product.error());
  std::size_t next = 1;
  if (*product) {
    if (parts.size() > 1 && parts[1].find('=') == std::string_view::npos) {
      if (parts[1].empty()) return bad(text, "the GPU type after ':' is empty");
      if (group.gpus.empty()) return bad(text, "a GPU type, but no GPUs");
      group.gpus.front().type = parts[1];
      next = 2;
    }
  } else {
    auto names = text::expand_hostlist(parts[0]);
    if (!names) return bad(parts[0], names.error().what());
    if (names->empty()) return bad(text, "a group of nodes has no name");
    group.names = std::move(*names);
  }
  for (; next < parts.size(); ++next) {
    if (auto done = apply_key(parts[next], group); !done) return pass(std::move(done.error()));
  }
  return group;
}

/// The GPUs of a node: the first ones near socket 0, the last ones near the last socket.
cluster::Gres emulated_gpus(const Group& group, std::uint32_t sockets) {
  cluster::Gres out;
  out.name = "gpu";
  for (const GpuItem& item : group.gpus) {
    for (std::uint32_t i = 0; i < item.count; ++i) {
      cluster::Device device;
      device.type = item.type;
      out.devices.push_back(std::move(device));
    }
  }
  const std::size_t count = out.devices.size();
  int record = -1;
  for (std::size_t i = 0; i < count; ++i) {
    cluster::Device& device = out.devices[i];
    device.sockets.set(i * sockets / count);
    device.file = fmt::format("/dev/nvidia{}", i);
    const bool as_before = i > 0 && out.devices[i - 1].type == device.type &&
                           out.devices[i - 1].sockets == device.sockets;
    if (!as_before) ++record;
    device.record = record;
  }
  return out;
}

Result<cluster::Node> emulated_node(const Group& group, std::string_view text) {
  cluster::Node node;
  node.threads_per_core = group.threads;
  if (group.cpus % group.threads != 0) {
    return bad(text,
               fmt::format("{} CPUs cannot be cores of {} threads", group.cpus, group.threads));
  }
  const std::uint32_t cores = group.cpus / group.threads;
  node.sockets = group.sockets.value_or(cores % 2 == 0 ? 2 : 1);
  if (cores % node.sockets != 0) {
    return bad(text,
               fmt::format("{} cores cannot be shared evenly by {} sockets", cores, node.sockets));
  }
  node.cores_per_socket = cores / node.sockets;
  node.memory_mb = group.memory_mb;
  node.features = group.features;
  cluster::Gres gpus = emulated_gpus(group, node.sockets);
  if (group.shards > 0 && gpus.devices.empty()) {
    return bad(text, "shards are parts of GPUs, and there are none: add gpus=1");
  }
  if (!gpus.devices.empty()) node.gres.push_back(gpus);
  if (group.shards > 0) node.gres.push_back(shared_over_gpus("shard", group.shards, gpus));
  const auto known = [](const cluster::Device& gpu) { return gpu.known_memory_mb() > 0; };
  if (std::ranges::any_of(gpus.devices, known)) cluster::add_gpu_memory(node);
  return node;
}

void fill_settings(cluster::Cluster& cluster) {
  cluster::Partition partition;
  partition.name = "main";
  partition.is_default = true;
  std::set<std::string> kinds;
  for (cluster::NodeIndex i = 0; i < cluster.nodes.size(); ++i) {
    const cluster::Node& node = cluster.nodes[i];
    partition.nodes.push_back(i);
    for (const cluster::Gres& gres : node.gres) kinds.insert(gres.name);
    const std::uint64_t share = std::max<std::uint64_t>(1, node.memory_mb / node.cpus());
    auto& least = cluster.settings.def_mem_per_cpu_mb;
    least = std::min(least.value_or(share), share);
  }
  cluster.settings.gres_types.assign(kinds.begin(), kinds.end());
  cluster.partitions.push_back(std::move(partition));
}

}  // namespace

Result<Site> from_emulate_spec(std::string_view spec) {
  if (spec.size() > kMaxSpec) return bad(spec, "the text is too long");
  Site site;
  site.cluster.name = "emulated";
  std::set<std::string> names;
  std::uint64_t numbered = 0;
  std::size_t devices = 0;
  for (const std::string_view text : outside_brackets(spec, ',')) {
    auto group = parse_group(text, numbered);
    if (!group) return pass(std::move(group.error()));
    auto node = emulated_node(*group, text);
    if (!node) return pass(std::move(node.error()));
    for (const std::string& name : group->names) {
      if (!names.insert(name).second) return bad(text, fmt::format("node {} is named twice", name));
      if (names.size() > text::kMaxHosts)
        return bad(text, fmt::format("more than {} nodes", text::kMaxHosts));
      for (const cluster::Gres& gres : node->gres) devices += gres.devices.size();
      if (devices > kMaxDevices)
        return bad(text, fmt::format("more than {} GPUs in all", kMaxDevices));
      node->name = name;
      site.cluster.nodes.push_back(*node);
    }
  }
  site.cluster.index_nodes();
  fill_settings(site.cluster);
  return site;
}

}  // namespace berth::site
