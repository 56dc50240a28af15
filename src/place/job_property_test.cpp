// Properties of job placement on random small clusters: nothing is given twice, every accepted
// request is met as its options say, release returns what was taken, and what is refused as "never"
// fits no empty cluster (by trying every set of nodes). BERTH_SOAK=1 runs many more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "place/place.h"

namespace berth::place {
namespace {

using cluster::Allocation;
using cluster::NodeIndex;
using cluster::NodeShare;
using request::GresAsk;
using request::MemoryPer;
using request::Request;

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t upto(std::uint32_t n) { return engine_() % (n + 1); }  // 0 … n
  std::uint32_t from(std::uint32_t a, std::uint32_t b) { return a + upto(b - a); }
  bool one_in(std::uint32_t n) { return engine_() % n == 0; }

 private:
  std::mt19937 engine_;
};

const char* const kTypes[] = {"", "a", "b"};

cluster::Node random_node(Random& r, std::uint32_t index) {
  cluster::Node node;
  node.name = "n" + std::to_string(index + 1);
  node.sockets = r.from(1, 2);
  node.cores_per_socket = r.from(1, 4);
  node.threads_per_core = r.from(1, 2);
  node.memory_mb = r.from(1, 8) * 1000;
  node.weight = r.one_in(4) ? 2 : 1;
  if (r.one_in(2)) node.features.push_back("even");
  if (r.one_in(6)) node.reserved_cores.set(node.cores() - 1);
  const std::uint32_t gpus = r.upto(4);
  if (gpus == 0) return node;
  cluster::Gres gres;
  gres.name = "gpu";
  const bool typed = r.one_in(2);
  const std::uint32_t affinity = r.upto(2);  // 0: none, else by socket
  const bool linked = r.one_in(3);
  for (std::uint32_t g = 0; g < gpus; ++g) {
    cluster::Device device;
    if (typed) device.type = kTypes[r.from(1, 2)];
    if (affinity > 0) device.sockets = Bits::of({g * node.sockets / gpus});
    device.record = static_cast<int>(g);
    if (linked) {
      for (std::uint32_t other = 0; other < gpus; ++other) {
        device.links.push_back(other == g ? -1 : (other / 2 == g / 2 ? 4 : 0));
      }
    }
    gres.devices.push_back(std::move(device));
  }
  node.gres.push_back(std::move(gres));
  return node;
}

cluster::Cluster random_cluster(Random& r) {
  cluster::Cluster c;
  const std::uint32_t nodes = r.from(1, 6);
  for (std::uint32_t i = 0; i < nodes; ++i) c.nodes.push_back(random_node(r, i));
  c.index_nodes();
  c.settings.gres_types = {"gpu"};
  cluster::Partition all;
  all.name = "all";
  all.is_default = true;
  for (NodeIndex i = 0; i < nodes; ++i) all.nodes.push_back(i);
  c.partitions.push_back(std::move(all));
  return c;
}

void random_gpus(Random& r, Request& q) {
  const std::string type = r.one_in(3) ? kTypes[r.from(1, 2)] : "";
  switch (r.upto(5)) {
    case 0:
      q.gres_per_node = {{"gpu", type, r.from(1, 4)}};
      break;
    case 1:
      q.gres_per_job = {{"gpu", type, r.from(1, 10)}};
      break;
    case 2:
      q.gres_per_task = {{"gpu", type, r.from(1, 2)}};
      if (!q.ntasks && !q.ntasks_per_node) q.ntasks = r.from(1, 4);
      break;
    default:
      break;
  }
  if (r.one_in(6)) q.gres_flags.enforce_binding = true;
}

Request random_request(Random& r, const cluster::Cluster& c) {
  Request q;
  q.command = r.one_in(2) ? request::Command::srun : request::Command::sbatch;
  const auto size = static_cast<std::uint32_t>(c.nodes.size());
  if (r.one_in(2)) {
    const std::uint32_t min = r.from(1, size);
    const std::uint32_t max = r.one_in(3) ? r.from(min, size) : min;
    q.nodes = request::NodeCount{min, max, max != min, {}};
  }
  if (r.one_in(2)) q.ntasks = r.from(1, 12);
  if (r.one_in(5)) q.ntasks_per_node = r.from(1, 4);
  if (r.one_in(3)) q.cpus_per_task = r.from(1, 4);
  if (r.one_in(10)) q.threads_per_core = 1;
  if (r.one_in(10)) q.exclusive = request::Exclusive::node;
  if (r.one_in(12)) q.overcommit = true;
  if (r.one_in(8)) q.constraint = "even";
  random_gpus(r, q);
  switch (r.upto(4)) {
    case 0:
      q.memory = request::Memory{MemoryPer::node, r.from(1, 8) * 500};
      break;
    case 1:
      q.memory = request::Memory{MemoryPer::cpu, r.from(1, 8) * 200};
      break;
    case 2:
      q.memory = request::Memory{MemoryPer::node, 100};
      break;
    default:
      break;
  }
  if (r.one_in(8)) q.nodelist = {c.nodes[r.upto(size - 1)].name};
  if (r.one_in(8)) {
    const std::string name = c.nodes[r.upto(size - 1)].name;
    if (q.nodelist.empty()) q.exclude = {name};
  }
  return q;
}

std::uint64_t gpus_of_type(const cluster::Node& node, const NodeShare& share,
                           const std::string& type) {
  std::uint64_t n = 0;
  if (const cluster::GresShare* gpus = share.find("gpu")) {
    const cluster::Gres* gres = node.find_gres("gpu");
    gpus->devices().each([&](std::size_t d) {
      if (type.empty() || gres->devices[d].type == type) ++n;
    });
  }
  return n;
}

/// Everything an accepted request promises.
void check_promises(const cluster::Cluster& c, const cluster::Usage& usage, const Request& q,
                    const JobPlan& plan) {
  const Allocation& a = plan.allocation;
  const std::uint64_t cpt = plan.counts.cpus_per_task.value_or(1);
  ASSERT_FALSE(a.nodes.empty());
  std::uint64_t cpus = 0;
  std::uint64_t tasks = 0;
  std::uint64_t job_gpus = 0;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const NodeShare& share = a.nodes[i];
    const cluster::Node& node = c.nodes[share.node];
    const cluster::NodeUsage& used = usage.at(share.node);
    if (i > 0) {
      ASSERT_LT(a.nodes[i - 1].node, share.node);
    }
    ASSERT_TRUE(share.cores.any());
    ASSERT_FALSE(share.cores.intersects(used.cores)) << "a core given twice";
    ASSERT_FALSE(share.cores.intersects(node.reserved_cores));
    ASSERT_LT(share.cores.last(), node.cores());
    ASSERT_LE(share.memory_mb + used.memory_mb, node.memory_mb) << "memory given twice";
    if (const cluster::GresShare* gpus = share.find("gpu")) {
      for (std::size_t d = 0; d < gpus->units.size(); ++d) {
        ASSERT_LE(gpus->units[d] + used.gres[0][d], 1U) << "a GPU given twice";
      }
    }
    ASSERT_EQ(share.cpus, share.cores.count() * node.threads_per_core);
    if (q.exclusive != request::Exclusive::no) {
      ASSERT_EQ(share.cores, Bits::first_n(node.cores()) - node.reserved_cores);
      ASSERT_EQ(used.jobs, 0U);
    } else {
      for (const GresAsk& ask : q.gres_per_node) {
        ASSERT_EQ(gpus_of_type(node, share, ask.type), ask.count);
      }
      for (const GresAsk& ask : q.gres_per_task) {
        ASSERT_EQ(gpus_of_type(node, share, ask.type), ask.count * share.tasks);
      }
    }
    if (q.constraint) {
      ASSERT_TRUE(node.has_feature("even"));
    }
    for (const std::string& name : q.exclude) ASSERT_NE(node.name, name);
    const std::uint64_t usable =
        share.cores.count() *
        std::min<std::uint64_t>(node.threads_per_core, q.threads_per_core.value_or(99));
    ASSERT_EQ(share.usable_cpus, usable);
    if (q.memory && q.memory->per == MemoryPer::node) {
      ASSERT_EQ(share.memory_mb, q.memory->mb);
    }
    if (q.memory && q.memory->per == MemoryPer::cpu) {
      ASSERT_EQ(share.memory_mb, q.memory->mb * usable);
    }
    if (!q.memory) {
      ASSERT_EQ(share.memory_mb, node.memory_mb) << "no request: all of the node";
    }
    if (!q.overcommit) {
      ASSERT_GE(usable, share.tasks * cpt);
    }
    if (q.ntasks_per_node && !q.overcommit) {
      ASSERT_LE(share.tasks, *q.ntasks_per_node);
    }
    cpus += usable;
    tasks += share.tasks;
    for (const GresAsk& ask : q.gres_per_job) job_gpus += gpus_of_type(node, share, ask.type);
  }
  for (const std::string& name : q.nodelist) {
    const auto index = c.find_node(name);
    EXPECT_TRUE(std::ranges::any_of(a.nodes, [&](const NodeShare& s) { return s.node == *index; }))
        << "required node " << name;
  }
  ASSERT_GE(a.nodes.size(), plan.counts.min_nodes);
  if (plan.counts.max_nodes) {
    ASSERT_LE(a.nodes.size(), *plan.counts.max_nodes);
  }
  if (plan.counts.tasks && !q.overcommit) {
    ASSERT_GE(cpus, *plan.counts.tasks * cpt);
    ASSERT_GE(tasks, *plan.counts.tasks) << "every task has a place";
  }
  if (!q.gres_per_job.empty() && q.exclusive == request::Exclusive::no) {
    ASSERT_EQ(job_gpus, q.gres_per_job[0].count);
  }
}

