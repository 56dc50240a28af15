// Rules about how GPUs are named and whether such GPUs exist: spelling, type, number, shards.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lint/rule.h"
#include "text/number.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::lint {
namespace {

using request::GresAsk;
using request::Opt;
using request::Request;

constexpr std::array<Opt, 4> kGpuCounts = {Opt::gpus, Opt::gpus_per_node, Opt::gpus_per_task,
                                           Opt::gpus_per_socket};

bool is_gpu_count(Opt opt) {
  return std::ranges::find(kGpuCounts, opt) != kGpuCounts.end();
}

/// An item taken apart at ':' and '=': what can be a count and what must be a type.
struct Pieces {
  std::string count = "1";
  std::vector<std::string> words;
};

Pieces take_apart(std::string_view item) {
  Pieces pieces;
  std::string flat(item);
  std::ranges::replace(flat, '=', ':');
  for (const std::string_view piece : text::split(flat, ':')) {
    const std::string_view number = piece.substr(piece.starts_with('-') ? 1 : 0);
    if (text::parse_number(number, UINT32_MAX)) {
      pieces.count = number;
    } else if (!piece.empty()) {
      pieces.words.emplace_back(piece);
    }
  }
  return pieces;
}

/// The known type that the words mean: "tesla","v100" → "tesla_v100"; "" when none is like it.
std::string type_meant(const std::vector<std::string>& words,
                       const std::vector<std::string>& known) {
  if (words.empty()) return {};
  for (const std::string_view glue : {"_", "-", ""}) {
    const std::string joined = fmt::format("{}", fmt::join(words, glue));
    for (const std::string& type : known) {
      if (text::equal_ignoring_case(type, joined)) return type;
    }
  }
  const std::string joined = text::to_lower(fmt::format("{}", fmt::join(words, "_")));
  for (const std::string& type : known) {
    const std::string lower = text::to_lower(type);
    const bool part =
        joined.find(lower) != std::string::npos ||
        (joined.size() > 2 && lower.find(joined) != std::string::npos) ||
        (words.size() > 1 && lower.find(text::to_lower(words.back())) != std::string::npos);
    if (part) return type;
  }
  return text::nearest(joined, known);
}

std::string known_types(const Facts& facts) {
  const auto types = facts.gpu_types();
  return types.empty() ? "This cluster's GPUs have no types."
                       : fmt::format("GPU types here: {}.", fmt::join(types, ", "));
}

/// "gpu:tesla_v100:1" or "tesla_v100:1" for what the pieces mean.
std::string right_item(const Facts& facts, Opt opt, Pieces pieces) {
  std::string type;
  if (opt == Opt::gres && !pieces.words.empty() &&
      text::equal_ignoring_case(pieces.words.front(), "gpus")) {
    pieces.words.front() = "gpu";
  }
  std::erase(pieces.words, "gpu");
  if (!pieces.words.empty()) {
    type = type_meant(pieces.words, facts.gpu_types());
    if (type.empty() && facts.gpu_types().empty() && facts.input.cluster == nullptr) {
      type = fmt::format("{}", fmt::join(pieces.words, "_"));
    }
  }
  const std::string counted = type.empty() ? pieces.count : type + ":" + pieces.count;
  return opt == Opt::gres ? "gpu:" + counted : counted;
}

/// Why an item cannot be read as GPUs; "" when it can.
std::string misspelling(const Facts& facts, Opt opt, const std::string& item) {
  if (opt == Opt::gres) {
    bool none = false;
    const auto items = text::parse_gres(item, none);
    if (!items) return "is not name:type:count";
    if (!none && !items->empty() && items->front().negative) return "has a negative count";
    if (none || items->empty() || facts.input.cluster == nullptr) return {};
    const auto& names = facts.input.cluster->settings.gres_types;
    const std::string& name = items->front().name;
    if (names.empty() || std::ranges::find(names, name) != names.end()) return {};
    const auto types = facts.gpu_types();
    const bool is_type = std::ranges::find(types, name) != types.end();
    if (is_type)
      return fmt::format("names the GPU type {} where the resource \"gpu\" belongs", name);
    if (text::equal_ignoring_case(name, "gpu") || text::equal_ignoring_case(name, "gpus")) {
      return fmt::format("names \"{}\"; the resource is called gpu", name);
    }
    return {};
  }
  const auto items = text::parse_gpus(item);
  if (!items) return "is not type:count";
  const auto types = facts.gpu_types();
  const bool gpu_type = std::ranges::find(types, "gpu") != types.end();
  if (!items->empty() && items->front().type == "gpu" && !gpu_type) {
    return "takes no \"gpu:\", so gpu is read as a type";
  }
  return {};
}

/// A last piece of digits only, which did not fit a count.
bool counts_too_many(std::string_view item) {
  const std::string_view last = item.substr(item.find_last_of(":=") + 1);
  return last.size() > 10 && last.find_first_not_of("0123456789") == std::string_view::npos;
}

void find_misspelled(const Facts& facts, Report& report) {
  for (const Written& option : facts.written) {
    if (option.opt != Opt::gres && !is_gpu_count(option.opt)) continue;
    std::vector<std::string> right;
    std::string why;
    for (const std::string_view each : text::split(option.value, ',')) {
      const std::string item(each);
      std::string wrong = misspelling(facts, option.opt, item);
      if (!wrong.empty() && counts_too_many(item)) wrong = "has a count that is too large";
      right.push_back(wrong.empty() ? item : right_item(facts, option.opt, take_apart(item)));
      if (why.empty()) why = wrong;
    }
    if (why.empty()) continue;
    report.add(
        option.line,
        fmt::format("--{}={} {} and is refused. {}", long_name(option.opt), option.value, why,
                    known_types(facts)),
        facts.as_directive(fmt::format("--{}={}", long_name(option.opt), fmt::join(right, ","))));
  }
}

/// Calls fn(option, ask) for each GPU (or other) count asked for.
template <class Fn>
void each_ask(const Request& request, Fn&& fn) {
  const Opt per_node = request.given.has(Opt::gres) ? Opt::gres : Opt::gpus_per_node;
  const Opt per_task =
      request.given.has(Opt::gpus_per_task) ? Opt::gpus_per_task : Opt::tres_per_task;
  for (const GresAsk& ask : request.gres_per_node) fn(per_node, ask);
  for (const GresAsk& ask : request.gres_per_job) fn(Opt::gpus, ask);
  for (const GresAsk& ask : request.gres_per_socket) fn(Opt::gpus_per_socket, ask);
  for (const GresAsk& ask : request.gres_per_task) fn(per_task, ask);
}

/// One of several models is enough.
bool is_known(const std::vector<std::string>& types, const std::string& wanted) {
  return std::ranges::any_of(
      types, [&](const std::string& type) { return cluster::is_one_of(type, wanted); });
}

void find_unknown_type(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr) return;
  const auto types = facts.gpu_types();
  for (const Job& job : facts.jobs) {
    each_ask(*job.request, [&](Opt opt, const GresAsk& ask) {
      if (ask.name != "gpu" || ask.type.empty() || ask.type == "gpu") return;
      if (is_known(types, ask.type)) return;
      const std::string meant = type_meant({ask.type}, types);
      std::string option = spelled(*job.request, opt);
      const std::string wrong = option;
      if (const std::size_t at = option.rfind(ask.type); at != std::string::npos) {
        const bool colon = meant.empty() && at + ask.type.size() < option.size();
        option.replace(at, ask.type.size() + (colon ? 1 : 0), meant);
        if (option.ends_with(':')) option.pop_back();
        if (option.ends_with('=')) option.clear();
      }
      report.add(line_of(*job.request, opt),
                 fmt::format("{}: no node has GPUs of type {}, so the job is refused. {}", wrong,
                             ask.type, known_types(facts)),
                 option.empty() ? "" : facts.as_directive(option));
    });
  }
}

