// Random steps in random jobs: nothing is given twice, everything given was the job's, every rank
// runs once, and a step that waits says for whom.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

class RandomSteps {
 public:
  explicit RandomSteps(std::uint32_t seed) : random_(seed), cluster_(corpus::make()) {
    cluster_.settings.constrain_devices = pick(2) == 0;
  }

  void play() {
    JobFacts job = random_job();
    StepState state(job);
    for (int i = 0; i < 12; ++i) {
      const request::Request srun = random_srun();
      const std::size_t rotation = state.rotation;
      const StepPlan plan = place_step(cluster_, job, srun, state);
      if (plan.verdict != StepVerdict::starts) {
        EXPECT_EQ(state.rotation, rotation);
      }
      switch (plan.verdict) {
        case StepVerdict::starts:
          check_plan(job, plan);
          state.start(plan);
          check_held(job, state);
          break;
        case StepVerdict::waits:
          EXPECT_FALSE(plan.waits_for.empty());
          EXPECT_FALSE(plan.waits_for_steps.empty());
          check_starts_when_empty(job, srun, rotation);
          break;
        case StepVerdict::refused:
          EXPECT_FALSE(plan.error.messages.empty());
          break;
      }
      if (pick(3) == 0 && !state.running().empty()) {
        state.finish(state.running()[pick(state.running().size())].id);
      }
    }
  }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }
  std::optional<std::uint32_t> maybe(std::uint32_t most) {
    if (pick(3) != 0) return std::nullopt;
    return static_cast<std::uint32_t>(1 + pick(most));
  }

  JobFacts random_job() {
    JobFacts job;
    const std::size_t count = 1 + pick(4);
    for (cluster::NodeIndex i = 0; i < count; ++i) {
      const cluster::NodeIndex node = pick(2) == 0 ? i : i + 2;
      if (!job.allocation.nodes.empty() && job.allocation.nodes.back().node >= node) continue;
      job.allocation.nodes.push_back(random_share(node));
    }
    if (pick(2) == 0) job.request.gres_per_node = {{"gpu", "", 1 + pick(4)}};
    if (pick(2) == 0) job.request.gres_per_job = {{"gpu", "", 1 + pick(6)}};
    job.memory = request::Memory{request::MemoryPer::node, 4096};
    return job;
  }

  cluster::NodeShare random_share(cluster::NodeIndex index) {
    const cluster::Node& node = cluster_.nodes[index];
    cluster::NodeShare share;
    share.node = index;
    for (std::size_t core = 0; core < node.cores(); ++core) {
      if (pick(2) == 0) share.cores.set(core);
    }
    share.cores.set(pick(node.cores()));
    share.cpus = static_cast<std::uint32_t>(share.cores.count()) * node.threads_per_core;
    share.usable_cpus = share.cpus;
    share.memory_mb = 4096;
    if (const cluster::Gres* gpus = node.find_gres("gpu")) {
      cluster::GresShare held{"gpu", std::vector<std::uint64_t>(gpus->devices.size())};
      for (auto& units : held.units) units = pick(2);
      if (held.total() > 0) share.gres.push_back(held);
    }
    return share;
  }

  request::Request random_srun() {
    using namespace request;
    Request srun;
    srun.command = Command::srun;
    srun.ntasks = maybe(20);
    srun.ntasks_per_node = maybe(8);
    srun.cpus_per_task = maybe(4);
    srun.ntasks_per_core = maybe(2);
    srun.threads_per_core = maybe(2);
    srun.ntasks_per_gpu = pick(8) == 0 ? maybe(3) : std::nullopt;
    srun.cpus_per_gpu = pick(8) == 0 ? maybe(3) : std::nullopt;
    srun.exact = pick(2) == 0;
    srun.overlap = pick(6) == 0;
    srun.overcommit = pick(6) == 0;
    if (const auto nodes = maybe(4)) {
      srun.nodes = NodeCount{*nodes, *nodes + static_cast<std::uint32_t>(pick(2)), false, {}};
      srun.given.put(Opt::nodes, {});
    }
    if (const auto mb = maybe(6000)) {
      srun.memory = Memory{static_cast<MemoryPer>(pick(3)), *mb};
    }
    if (const auto n = maybe(4)) srun.gres_per_node = {{"gpu", pick(4) == 0 ? "a100" : "", *n}};
    if (const auto n = maybe(3)) srun.gres_per_task = {{"gpu", "", *n}};
    if (const auto n = maybe(6)) srun.gres_per_job = {{"gpu", "", *n}};
    if (pick(2) == 0) srun.distribution = random_distribution();
    if (pick(3) == 0) srun.gpu_bind = random_bind();
    if (pick(3) == 0) {
      srun.cpu_bind.emplace();
      srun.cpu_bind->kind = static_cast<CpuBindKind>(pick(6));
    }
    return srun;
  }

  request::Distribution random_distribution() {
    request::Distribution dist;
    dist.nodes = static_cast<request::NodeDist>(pick(3));
    if (pick(2) == 0) dist.sockets = static_cast<request::CoreDist>(pick(3));
    dist.plane_size = static_cast<std::uint32_t>(1 + pick(4));
    dist.pack = pick(3) == 0;
    dist.text = "block";
    return dist;
  }

  request::GpuBind random_bind() {
    request::GpuBind bind;
    bind.kind = static_cast<request::GpuBindKind>(pick(6));
    bind.count = static_cast<std::uint32_t>(pick(3));
    for (std::size_t i = pick(4); i > 0; --i) bind.list.push_back(Bits::of({pick(10)}));
    return bind;
  }

  void check_plan(const JobFacts& job, const StepPlan& plan) const {
    ASSERT_EQ(plan.tasks.size(), plan.ntasks);
    std::uint32_t tasks = 0;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      const StepNode& at = plan.nodes[i];
      const auto mine =
          std::ranges::find(job.allocation.nodes, at.share.node, &cluster::NodeShare::node);
      ASSERT_NE(mine, job.allocation.nodes.end());
      EXPECT_TRUE(mine->cores.contains(at.share.cores));
      EXPECT_TRUE(mine->gpus().contains(at.share.gpus()));
      EXPECT_LE(at.share.memory_mb, mine->memory_mb);
      tasks += static_cast<std::uint32_t>(at.ranks.size());
      const cluster::Node& node = cluster_.nodes[at.share.node];
      for (std::size_t local = 0; local < at.ranks.size(); ++local) {
        const TaskPlan& task = plan.tasks[at.ranks[local]];
        EXPECT_EQ(task.local_id, local);
        EXPECT_EQ(task.node_id, i);
        EXPECT_TRUE(task.cpus.any());
        EXPECT_TRUE(Bits::first_n(node.cpus()).contains(task.cpus));
        EXPECT_TRUE(at.share.gpus().contains(task.gpus));
        EXPECT_EQ(task.gpus.empty(), at.share.gpus().empty());
        const Environment env = task_environment(cluster_, job, plan, task, {});
        EXPECT_EQ(env.at("SLURM_PROCID"), std::to_string(at.ranks[local]));
      }
    }
    EXPECT_EQ(tasks, plan.ntasks);
  }

  static void check_held(const JobFacts& job, const StepState& state) {
    for (const auto& mine : job.allocation.nodes) {
      Bits cores;
      Bits gpus;
      std::uint64_t memory = 0;
      for (const StepPlan& step : state.running()) {
        if (!step.counted) continue;
        for (const StepNode& at : step.nodes) {
          if (at.share.node != mine.node) continue;
          EXPECT_FALSE(cores.intersects(at.share.cores));
          EXPECT_FALSE(gpus.intersects(at.share.gpus()));
          cores |= at.share.cores;
          gpus |= at.share.gpus();
          memory += at.share.memory_mb;
        }
      }
      EXPECT_LE(memory, mine.memory_mb);
    }
  }

  void check_starts_when_empty(const JobFacts& job, const request::Request& srun,
                               std::size_t rotation) const {
    // "As many tasks as fit" are more in an empty job: another question.
    if (srun.cpus_per_task && !srun.ntasks && !srun.ntasks_per_node) return;
    StepState empty(job);
    empty.rotation = rotation;
    const StepPlan plan = place_step(cluster_, job, srun, empty);
    // Limits by node may put more tasks on a node than it has CPUs: found out at launch.
    const bool created =
        plan.verdict == StepVerdict::starts || plan.error.code == Code::cpu_bind_failed;
    EXPECT_TRUE(created) << plan.error.what();
  }

  std::mt19937 random_;
  cluster::Cluster cluster_;
};

TEST(StepProperties, NothingTwiceAndNothingForeign) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    RandomSteps(seed).play();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace berth::place
