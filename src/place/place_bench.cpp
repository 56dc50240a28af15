// One placement on a cluster of 10,000 nodes with 8 GPUs each: empty, half used, fragmented; on a
// flat network and on a tree of switches.
// `bench/place` runs it and prints medians.
#include <benchmark/benchmark.h>

#include <random>

#include "place/large_cluster_test_fixture.h"
#include "place/place.h"

namespace berth::place {
namespace {

constexpr std::uint32_t kNodes = 10000;

request::Request ask(std::uint32_t nodes, std::uint32_t tasks, std::uint32_t cpus,
                     std::uint64_t per_node_gpus, std::uint64_t job_gpus, std::uint64_t mem_mb) {
  request::Request r;
  r.command = request::Command::sbatch;
  if (nodes > 0) r.nodes = request::NodeCount{nodes, nodes, false, {}};
  if (tasks > 0) r.ntasks = tasks;
  if (cpus > 0) r.cpus_per_task = cpus;
  if (per_node_gpus > 0) r.gres_per_node = {{"gpu", "", per_node_gpus}};
  if (job_gpus > 0) r.gres_per_job = {{"gpu", "", job_gpus}};
  r.memory = request::Memory{request::MemoryPer::node, mem_mb};
  return r;
}

/// The shapes that are asked in turn, so that no single lucky one decides the figure.
std::vector<request::Request> shapes() {
  return {
      ask(0, 1, 0, 1, 0, 16384),      // one GPU
      ask(1, 1, 8, 2, 0, 65536),      // two GPUs and 8 CPUs on a node
      ask(1, 8, 4, 8, 0, 262144),     // a whole node of GPUs
      ask(4, 16, 4, 4, 0, 131072),    // 4 nodes x 4 GPUs
      ask(0, 0, 0, 0, 6, 32768),      // a job total
      ask(0, 128, 0, 0, 0, 16384),    // CPUs only
      ask(0, 1, 0, 0, 0, 4096),       // one CPU
      ask(16, 128, 4, 8, 0, 262144),  // 16 whole nodes
  };
}

/// 20 nodes on a leaf switch, 20 leaves on a switch, all of these on one.
cluster::Cluster with_switches(cluster::Cluster c) {
  constexpr std::uint32_t kEach = 20;
  cluster::Topology& network = c.topology;
  network.kind = cluster::NetworkKind::tree;
  const auto leaves = static_cast<std::uint32_t>(c.nodes.size()) / kEach;
  const std::uint32_t above = leaves / kEach;
  network.units.resize(leaves + above + 1);
  for (std::uint32_t i = 0; i + 1 < network.units.size(); ++i) {
    network.units[i].parent = i < leaves ? leaves + i / kEach : leaves + above;
    network.units[*network.units[i].parent].children.push_back(i);
  }
  for (std::uint32_t i = 0; i < c.nodes.size(); ++i) network.units[i / kEach].nodes.push_back(i);
  network.finish(c.nodes.size());
  return c;
}

enum Scenario { kEmpty, kHalfUsed, kFragmented };

/// Fills the cluster by placing jobs, as a controller would.
void fill(const cluster::Cluster& c, cluster::Usage& usage, Scenario scenario) {
  std::mt19937 random(1);
  const auto share = [&](cluster::NodeIndex node, std::uint32_t gpus, std::uint32_t cores) {
    cluster::NodeShare s;
    s.node = node;
    cluster::GresShare g{"gpu", std::vector<std::uint64_t>(8, 0)};
    for (std::size_t d = 0; d < 8 && gpus > 0; ++d) {
      const std::size_t at = scenario == kFragmented ? (d * 5 + node) % 8 : d;
      if (usage.at(node).gres[0][at] > 0) continue;
      g.units[at] = 1;
      --gpus;
    }
    const std::uint32_t first =
        scenario == kFragmented ? static_cast<std::uint32_t>(random() % 64) : 0;
    for (std::uint32_t n = 0, core = first; n < 64 && cores > 0; ++n, core = (core + 1) % 64) {
      if (usage.at(node).cores.test(core)) continue;
      s.cores.set(core);
      --cores;
    }
    s.memory_mb = 1024 * (1 + random() % 200);
    s.gres.push_back(std::move(g));
    cluster::Allocation a;
    a.nodes.push_back(std::move(s));
    usage.take(a);
  };
  for (cluster::NodeIndex i = 0; i < c.nodes.size(); ++i) {
    if (scenario == kHalfUsed && i % 4 < 2) share(i, 8, 64);
    if (scenario == kFragmented) {
      for (std::uint32_t jobs = 1 + random() % 3; jobs > 0; --jobs) {
        share(i, 1 + random() % 2, 1 + random() % 16);
      }
    }
  }
}

void place_in(benchmark::State& state, const cluster::Cluster& c) {
  cluster::Usage usage(c);
  fill(c, usage, static_cast<Scenario>(state.range(0)));
  const std::vector<request::Request> all = shapes();
  const request::Request& request = all[static_cast<std::size_t>(state.range(1))];
  bool placed = false;
  for (auto _ : state) {
    const JobPlan plan = place_job(c, usage, request, Detail::verdict);
    placed = plan.verdict == Verdict::now;
    benchmark::DoNotOptimize(plan.verdict);
  }
  state.counters["placed"] = placed ? 1 : 0;
  state.counters["states"] = usage.state_count();
}
void place_one(benchmark::State& state) {
  static const cluster::Cluster c = testing::large_cluster(kNodes);
  place_in(state, c);
}
void place_near(benchmark::State& state) {
  static const cluster::Cluster c = with_switches(testing::large_cluster(kNodes));
  place_in(state, c);
}
BENCHMARK(place_one)
    ->ArgNames({"scenario", "shape"})
    ->ArgsProduct({{kEmpty, kHalfUsed, kFragmented}, benchmark::CreateDenseRange(0, 7, 1)})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(place_near)
    ->ArgNames({"scenario", "shape"})
    ->ArgsProduct({{kEmpty, kHalfUsed, kFragmented}, benchmark::CreateDenseRange(0, 7, 1)})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth::place

BENCHMARK_MAIN();