/// The node with most GPUs of a type among the nodes the request may use.
struct Most {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  std::string node;
};

Most most_gpus(const Facts& facts, const Request& request, std::string_view type) {
  Most most;
  for (const cluster::NodeIndex index : facts.candidates(request)) {
    const cluster::Node& node = facts.input.cluster->nodes[index];
    const cluster::Gres* gpu = node.find_gres("gpu");
    if (gpu == nullptr) continue;
    const std::uint64_t have = type.empty() ? gpu->total() : gpu->total_of(type);
    most.sum += have;
    if (have > most.count) most = {have, most.sum, node.name};
  }
  return most;
}

std::string partition_text(const Facts& facts, const Request& request) {
  if (!request.partitions.empty()) {
    return fmt::format("partition {}", fmt::join(request.partitions, ","));
  }
  const auto* partition = facts.input.cluster->default_partition();
  return partition == nullptr ? "this cluster" : fmt::format("partition {}", partition->name);
}

/// "#SBATCH --partition=…" for an open partition that has a node with these GPUs; "" when none has.
std::string partition_with(const Facts& facts, const GresAsk& ask) {
  for (const cluster::Partition& partition : facts.input.cluster->partitions) {
    if (partition.state != cluster::PartitionState::up) continue;
    for (const cluster::NodeIndex index : partition.nodes) {
      const cluster::Gres* gpu = facts.input.cluster->nodes[index].find_gres("gpu");
      if (gpu == nullptr) continue;
      const std::uint64_t have = ask.type.empty() ? gpu->total() : gpu->total_of(ask.type);
      if (have > 0) return facts.as_directive("--partition=" + partition.name);
    }
  }
  return {};
}

