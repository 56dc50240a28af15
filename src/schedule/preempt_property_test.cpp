// Random workloads in tiers, in virtual time: who must give way does, nobody else, and the place
// goes to the one it was taken for.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "job/state_test_fixture.h"
#include "schedule/horizon_test_check.h"
#include "schedule/preempt.h"
#include "schedule/schedule.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::PreemptMode;
using job::Time;

constexpr auto kTiers = std::to_array<const char*>({"low", "mid", "high"});

cluster::Cluster random_cluster(std::mt19937& random) {
  cluster::Cluster c;
  const auto nodes = 2 + random() % 4;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    cluster::Node node;
    node.name = "n" + std::to_string(i + 1);
    node.sockets = 1 + random() % 2;
    node.cores_per_socket = 2 + random() % 5;
    node.memory_mb = 8000 + random() % 3 * 8000;
    cluster::Gres gpus;
    gpus.name = "gpu";
    for (std::uint32_t g = 0; g < random() % 5; ++g) {
      cluster::Device device;
      device.sockets = Bits::of({g % node.sockets});
      device.record = static_cast<int>(g);
      gpus.devices.push_back(std::move(device));
    }
    if (!gpus.devices.empty()) node.gres = {gpus};
    c.nodes.push_back(std::move(node));
  }
  c.index_nodes();
  c.settings.gres_types = {"gpu"};
  c.settings.def_mem_per_cpu_mb = 500;
  for (const char* name : kTiers) {
    cluster::Partition all;
    all.name = name;
    all.is_default = c.partitions.empty();
    for (std::uint32_t i = 0; i < nodes; ++i) all.nodes.push_back(i);
    c.partitions.push_back(std::move(all));
  }
  return c;
}

job::Policy random_policy(std::mt19937& random, bool suspends) {
  job::Policy policy;
  policy.requeue_delay = random() % 200;
  policy.preempt.by_tier = true;
  policy.preempt.youngest_first = random() % 2 == 0;
  policy.preempt.exempt = random() % 3 == 0 ? static_cast<Time>(random() % 600) : 0;
  policy.preempt.mode = suspends            ? PreemptMode::suspend
                        : random() % 2 == 0 ? PreemptMode::cancel
                                            : PreemptMode::requeue;
  for (std::uint32_t i = 0; i < kTiers.size(); ++i) {
    job::PartitionPolicy& partition = policy.partitions[kTiers[i]];
    partition.priority_tier = 1 + i;
    if (random() % 4 == 0) partition.grace = static_cast<Time>(random() % 300);
    if (random() % 8 == 0) partition.preempt_mode = PreemptMode::off;
    if (random() % 6 == 0) partition.preempt_mode = PreemptMode::cancel;
  }
  return policy;
}

std::string random_request(std::mt19937& random) {
  std::string out = std::string("-p ") + kTiers[random() % 3];
  out += " -t " + std::to_string(1 + random() % 60);
  if (random() % 4 == 0) out += " -N" + std::to_string(1 + random() % 2);
  out += " -n" + std::to_string(1 + random() % 4);
  if (random() % 2 == 0) out += " --gpus=" + std::to_string(1 + random() % 3);
  if (random() % 10 == 0) out += " --exclusive";
  if (random() % 5 == 0) out += " --mem=" + std::to_string(500 + random() % 6000);
  if (random() % 5 == 0) out += " --no-requeue";
  return out;
}

class World {
 public:
  World(std::mt19937& random, bool suspends)
      : random_(random), c_(random_policy(random, suspends), random_cluster(random)) {
    options_.small = random() % 2 == 0 ? 100000 : 0;
    options_.each_one = random() % 2 == 0 ? 100000 : 0;
    options_.plan_interval = 1 + random() % 100;
    options_.slice = random() % 2 == 0 ? 0 : 1 + random() % 200;
  }

