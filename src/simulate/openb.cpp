#include "simulate/openb.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "simulate/fields.h"
#include "simulate/trace.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::simulate {
namespace {

constexpr std::size_t kMostColumns = 64;
constexpr std::size_t kMostNodes = 100'000;

/// The columns of a CSV without quotes, found by the names in its first line.
class Csv {
 public:
  explicit Csv(std::string_view header) { split_at(header, ',', kMostColumns, names_); }
  void take(std::string_view line) { split_at(line, ',', kMostColumns, fields_); }
  [[nodiscard]] bool has(std::string_view name) const {
    return std::ranges::find(names_, name) != names_.end();
  }
  [[nodiscard]] std::string_view text(std::string_view name) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    return at < fields_.size() ? text::trim(fields_[at]) : std::string_view();
  }
  /// Not negative, or nullopt.
  [[nodiscard]] std::optional<std::uint64_t> count(std::string_view name,
                                                   std::uint64_t most) const {
    const auto value = whole_of(text(name));
    if (!value || *value < 0 || static_cast<std::uint64_t>(*value) > most) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
  }

 private:
  std::vector<std::string_view> names_;
  std::vector<std::string_view> fields_;
};

Result<void> need(const Csv& csv, std::initializer_list<std::string_view> columns,
                  std::string_view name) {
  for (const std::string_view column : columns) {
    if (csv.has(column)) continue;
    return fail(Code::bad_value, fmt::format("{}:1: there is no column {}", name, column));
  }
  return {};
}

/// Words of slurm.conf: nothing that would end or begin another one.
bool plain(std::string_view word) {
  return !word.empty() && word.size() <= 64 && std::ranges::all_of(word, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  });
}

