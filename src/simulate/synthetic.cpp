#include "simulate/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/random.h"
#include "simulate/fields.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::simulate {
namespace {

/// The kind of node there are most of: what jobs are cut to.
const cluster::Node& usual_node(const cluster::Cluster& cluster) {
  std::map<std::array<std::uint64_t, 3>, std::pair<std::uint64_t, std::size_t>> kinds;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const cluster::Node& node = cluster.nodes[i];
    const cluster::Gres* gpus = node.find_gres("gpu");
    auto& kind = kinds[{gpus == nullptr ? 0 : gpus->total(), node.cpus(), node.memory_mb}];
    kind.first += 1 + (gpus == nullptr ? 0 : gpus->total());
    if (kind.first == 1 + (gpus == nullptr ? 0 : gpus->total())) kind.second = i;
  }
  const auto most =
      std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second.first; });
  return cluster.nodes[most->second.second];
}

/// How often jobs of so many GPUs come, in percent.
struct Size {
  std::uint32_t gpus;
  std::uint32_t percent;
};
constexpr auto kSizes =
    std::to_array<Size>({{0, 8}, {1, 42}, {2, 15}, {4, 13}, {8, 14}, {16, 5}, {32, 2}, {64, 1}});
/// Time limits people write, in minutes.
constexpr auto kLimits =
    std::to_array<std::uint32_t>({5, 10, 15, 30, 60, 120, 240, 480, 720, 1440, 2880, 5760});

class Maker {
 public:
  Maker(const Synthetic& what, const cluster::Cluster& cluster, std::uint64_t seed)
      : what_(what), node_(usual_node(cluster)), random_(seed) {
    const cluster::Gres* gpus = node_.find_gres("gpu");
    gpus_ = gpus == nullptr ? 0 : static_cast<std::uint32_t>(gpus->total());
    for (const cluster::Node& node : cluster.nodes) {
      const cluster::Gres* found = node.find_gres("gpu");
      capacity_ += gpus_ == 0 ? node.cpus() : found == nullptr ? 0 : found->total();
    }
    nodes_ = cluster.nodes.size();
  }

  Trace make() {
    Trace trace;
    trace.jobs.reserve(what_.jobs);
    double demand = 0;  // whole numbers far below 2^53: exact
    for (std::uint64_t i = 0; i < what_.jobs; ++i) {
      TraceJob job;
      const Ask ask = gpus_ > 0 ? gpu_ask() : cpu_ask();
      job.runtime = runtime();
      job.limit_minutes = limit(job.runtime);
      job.user = static_cast<std::uint32_t>(random_.below(what_.users));
      job.line = static_cast<std::uint32_t>(i + 1);
      demand += static_cast<double>(job.runtime) * (gpus_ > 0 ? ask.gpus : ask.cpus());
      job.ask = trace.intern(ask);
      trace.jobs.push_back(job);
    }
    const double wanted = demand / (static_cast<double>(capacity_) * what_.load);
    const auto span = static_cast<std::uint64_t>(std::clamp(wanted, 1.0, 1e12));
    for (TraceJob& job : trace.jobs) job.submit = static_cast<std::int64_t>(random_.below(span));
    trace.lines = trace.jobs.size();
    return trace;
  }

 private:
  Ask gpu_ask() {
    std::uint64_t draw = random_.below(100);
    std::uint32_t gpus = 1;
    for (const Size& size : kSizes) {
      gpus = size.gpus;
      if (draw < size.percent) break;
      draw -= size.percent;
    }
    gpus = std::min<std::uint64_t>({gpus, what_.most_gpus, gpus_ * nodes_});
    if (gpus == 0) return cpu_ask();
    Ask ask;
    ask.nodes = (gpus + gpus_ - 1) / gpus_;
    ask.tasks = ask.nodes;
    ask.gpus = ask.nodes == 1 ? gpus : ask.nodes * gpus_;
    const std::uint32_t here = ask.gpus / ask.nodes;
    share(ask, here, gpus_);
    return ask;
  }
  Ask cpu_ask() {
    Ask ask;
    ask.nodes = 1;
    const std::uint32_t parts = 1U << random_.below(5);
    share(ask, 1, std::min(parts * (gpus_ > 0 ? 4U : 1U), std::max(1U, node_.cpus())));
    return ask;
  }
  /// CPUs and memory: the part of the node its GPUs are, or a half or a quarter of that.
  void share(Ask& ask, std::uint32_t part, std::uint32_t whole) {
    const std::uint64_t cpus = std::uint64_t{node_.cpus()} * part / whole;
    const std::uint64_t memory = node_.usable_memory_mb() * part / whole;
    ask.cpus_per_task =
        std::max<std::uint32_t>(1, static_cast<std::uint32_t>(cpus >> random_.below(3)));
    ask.memory_per_node_mb = std::max<std::uint64_t>(1, memory >> random_.below(3));
  }
  std::int64_t runtime() {
    const std::uint64_t octave = 6 + random_.below(10);  // 64 s … 18 h
    return static_cast<std::int64_t>((std::uint64_t{1} << octave) +
                                     random_.below(std::uint64_t{1} << octave));
  }
  std::uint32_t limit(std::int64_t runtime_seconds) {
    // Most ask for one step more than they need, some for several.
    const auto minutes = static_cast<std::uint32_t>((runtime_seconds + 59) / 60);
    std::size_t at =
        static_cast<std::size_t>(std::ranges::lower_bound(kLimits, minutes) - kLimits.begin());
    at = std::min(at + random_.below(3), kLimits.size() - 1);
    return kLimits[at];
  }

  Synthetic what_;
  const cluster::Node& node_;
  Random random_;
  std::uint32_t gpus_ = 0;  // of the usual node
  std::uint64_t capacity_ = 0;
  std::uint64_t nodes_ = 0;
};

}  // namespace

Result<Synthetic> read_synthetic(std::string_view text) {
  Synthetic out;
  const auto wrong = [&](std::string_view item) {
    return fail(Code::bad_value, fmt::format("--synthetic: cannot read \"{}\"", item),
                "jobs=N,load=0.9,users=N,gpus=N");
  };
  for (const std::string_view item : text::split(text, ',')) {
    if (item.empty()) continue;
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) return wrong(item);
    const std::string_view key = item.substr(0, equals);
    const std::string_view value = item.substr(equals + 1);
    const auto number = text::parse_number(value, kMostJobs);
    if (key == "load") {
      const auto load = real_of(value);
      if (!load || *load < 0.001 || *load > 100) return wrong(item);
      out.load = *load;
    } else if (!number || (*number == 0 && key != "gpus")) {
      return wrong(item);
    } else if (key == "jobs") {
      out.jobs = *number;
    } else if (key == "users") {
      out.users = static_cast<std::uint32_t>(*number);
    } else if (key == "gpus") {
      out.most_gpus = static_cast<std::uint32_t>(*number);
    } else {
      return wrong(item);
    }
  }
  return out;
}

Trace synthesize(const Synthetic& what, const cluster::Cluster& cluster, std::uint64_t seed) {
  if (cluster.nodes.empty()) return {};
  Trace trace = Maker(what, cluster, seed).make();
  trace.name = fmt::format("{} made-up jobs, load {:g}, seed {}", what.jobs, what.load, seed);
  trace.format = "synthetic";
  trace.sort();
  return trace;
}

}  // namespace berth::simulate