void report_too_many(const Facts& facts, const Job& job, Opt opt, const GresAsk& ask,
                     const Most& most, Report& report) {
  const std::string kind = ask.type.empty() ? "GPU" : ask.type + " GPU";
  const std::string where = partition_text(facts, *job.request);
  const std::string option = spelled(*job.request, opt);
  const int line = line_of(*job.request, opt);
  const std::string typed = ask.type.empty() ? "" : ask.type + ":";
  if (most.count == 0) {
    return report.add(
        line,
        fmt::format("{}: no node of {} has a {}, so the job is refused.", option, where, kind),
        partition_with(facts, ask));
  }
  if (opt == Opt::gpus) {
    return report.add(line,
                      fmt::format("{} asks for {} in all; {} has {}. The job is refused.", option,
                                  count(ask.count, kind), where, most.sum),
                      facts.as_directive(fmt::format("--gpus={}{}", typed, most.sum)));
  }
  const std::string_view each = opt == Opt::gres || opt == Opt::gpus_per_node ? "on each node"
                                : opt == Opt::gpus_per_socket                 ? "on each socket"
                                                                              : "for each task";
  std::string hint = facts.as_directive(fmt::format(
      "--{}={}{}{}", long_name(opt), opt == Opt::gres ? "gpu:" : "", typed, most.count));
  if (each == "on each node" && job.nodes() == 1 && ask.count <= most.sum) {
    hint += "\nor spread them over several nodes:  " +
            facts.as_directive(fmt::format("--gpus={}{}", typed, ask.count));
  }
  report.add(
      line,
      fmt::format("{} asks for {} {}; the largest node of {} ({}) has {}. The job is refused.",
                  option, count(ask.count, kind), each, where, most.node, most.count),
      std::move(hint));
}