  void run() {
    int to_come = 10 + static_cast<int>(random_() % 20);
    constexpr int kMostEvents = 5000;
    for (int i = 0; i < kMostEvents && (to_come > 0 || left() > 0); ++i) {
      if (to_come > 0 && random_() % 2 == 0) {
        c_.now += static_cast<Time>(random_() % 20);
        c_.state.tick(c_.now);
        (void)c_.state.submit(job::testing::submission(random_request(random_)), 1,
                              job::testing::kAlice, c_.now);
        --to_come;
      } else if (!advance() && to_come == 0) {
        break;
      }
      schedule();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(left(), 0U) << "somebody starves: " << wait_list();
  }

 private:
  /// Jobs that have not ended; without those that nothing here can hold.
  [[nodiscard]] std::size_t left() const {
    std::size_t count = 0;
    for (const auto& [id, job] : c_.state.jobs()) {
      const bool never = job.reason == "BadConstraints" || job.reason.starts_with("Partition");
      if (!job::ended(job.base) && !never) ++count;
    }
    return count;
  }
  std::string wait_list() const {
    std::string out;
    for (const cluster::Node& node : c_.state.cluster().nodes) {
      const cluster::Gres* gpus = node.find_gres("gpu");
      out += node.name + " " + std::to_string(node.cores()) + " cores " +
             std::to_string(gpus == nullptr ? 0 : gpus->devices.size()) + " GPUs\n";
    }
    for (const auto& [id, job] : c_.state.jobs()) {
      if (job::ended(job.base) && !job.running) continue;
      out += std::to_string(id) + " " + job.what->submit_line + " " + c_.shown(id);
      for (const cluster::NodeShare& share : job.allocation.nodes) {
        out += " " + c_.state.cluster().nodes[share.node].name + ":" + share.cores.ranges() + "/" +
               share.gpus().ranges();
      }
      if (job.preempted) out += " gives way to " + std::to_string(job.preempted->by);
      out += "\n";
    }
    return out;
  }

  /// The next thing that happens: a job is over, a node has given one up, a timer is due.
  bool advance() {
    std::optional<Time> next = c_.state.next_deadline();
    if (!events_.empty())
      next = std::min(next.value_or(events_.begin()->first), events_.begin()->first);
    if (!next) return false;
    c_.now = std::max(c_.now, *next);
    while (!events_.empty() && events_.begin()->first <= c_.now) {
      const Event event = events_.begin()->second;
      events_.erase(events_.begin());
      const job::Job* job = c_.state.find(event.job);
      if (job == nullptr || job->attempt != event.attempt || !job->running) continue;
      if (job->flags.completing) {
        c_.gone(event.job);
      } else if (!event.gone && job->base == job::Base::running) {
        c_.script_ends(event.job);
      } else if (!event.gone) {
        events_.emplace(c_.now + 50, event);  // suspended: not now
      }
    }
    c_.state.tick(c_.now);
    answer();
    return true;
  }

  void answer() {
    for (std::vector<job::Effect> effects = c_.state.take_effects(); !effects.empty();
         effects = c_.state.take_effects()) {
      for (const job::Effect& effect : effects) {
        if (const auto* begin = std::get_if<job::BeginJob>(&effect)) {
          c_.begun(begin->job);
          const job::Job& job = c_.at(begin->job);
          const Time limit = Time{*job.time_limit_minutes} * 60;
          events_.emplace(c_.now + 1 + static_cast<Time>(random_()) % limit,
                          Event{begin->job, job.attempt, false});
        } else if (const auto* end = std::get_if<job::EndJob>(&effect)) {
          events_.emplace(c_.now + static_cast<Time>(random_() % 4),
                          Event{end->job, end->attempt, true});
        }
      }
    }
    c_.state.discard_changes();
  }

  void schedule() {
    answer();
    const std::optional<JobId> first = first_in_queue();
    const cluster::Usage before = c_.state.usage();
    told_.clear();
    for (const JobId id : c_.state.holding()) {
      if (c_.at(id).gives_way()) told_.insert(id);
    }
    constexpr int kMostSlices = 100000;
    for (int i = 0; i < kMostSlices && scheduler_.run(c_.state, c_.now, options_).unfinished; ++i) {
    }
    testing::expect_up_to_date(horizon_, c_.state, c_.now);
    if (first) look_at(*first, before);
    answer();
  }

  [[nodiscard]] std::optional<JobId> first_in_queue() const {
    if (c_.state.queue().empty()) return std::nullopt;
    return c_.state.queue().begin()->id;
  }
  [[nodiscard]] std::uint32_t tier(const job::Job& job) const {
    return tiers_of(c_.state, job).front().first;
  }
  /// It would give way, and be gone.
  [[nodiscard]] bool goes(JobId to, JobId id) const {
    const job::Job& other = c_.at(id);
    if (c_.state.preempt_mode(other) == PreemptMode::suspend) return false;  // frees too little
    return stays(c_.state, {&c_.at(to), tier(c_.at(to))}, other, c_.now) == Stays::no;
  }
  [[nodiscard]] bool goes_for(JobId to, JobId id) const {
    const job::Job& other = c_.at(id);
    return other.gives_way() && other.preempted->by == to;
  }

  /// Could it start if these were gone, whatever is planned?
  bool fits(const job::Job& job, const cluster::Usage& usage, const std::set<JobId>& gone) {
    cluster::Usage then = usage;
    for (const JobId id : gone) then.release(c_.at(id).allocation);
    const place::Prepared prepared(c_.state.cluster(), job.what->request);
    return prepared.now({then, false}).has_value();
  }

  void look_at(JobId first, const cluster::Usage& before) {
    const job::Job& job = c_.at(first);
    std::set<JobId> ending;
    std::set<JobId> chosen;
    bool suspends = false;
    for (const JobId id : c_.state.holding()) {
      const job::Job& other = c_.at(id);
      suspends = suspends || other.parked();
      if (other.start_time == c_.now && other.attempt > 0 && !before_holds(before, other)) continue;
      if (goes_for(first, id) && !told_.contains(id) && !other.parked()) {
        chosen.insert(id);
      } else if (other.flags.completing && (!other.gives_way() || told_.contains(id))) {
        ending.insert(id);
      }
    }
    if (suspends) return;
    // Nobody is asked to go who is not needed. On a large cluster somebody may have been started
    // beside the plans before they were made anew.
    const bool others_started = std::ranges::any_of(c_.state.holding(), [&](JobId id) {
      return c_.at(id).start_time == c_.now && c_.at(id).flags.configuring;
    });
    if (options_.small == 0 && others_started) chosen.clear();
    for (const JobId spared : chosen) {
      std::set<JobId> others = ending;
      others.insert(chosen.begin(), chosen.end());
      others.erase(spared);
      EXPECT_FALSE(fits(job, before, others))
          << "job " << first << " could start without the end of " << spared << " at " << c_.now
          << "\n"
          << wait_list();
    }
    // Nobody waits for what others would have to give up.
    if (!job.pending() || c_.state.giving_way_to(first) != nullptr || job.reason == "BeginTime")
      return;
    if (job.reason == "BadConstraints" || job.reason.starts_with("Partition")) return;
    // A large cluster makes plans now and then; who gives way is asked with them.
    if (options_.small == 0) return;
    std::set<JobId> could;
    for (const JobId id : c_.state.holding()) {
      if (c_.at(id).flags.completing) return;  // it is looked at again when that one is gone
      if (goes(first, id)) could.insert(id);
    }
    EXPECT_FALSE(fits(job, c_.state.usage(), could))
        << "job " << first << " waits for jobs that would give way at " << c_.now << "\n"
        << wait_list();
  }
  [[nodiscard]] bool before_holds(const cluster::Usage& before, const job::Job& job) const {
    const cluster::NodeShare& share = job.allocation.nodes.front();
    return before.at(share.node).cores.contains(share.cores);
  }

  struct Event {
    JobId job = 0;
    std::uint32_t attempt = 0;
    bool gone = false;
  };
  std::mt19937& random_;
  job::testing::Controller c_;
  Scheduler scheduler_;
  Options options_;
  Horizon horizon_;
  std::multimap<Time, Event> events_;
  std::set<JobId> told_;  // gave way before the last look
};

int rounds() {
  return std::getenv("BERTH_SOAK") != nullptr ? 10000 : 150;
}

TEST(Preemption, TakesWhatItMayAndNoMore) {
  for (int seed = 0; seed < rounds(); ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    World world(random, seed % 3 == 2);
    world.run();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::schedule
