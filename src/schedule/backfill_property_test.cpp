// Random workloads on random clusters, in virtual time: what the scheduler promises must come true.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "job/state_test_fixture.h"
#include "schedule/schedule.h"

namespace berth::schedule {
namespace {

using job::JobId;
using job::Time;

cluster::Cluster random_cluster(std::mt19937& random) {
  cluster::Cluster c;
  const auto nodes = 3 + random() % 6;  // as many as one job asks for
  for (std::uint32_t i = 0; i < nodes; ++i) {
    cluster::Node node;
    node.name = "n" + std::to_string(i + 1);
    node.sockets = 1 + random() % 2;
    node.cores_per_socket = 2 + random() % 7;
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
  cluster::Partition all;
  all.name = "main";
  all.is_default = true;
  for (std::uint32_t i = 0; i < nodes; ++i) all.nodes.push_back(i);
  c.partitions.push_back(std::move(all));
  return c;
}

std::string random_request(std::mt19937& random) {
  std::string out = "-t " + std::to_string(1 + random() % 60);
  if (random() % 4 == 0) out += " -N" + std::to_string(1 + random() % 3);
  out += " -n" + std::to_string(1 + random() % 4);
  if (random() % 3 == 0) out += " -c" + std::to_string(1 + random() % 3);
  if (random() % 2 == 0) out += " --gpus=" + std::to_string(1 + random() % 4);
  if (random() % 10 == 0) out += " --exclusive";
  if (random() % 5 == 0) out += " --mem=" + std::to_string(500 + random() % 6000);
  return out;
}

/// Jobs, their real run times, and the clock.
class World {
 public:
  World(std::mt19937& random, bool early_ends, bool arrivals)
      : random_(random), early_(early_ends), arrivals_(arrivals), c_({}, random_cluster(random)) {
    options_.planned = 1000;
    options_.small = random() % 2 == 0 ? 100000 : 0;  // both ways of large and small clusters
    options_.each_one = random() % 2 == 0 ? 100000 : 0;
    options_.plan_interval = 1 + random() % 100;
    options_.slice = random() % 2 == 0 ? 0 : 1 + random() % 200;
  }

  void submit() {
    auto ask = job::testing::submission(random_request(random_));
    const auto done = c_.state.submit(ask, 1, job::testing::kAlice, c_.now);
    if (!done) return;  // more than the cluster has
    waiting_.insert(done->id);
  }

  void run() {
    for (int i = 0; i < 3 + static_cast<int>(random_() % 12); ++i) submit();
    schedule();
    constexpr int kMostEvents = 2000;
    for (int i = 0; i < kMostEvents && !(ends_.empty() && waiting_.empty()); ++i) {
      ASSERT_FALSE(ends_.empty()) << "jobs wait on an empty cluster: " << wait_list();
      if (arrivals_ && waiting_.size() < 12 && random_() % 3 == 0) {
        c_.now += static_cast<Time>(random_() % 20);
        c_.now = std::min(c_.now, ends_.begin()->first);
        submit();
      } else {
        c_.now = std::max(c_.now, ends_.begin()->first);
        while (!ends_.empty() && ends_.begin()->first <= c_.now) {
          const JobId id = ends_.begin()->second;
          ends_.erase(ends_.begin());
          c_.begun(id);
          c_.runs_to_the_end(id);
        }
      }
      schedule();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(waiting_.empty()) << "somebody starves";
  }

 private:
  std::string wait_list() const {
    std::string out;
    for (const JobId id : waiting_) {
      out += c_.at(id).what->submit_line + " (" + c_.at(id).reason + "); ";
    }
    return out;
  }

  void schedule() {
    constexpr int kMostSlices = 100000;
    for (int i = 0; i < kMostSlices && scheduler_.run(c_.state, c_.now, options_).unfinished; ++i) {
    }
    c_.state.take_effects();
    c_.state.take_dirty();
    one_before_moved_ = false;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      const job::Job& job = c_.at(*at);
      if (job.reason.starts_with("Partition")) {  // more than its partition has: it waits for ever
        at = waiting_.erase(at);
        continue;
      }
      at = job.pending() ? promised(job, at) : started(job, at);
    }
  }

  using At = std::set<JobId>::iterator;
  /// A start that was promised may come nearer. It goes further away only when a job before it
  /// starts earlier than was known, and so elsewhere; never for the sake of one behind it. (Jobs
  /// are walked through in the order of the queue.)
  At promised(const job::Job& job, At at) {
    if (job.planned_start == 0) return std::next(at);
    const auto [known, fresh] = promises_.emplace(job.id, job.planned_start);
    if (!one_before_moved_) {
      EXPECT_LE(job.planned_start, known->second) << "job " << job.id << " at " << c_.now;
    }
    one_before_moved_ = one_before_moved_ || job.planned_start < known->second;
    known->second = job.planned_start;
    return std::next(at);
  }

  At started(const job::Job& job, At at) {
    if (const auto known = promises_.find(job.id); known != promises_.end()) {
      EXPECT_LE(c_.now, known->second) << "job " << job.id << " was promised an earlier start";
      one_before_moved_ = one_before_moved_ || c_.now < known->second;
    }
    const Time limit = Time{*job.time_limit_minutes} * 60;
    const Time runs = early_ ? static_cast<Time>(random_()) % limit + 1 : limit;
    ends_.emplace(c_.now + runs, job.id);
    return waiting_.erase(at);
  }

  std::mt19937& random_;
  bool early_;
  bool arrivals_;
  job::testing::Controller c_;
  Scheduler scheduler_;
  Options options_;
  std::set<JobId> waiting_;
  bool one_before_moved_ = false;
  std::map<JobId, Time> promises_;
  std::set<std::pair<Time, JobId>> ends_;
};

int rounds() {
  return std::getenv("BERTH_SOAK") != nullptr ? 10000 : 500;
}

TEST(Backfill, WhatIsPromisedComesTrue) {
  for (int seed = 0; seed < rounds(); ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    World world(random, seed % 2 == 1, seed % 4 >= 2);
    world.run();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::schedule