/// The request and the cluster in words, for a failure.
std::string describe(const cluster::Cluster& c, const Request& q) {
  std::string out = q.command == request::Command::srun ? "srun" : "sbatch";
  const auto add = [&](const char* option, const std::optional<std::uint32_t>& value) {
    if (value) out += fmt::format(" {}{}", option, *value);
  };
  if (q.nodes) out += fmt::format(" -N{}-{}", q.nodes->min, q.nodes->max);
  add("-n", q.ntasks);
  add("--ntasks-per-node=", q.ntasks_per_node);
  add("-c", q.cpus_per_task);
  add("--threads-per-core=", q.threads_per_core);
  if (q.exclusive != request::Exclusive::no) out += " --exclusive";
  if (q.overcommit) out += " -O";
  if (q.constraint) out += " -C even";
  for (const GresAsk& g : q.gres_per_node) out += fmt::format(" --gres=gpu:{}:{}", g.type, g.count);
  for (const GresAsk& g : q.gres_per_job) out += fmt::format(" --gpus={}:{}", g.type, g.count);
  for (const GresAsk& g : q.gres_per_task)
    out += fmt::format(" --gpus-per-task={}:{}", g.type, g.count);
  if (q.gres_flags.enforce_binding) out += " --gres-flags=enforce-binding";
  if (q.memory) {
    out +=
        fmt::format(" --mem{}={}", q.memory->per == MemoryPer::cpu ? "-per-cpu" : "", q.memory->mb);
  }
  for (const std::string& name : q.nodelist) out += " -w " + name;
  for (const std::string& name : q.exclude) out += " -x " + name;
  for (const cluster::Node& node : c.nodes) {
    out += fmt::format("\n  {}: {}x{}x{} reserved {} mem {} weight {}{}", node.name, node.sockets,
                       node.cores_per_socket, node.threads_per_core, node.reserved_cores.count(),
                       node.memory_mb, node.weight, node.features.empty() ? "" : " even");
    for (const cluster::Gres& gres : node.gres) {
      for (const cluster::Device& d : gres.devices) {
        out += fmt::format(" gpu:{}@{}", d.type, d.sockets.list());
      }
      if (!gres.devices[0].links.empty()) out += " linked";
    }
  }
  return out;
}

