// Random workloads on random clusters, in virtual time: what the scheduler promises must come true.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "job/state_test_fixture.h"
#include "schedule/horizon_test_check.h"
#include "schedule/reserve_test_fixture.h"
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
  World(std::mt19937& random, bool early_ends, bool arrivals, bool reservations = false)
      : random_(random), early_(early_ends), arrivals_(arrivals), c_({}, random_cluster(random)) {
    options_.planned = 1000;
    options_.small = random() % 2 == 0 ? 100000 : 0;  // both ways of large and small clusters
    options_.each_one = random() % 2 == 0 ? 100000 : 0;
    options_.plan_interval = 1 + random() % 100;
    options_.slice = random() % 2 == 0 ? 0 : 1 + random() % 200;
    if (reservations) reserve();
  }

  void submit() {
    std::string words = random_request(random_);
    // Its memory is not reserved with cores: only whole nodes are for jobs that others count on.
    const std::string name = "r" + std::to_string(random_() % 4);
    const Reservation* wanted = c_.state.find_reservation(name);
    if (wanted != nullptr && wanted->allocation.whole_nodes && random_() % 2 == 0) {
      words += " --reservation=" + name;
    }
    auto ask = job::testing::submission(words);
    const auto done = c_.state.submit(ask, 1, job::testing::kAlice, c_.now);
    if (!done) return;  // more than the cluster has
    waiting_.insert(done->id);
  }

  void run() {
    for (int i = 0; i < 3 + static_cast<int>(random_() % 12); ++i) submit();
    schedule();
    constexpr int kMostEvents = 2000;
    for (int i = 0; i < kMostEvents && !(ends_.empty() && waiting_.empty()); ++i) {
      const std::optional<Time> due = c_.state.reservations().empty() ? std::nullopt : next_due();
      ASSERT_FALSE(ends_.empty() && !due) << "jobs wait on an empty cluster: " << wait_list();
      if (arrivals_ && waiting_.size() < 12 && random_() % 3 == 0) {
        c_.now += static_cast<Time>(random_() % 20);
        if (!ends_.empty()) c_.now = std::min(c_.now, ends_.begin()->first);
        if (due) c_.now = std::min(c_.now, *due);
        end_jobs();  // one whose time is up has ended before somebody comes
        submit();
      } else {
        const Time end = ends_.empty() ? *due : ends_.begin()->first;
        c_.now = std::max(c_.now, due ? std::min(end, *due) : end);
        end_jobs();
      }
      if (due && c_.now >= *due) c_.state.tick(c_.now);
      schedule();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(waiting_.empty()) << "somebody starves";
  }

 private:
  void end_jobs() {
    while (!ends_.empty() && ends_.begin()->first <= c_.now) {
      const JobId id = ends_.begin()->second;
      ends_.erase(ends_.begin());
      c_.begun(id);
      c_.runs_to_the_end(id);
    }
  }

  std::string wait_list() const {
    std::string out;
    for (const JobId id : waiting_) {
      out += c_.at(id).what->submit_line + " (" + c_.at(id).reason + "); ";
    }
    return out;
  }

  /// Some, of whole nodes, of cores or of GPUs; they may be refused.
  void reserve() {
    for (int i = 0; i < 3; ++i) {
      const auto minutes = [&](std::uint32_t most) { return std::to_string(1 + random_() % most); };
      std::vector<reservation::Key> keys = {{"ReservationName", "r" + std::to_string(i)},
                                            {"StartTime", "now+" + minutes(90) + "minutes"},
                                            {"Duration", minutes(90)}};
      const auto kind = random_() % 4;
      if (kind == 0) keys.emplace_back("Nodes", "n" + minutes(3));
      if (kind == 1) keys.emplace_back("NodeCnt", minutes(2));
      if (kind == 2) keys.emplace_back("CoreCnt", minutes(6));
      if (kind == 3) keys.emplace_back("TRES", "gres/gpu=" + minutes(3));
      if (const auto made = testing::reserve(c_.state, keys, c_.now)) reserved_.push_back(*made);
    }
  }
  [[nodiscard]] std::optional<Time> next_due() const {
    std::optional<Time> next;
    for (const auto& [name, one] : c_.state.reservations()) {
      for (const Time at : {one.start, one.end}) {
        if (at > c_.now && (!next || at < *next)) next = at;
      }
    }
    return next;
  }

  /// Nobody has what another's reservation keeps; who is in one stays within it.
  void keeps_to_reservations(const job::Job& job) const {
    const reservation::Window runs{c_.now, c_.now + Time{*job.time_limit_minutes} * 60};
    for (const Reservation& one : reserved_) {
      const reservation::Window window = one.window(c_.now);
      for (const cluster::NodeShare& share : job.allocation.nodes) {
        const cluster::NodeShare* kept = one.share_of(share.node);
        if (job.reservation == one.name) {
          ASSERT_NE(kept, nullptr) << "job " << job.id;
          ASSERT_TRUE(kept->cores.contains(share.cores)) << "job " << job.id;
          ASSERT_LE(window.from, runs.from);
          ASSERT_LE(runs.until, window.until);
        } else if (kept != nullptr && window.meets(runs)) {
          ASSERT_FALSE(one.allocation.whole_nodes) << "job " << job.id << " in " << one.name;
          ASSERT_FALSE(kept->cores.intersects(share.cores)) << "job " << job.id;
          ASSERT_FALSE(kept->gpus().intersects(share.gpus())) << "job " << job.id;
        }
      }
    }
    ASSERT_TRUE(job.reservation.empty() || job.reservation == job.what->reservation);
  }

  void schedule() {
    constexpr int kMostSlices = 100000;
    for (int i = 0; i < kMostSlices && scheduler_.run(c_.state, c_.now, options_).unfinished; ++i) {
    }
    c_.state.take_effects();
    c_.state.take_dirty();
    testing::expect_up_to_date(horizon_, c_.state, c_.now);
    // Who asks for a reservation is before the others, and gets nothing that they could have.
    for (const bool asks : {true, false}) look_at_all(asks);
  }

  void look_at_all(bool asks) {
    one_before_moved_ = false;
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      const job::Job& job = c_.at(*at);
      if (asks == job.what->reservation.empty()) {
        ++at;
        continue;
      }
      // More than its partition has, or its reservation is over: it waits for ever.
      if (job.reason.starts_with("Partition") || job.held) {
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
    if (job.planned_start == 0) {
      // One before it starts at another time than was known, and the rest of its reservation is too
      // short for it.
      if (!job.what->reservation.empty()) promises_.erase(job.id);
      return std::next(at);
    }
    const auto [known, fresh] = promises_.emplace(job.id, job.planned_start);
    if (!one_before_moved_) {
      EXPECT_LE(job.planned_start, known->second) << "job " << job.id << " at " << c_.now;
    }
    one_before_moved_ = one_before_moved_ || job.planned_start < known->second;
    known->second = job.planned_start;
    return std::next(at);
  }

  At started(const job::Job& job, At at) {
    keeps_to_reservations(job);
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
  Horizon horizon_;
  std::set<JobId> waiting_;
  bool one_before_moved_ = false;
  std::map<JobId, Time> promises_;
  std::set<std::pair<Time, JobId>> ends_;
  std::vector<Reservation> reserved_;
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

TEST(Backfill, ReservationsAreKept) {
  for (int seed = 0; seed < rounds(); ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    World world(random, seed % 2 == 1, seed % 4 >= 2, true);
    world.run();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace berth::schedule