void find_too_many(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr) return;
  const auto types = facts.gpu_types();
  for (const Job& job : facts.jobs) {
    if (job.plan == nullptr || job.plan->verdict != place::Verdict::never) continue;
    each_ask(*job.request, [&](Opt opt, const GresAsk& ask) {
      const bool known_type = ask.type.empty() || is_known(types, ask.type);
      if (ask.name != "gpu" || !known_type || ask.count > INT32_MAX) return;  // -1 wraps round
      const Most most = most_gpus(facts, *job.request, ask.type);
      const std::uint64_t limit = opt == Opt::gpus ? most.sum : most.count;
      if (ask.count > limit) report_too_many(facts, job, opt, ask, most, report);
    });
  }
}

/// The most shards that one GPU of the cluster carries.
std::uint64_t shards_of_a_gpu(const cluster::Cluster& cluster) {
  std::uint64_t most = 0;
  for (const cluster::Node& node : cluster.nodes) {
    const cluster::Gres* shard = node.find_gres("shard");
    if (shard == nullptr) continue;
    for (const cluster::Device& device : shard->devices) most = std::max(most, device.units);
  }
  return most;
}

void find_wide_shards(const Facts& facts, Report& report) {
  if (facts.input.cluster == nullptr || facts.input.cluster->settings.multiple_sharing_gres) return;
  const std::uint64_t most = shards_of_a_gpu(*facts.input.cluster);
  for (const Job& job : facts.jobs) {
    if (job.plan != nullptr && job.plan->verdict == place::Verdict::now) continue;
    const bool refused = job.plan != nullptr && job.plan->verdict == place::Verdict::never;
    each_ask(*job.request, [&](Opt opt, const GresAsk& ask) {
      if (ask.name != "shard" || most == 0 || ask.count <= most) return;
      const std::string option = spelled(*job.request, opt);
      report.add(
          line_of(*job.request, opt),
          fmt::format("{}: the shards of a job on a node come from one GPU, and a GPU has {}. "
                      "The job {}.",
                      option, most, refused ? "is refused" : "is accepted and never starts"),
          facts.as_directive(fmt::format("--gres=shard:{}", most)) +
              "      (or a whole GPU: " + facts.as_directive("--gres=gpu:1") + ")");
    });
  }
}

constexpr std::array<Entry, 4> kGpuNamesRules = {{
    {{"B101", Level::error, "A GPU request is misspelled",
      "--gres is written name:type:count, and --gpus and its relatives type:count, with the type "
      "as "
      "the cluster spells it. A count before the type, a type in two parts, or \"gpu:\" inside "
      "--gpus is refused by sbatch.",
      "#SBATCH --gres=gpu:1:tesla:v100", "#SBATCH --gres=gpu:tesla_v100:1"},
     find_misspelled},
    {{"B102", Level::error, "No node has GPUs of that type",
      "The type in --gres=gpu:TYPE:N must be one that gres.conf or slurm.conf names, letter by "
      "letter. The finding names the nearest one and lists those that exist.",
      "#SBATCH --gres=gpu:a1000:2", "#SBATCH --gres=gpu:a100:2"},
     find_unknown_type},
    {{"B103", Level::error, "More GPUs than any node has",
      "--gres and --gpus-per-node count on each node, --gpus-per-task must fit on one node, and "
      "--gpus is the total of the job. No node of the partition (or not all of them together) has "
      "so "
      "many.",
      "#SBATCH --gres=gpu:16", "#SBATCH --nodes=2\n#SBATCH --gres=gpu:8"},
     find_too_many},
    {{"B114", Level::error, "More shards than one GPU has",
      "Unless the cluster allows otherwise (MULTIPLE_SHARING_GRES_PJ), all shards of a job on a "
      "node "
      "come from the same GPU. A request for more is accepted and waits forever.",
      "#SBATCH --gres=shard:5      (4 shards on a GPU)", "#SBATCH --gres=shard:4"},
     find_wide_shards},
}};

}  // namespace

std::span<const Entry> gpu_name_rules() {
  return kGpuNamesRules;
}

}  // namespace berth::lint