/// What one node could hold on an empty cluster, by the plain meaning of the options.
struct Capacity {
  bool possible = false;
  std::uint64_t cpus = 0;
  std::uint64_t tasks = 0;
  std::uint64_t gpus = 0;
};

Capacity capacity_of(const cluster::Node& node, const Request& q, const request::Counts& counts) {
  Capacity out;
  const std::uint64_t c = counts.cpus_per_task.value_or(1);
  const std::uint64_t cores = node.cores() - node.reserved_cores.count();
  const std::uint64_t threads =
      std::min<std::uint64_t>(node.threads_per_core, q.threads_per_core.value_or(99));
  if (q.threads_per_core.value_or(1) > node.threads_per_core) return out;
  std::uint64_t cpus = cores * threads;
  if (q.memory && q.memory->per == MemoryPer::node && q.memory->mb > node.memory_mb) return out;
  if (q.memory && q.memory->per == MemoryPer::cpu) {
    const std::uint64_t fits = node.memory_mb / q.memory->mb / threads * threads;
    if (q.exclusive != request::Exclusive::no && fits < cpus) return out;
    cpus = std::min(cpus, fits);
  }
  if (q.constraint && !node.has_feature("even")) return out;
  for (const std::string& name : q.exclude) {
    if (name == node.name) return out;
  }
  out.tasks = cpus / c;
  if (q.ntasks_per_node && !q.overcommit) {
    if (out.tasks < *q.ntasks_per_node) return out;
    out.tasks = *q.ntasks_per_node;
  }
  if (out.tasks == 0) return out;
  for (const auto* asks : {&q.gres_per_node, &q.gres_per_job, &q.gres_per_task}) {
    for (const GresAsk& ask : *asks) {
      const cluster::Gres* gres = node.find_gres("gpu");
      out.gpus = gres == nullptr ? 0 : gres->total_of(ask.type);
      const std::uint64_t least = asks == &q.gres_per_job ? 1 : ask.count;
      if (out.gpus < least) return out;
      if (asks == &q.gres_per_task) {
        // With --ntasks-per-node every node has to hold that many tasks, GPUs included.
        if (q.ntasks_per_node && !q.overcommit && out.gpus / ask.count < out.tasks) return out;
        out.tasks = std::min(out.tasks, out.gpus / ask.count);
      }
      if (asks == &q.gres_per_node) out.gpus = ask.count;
    }
  }
  out.cpus = out.tasks * c;
  out.possible = true;
  return out;
}