std::string read_pod(const Csv& csv, TraceJob& job, Ask& ask) {
  const auto cpu = csv.count("cpu_milli", 1'000'000'000);
  const auto memory = csv.count("memory_mib", 1'000'000'000);
  const auto gpus = csv.count("num_gpu", 1'000'000);
  const auto milli = csv.count("gpu_milli", 1000);
  const auto created = csv.count("creation_time", static_cast<std::uint64_t>(kMostSeconds));
  const auto deleted = csv.count("deletion_time", static_cast<std::uint64_t>(kMostSeconds));
  if (!cpu || !memory) return "no CPU or memory";
  if (!gpus || !milli) return "no number of GPUs, or more than 1000 thousandths of one";
  if (!created) return "no creation_time";
  if (!deleted || *deleted < *created) return "no deletion_time after its creation";
  ask.nodes = 1;
  ask.cpus_per_task = std::max<std::uint32_t>(1, static_cast<std::uint32_t>((*cpu + 999) / 1000));
  ask.memory_per_node_mb = *memory;
  if (*gpus == 1 && *milli > 0 && *milli < 1000) {
    ask.gpu_milli = static_cast<std::uint32_t>(*milli);
  } else {
    ask.gpus = static_cast<std::uint32_t>(*gpus);
  }
  for (const std::string_view model : text::split(csv.text("gpu_spec"), '|')) {
    if (model.empty()) continue;
    if (!plain(model)) return "gpu_spec is not a list of models";
    if (std::ranges::find(ask.models, model) == ask.models.end()) ask.models.emplace_back(model);
  }
  std::ranges::sort(ask.models);
  job.submit = static_cast<std::int64_t>(*created);
  job.runtime = static_cast<std::int64_t>(*deleted - *created);
  return {};
}

}  // namespace

Result<Trace> read_openb(std::string_view text, std::string_view name) {
  Trace trace;
  trace.name = name;
  Lines lines(text);
  std::string_view line;
  if (!lines.next(line)) return fail(Code::bad_value, fmt::format("{}: it is empty", name));
  Csv csv(line);
  if (auto fine = need(csv, {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, name); !fine) {
    return pass(std::move(fine.error()));
  }
  if (auto fine = need(csv, {"creation_time", "deletion_time"}, name); !fine) {
    fine.error().hint = "this workload has no times: bench-openb runs it";
    return pass(std::move(fine.error()));
  }
  while (lines.next(line)) {
    if (text::trim(line).empty()) continue;
    ++trace.lines;
    if (trace.jobs.size() >= kMostJobs) {
      return fail(Code::limit, fmt::format("{}: more than {} jobs", name, kMostJobs));
    }
    if (line.size() > kMostLineBytes) {
      trace.skip(lines.number(), "longer than a line of a trace is");
      continue;
    }
    csv.take(line);
    TraceJob job;
    Ask ask;
    if (const std::string why = read_pod(csv, job, ask); !why.empty()) {
      trace.skip(lines.number(), why);
      continue;
    }
    job.line = lines.number();
    job.ask = trace.intern(std::move(ask));
    trace.jobs.push_back(job);
  }
  return trace;
}

Result<conf::MemorySource::Files> read_openb_nodes(std::string_view text, std::string_view name) {
  Lines lines(text);
  std::string_view line;
  if (!lines.next(line)) return fail(Code::bad_value, fmt::format("{}: it is empty", name));
  Csv csv(line);
  if (auto fine = need(csv, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}, name); !fine) {
    return pass(std::move(fine.error()));
  }
  struct Kind {
    std::uint64_t cpus = 0, memory = 0, gpus = 0;
    std::string model;
    auto operator<=>(const Kind&) const = default;
  };
  std::map<Kind, std::vector<std::string>> kinds;
  std::size_t nodes = 0;
  while (lines.next(line)) {
    if (text::trim(line).empty()) continue;
    const auto wrong = [&](std::string_view why) {
      return fail(Code::bad_value, fmt::format("{}:{}: {}", name, lines.number(), why));
    };
    if (++nodes > kMostNodes) return wrong("more nodes than can be");
    csv.take(line);
    const auto cpu = csv.count("cpu_milli", 4'096'000);
    const auto memory = csv.count("memory_mib", 1'000'000'000);
    const auto gpus = csv.count("gpu", 1024);
    const std::string_view model = csv.text("model");
    if (!plain(csv.text("sn"))) return wrong("sn is not a name of a node");
    if (!cpu || *cpu < 1000 || !memory || *memory == 0) return wrong("no CPU or memory");
    if (!gpus) return wrong("no number of GPUs");
    if (*gpus > 0 && !plain(model)) return wrong("no model of its GPUs");
    kinds[{*cpu / 1000, *memory, *gpus, std::string(*gpus > 0 ? model : "")}].emplace_back(
        csv.text("sn"));
  }
  if (kinds.empty()) return fail(Code::bad_value, fmt::format("{}: there are no nodes", name));
  std::string slurm =
      "ClusterName=openb\nSlurmctldHost=localhost\nSelectType=select/cons_tres\n"
      "SelectTypeParameters=CR_Core_Memory\nGresTypes=gpu,shard\n"
      "SlurmdParameters=config_overrides\n";
  std::string gres;
  for (const auto& [kind, names] : kinds) {
    const std::string hosts = text::compress_hostlist(names);
    slurm += fmt::format("NodeName={} Sockets=1 CoresPerSocket={} ThreadsPerCore=1 RealMemory={}",
                         hosts, kind.cpus, kind.memory);
    if (kind.gpus > 0) {
      slurm += fmt::format(" Gres=gpu:{}:{},shard:{} Feature={}", kind.model, kind.gpus,
                           kind.gpus * kShards, kind.model);
      gres += fmt::format("NodeName={} Name=gpu Type={} File=/dev/nvidia{}\n", hosts, kind.model,
                          kind.gpus == 1 ? "0" : fmt::format("[0-{}]", kind.gpus - 1));
      gres += fmt::format("NodeName={} Name=shard Count={}\n", hosts, kind.gpus * kShards);
    }
    slurm += '\n';
  }
  slurm += "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
  return conf::MemorySource::Files{{"slurm.conf", std::move(slurm)},
                                   {"gres.conf", std::move(gres)}};
}

}  // namespace berth::simulate