/// Whether some set of nodes of the empty cluster holds the job.
bool fits_somewhere(const cluster::Cluster& c, const Request& q, const request::Counts& counts) {
  const std::uint64_t cpt = counts.cpus_per_task.value_or(1);
  std::uint32_t required = 0;
  for (const std::string& name : q.nodelist) required |= 1U << *c.find_node(name);
  std::vector<Capacity> caps;
  for (const cluster::Node& node : c.nodes) caps.push_back(capacity_of(node, q, counts));
  for (std::uint32_t set = 1; set < (1U << c.nodes.size()); ++set) {
    if ((set & required) != required) continue;
    const auto nodes = static_cast<std::uint32_t>(std::popcount(set));
    if (nodes < counts.min_nodes || (counts.max_nodes && nodes > *counts.max_nodes)) continue;
    std::uint64_t cpus = 0;
    std::uint64_t gpus = 0;
    std::uint64_t tasks = 0;
    std::uint64_t gpu_tasks = 0;
    bool possible = true;
    for (std::size_t i = 0; i < caps.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      possible = possible && caps[i].possible;
      cpus += caps[i].cpus;
      gpus += caps[i].gpus;
      if (!q.gres_per_task.empty()) gpu_tasks += caps[i].gpus / q.gres_per_task[0].count;
      tasks += caps[i].tasks;
    }
    if (!possible) continue;
    if (!q.overcommit && counts.tasks && (tasks < *counts.tasks || cpus < *counts.tasks * cpt)) {
      continue;
    }
    if (!q.overcommit && !counts.tasks && cpus < nodes * cpt) continue;
    if (!q.gres_per_task.empty() && gpu_tasks < *counts.tasks) continue;
    if (!q.gres_per_job.empty()) {
      if (gpus < q.gres_per_job[0].count || q.gres_per_job[0].count < nodes) continue;
    }
    return true;
  }
  return false;
}

bool same(const cluster::NodeUsage& a, const cluster::NodeUsage& b) {
  return a.cores == b.cores && a.memory_mb == b.memory_mb && a.jobs == b.jobs &&
         a.closed == b.closed && a.gres == b.gres && a.blocked == b.blocked;
}

struct Tally {
  int now = 0;
  int later = 0;
  int pending = 0;
  int never = 0;
};

void one_cluster(std::uint32_t seed, Tally& tally) {
  Random r(seed);
  cluster::Cluster c = random_cluster(r);
  // Every promise holds for both ways to choose.
  if (seed % 2 == 1) c.settings.placement = cluster::Placement::keep_whole;
  cluster::Usage usage(c);
  std::vector<Allocation> running;
  for (int i = 0; i < 10; ++i) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " request " << i);
    const Request q = random_request(r, c);
    SCOPED_TRACE(describe(c, q));
    if (!request::derive_counts(q)) continue;
    const JobPlan plan = place_job(c, usage, q);
    switch (plan.verdict) {
      case Verdict::now: {
        ++tally.now;
        check_promises(c, usage, q, plan);
        if (testing::Test::HasFatalFailure()) return;
        std::vector<cluster::NodeUsage> before;
        for (NodeIndex n = 0; n < c.nodes.size(); ++n) before.push_back(usage.at(n));
        usage.take(plan.allocation);
        usage.release(plan.allocation);
        for (NodeIndex n = 0; n < c.nodes.size(); ++n) ASSERT_TRUE(same(before[n], usage.at(n)));
        usage.take(plan.allocation);
        running.push_back(plan.allocation);
        break;
      }
      case Verdict::later:
        ++tally.later;
        ASSERT_FALSE(running.empty()) << "nothing runs, so there is nothing to wait for";
        break;
      case Verdict::pending:
        ++tally.pending;
        break;
      case Verdict::never:
        ++tally.never;
        // enforce-binding and required nodes of other kinds refuse by rules of their own.
        if (!q.gres_flags.enforce_binding) {
          ASSERT_FALSE(fits_somewhere(c, q, plan.counts)) << plan.error.what() << plan.error.hint;
        }
        break;
    }
    if (!running.empty() && r.one_in(4)) {
      usage.release(running.back());
      running.pop_back();
    }
  }
}

TEST(JobProperties, HoldOnRandomClusters) {
  const std::uint32_t clusters = std::getenv("BERTH_SOAK") != nullptr ? 200000 : 12000;
  Tally tally;
  for (std::uint32_t seed = 0; seed < clusters && !HasFailure(); ++seed) one_cluster(seed, tally);
  // Each answer must really occur, or the test would prove nothing.
  EXPECT_GT(tally.now, 1000);
  EXPECT_GT(tally.later, 1000);
  EXPECT_GT(tally.pending, 100);
  EXPECT_GT(tally.never, 1000);
  RecordProperty("requests", tally.now + tally.later + tally.pending + tally.never);
}

}  // namespace
}  // namespace berth::place
