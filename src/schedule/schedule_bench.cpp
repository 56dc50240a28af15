// One pass of the scheduler over a long queue on a large, busy cluster. Prints one line of CSV;
// bench/schedule calls it for many sizes.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "place/large_cluster_test_fixture.h"
#include "schedule/schedule.h"

namespace berth::schedule {
namespace {

/// CPU time of this process, so that a busy machine does not change the result.
struct Clock {
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
  }
};

double ms_since(double start) {
  return Clock::now() - start;
}

/// The same numbers in every run.
class Random {
 public:
  std::uint32_t below(std::uint32_t bound) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>(state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_ = 42;
};

wire::SubmitJob submission(const std::vector<std::string>& words) {
  wire::SubmitJob out;
  wire::Asked& asked = *out.mutable_asked();
  asked.set_command("sbatch");
  for (const std::string& word : words) asked.add_words(word);
  asked.add_words("job.sh");
  asked.set_script("#!/bin/sh\nsrun app\n");
  asked.set_directory("/home/alice");
  asked.set_submit_line("sbatch job.sh");
  asked.set_host("login");
  return out;
}

struct Bench {
  explicit Bench(std::uint32_t nodes, job::Policy policy)
      : state(place::testing::large_cluster(nodes), std::move(policy)) {
    for (const cluster::Node& node : state.cluster().nodes) {
      wire::NodeReport report;
      report.set_name(node.name);
      report.set_memory_mb(node.memory_mb);
      wire::GresFound* found = report.add_gres();
      found->set_name("gpu");
      found->set_count(8);
      static_cast<void>(state.register_node(report, {}, now));
    }
    settle();
  }
  void settle() {
    state.take_effects();
    state.take_dirty();
    state.take_changed();
  }
  job::JobId submit(const std::vector<std::string>& words) {
    const auto done = state.submit(submission(words), 1, {1001, 1001, false}, now);
    if (done) return done->id;
    fmt::print(stderr, "{}\n", done.error().what());
    std::exit(1);
  }
  /// What a node that runs the job would say when it is over.
  void ends(job::JobId id) {
    for (const std::string& node : std::vector<std::string>(state.find(id)->nodes)) {
      wire::JobBegun begun;
      begun.set_node(node);
      begun.set_job_id(id);
      begun.set_attempt(state.find(id)->attempt);
      state.job_begun(begun, now);
    }
    static_cast<void>(state.cancel(id, {{0, 0, true}, {}, false, false, false}, now));
    for (const std::string& node : std::vector<std::string>(state.find(id)->nodes)) {
      wire::JobGone gone;
      gone.set_node(node);
      gone.set_job_id(id);
      gone.set_attempt(state.find(id)->attempt);
      state.job_gone(gone, now);
    }
  }

  job::Time now = 1000000;
  job::State state;
};

std::vector<std::string> shape(Random& random) {
  constexpr std::array<int, 8> kGpus = {1, 1, 2, 2, 4, 4, 8, 8};
  constexpr std::array<int, 8> kNodes = {1, 1, 1, 1, 1, 2, 4, 16};
  const int gpus = kGpus[random.below(kGpus.size())];
  const int nodes = kNodes[random.below(kNodes.size())];
  return {fmt::format("-N{}", nodes),
          fmt::format("--gpus-per-node={}", gpus),
          fmt::format("--ntasks-per-node={}", gpus),
          fmt::format("--cpus-per-task={}", 1 + random.below(8)),
          fmt::format("--mem={}G", 4 + random.below(28) * static_cast<std::uint32_t>(gpus)),
          fmt::format("--time={}", 10 + random.below(1430))};
}

std::size_t in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int bench(std::uint32_t nodes, std::uint32_t jobs, std::uint32_t shapes, std::size_t planned,
          std::size_t slice, std::uint32_t repeat) {
  job::Policy policy;
  policy.max_job_count = jobs + nodes * 8 + 1000;
  Bench b(nodes, policy);
  Random random;
  Scheduler scheduler;
  Options options;
  options.planned = planned;
  // A busy cluster: jobs that came in some order, until hardly anything is free.
  std::vector<job::JobId> running;
  auto start = Clock::now();
  for (std::uint32_t gpus = 0; gpus < nodes * 8;) {
    const std::uint32_t here = std::array<std::uint32_t, 4>{1, 2, 4, 8}[random.below(4)];
    running.push_back(b.submit({"-N1", fmt::format("--gpus={}", here), "--mem=16G", "-n1",
                                fmt::format("--cpus-per-task={}", 1 + random.below(7)),
                                fmt::format("--time={}", 5 + 60 * random.below(33))}));
    gpus += here;
  }
  scheduler.run(b.state, b.now, options);
  const double fill_ms = ms_since(start);
  const std::size_t holding = b.state.holding().size();
  b.settle();
  for (const job::JobId id : running) {
    if (b.state.find(id)->pending()) {
      static_cast<void>(b.state.cancel(id, {{0, 0, true}, {}, false, false, false}, b.now));
    }
  }
  b.settle();
  // The queue.
  std::vector<std::vector<std::string>> kinds;
  for (std::uint32_t i = 0; i < shapes; ++i) kinds.push_back(shape(random));
  const std::size_t before = in_use();
  start = Clock::now();
  for (std::uint32_t i = 0; i < jobs; ++i) b.submit(kinds[random.below(shapes)]);
  const double submit_us = ms_since(start) * 1000 / jobs;
  b.settle();
  const std::size_t bytes = (in_use() - before) / jobs;
  // Cold: nothing of these requests is known. Warm: a later pass. The median of several: what else
  // the machine does shows in CPU time too.
  Figures cold;
  std::vector<double> cold_all;
  for (std::uint32_t i = 0; i < repeat; ++i) {
    scheduler = {};
    start = Clock::now();
    const Figures figures = scheduler.run(b.state, b.now, options);
    cold_all.push_back(ms_since(start));
    if (i == 0) cold = figures;
    b.settle();
  }
  const double cold_ms = median(cold_all);
  const auto after_end = [&](job::Time later) {
    while (!running.empty() && !b.state.find(running.back())->running) running.pop_back();
    b.ends(running.back());
    running.pop_back();
    b.settle();
    b.now += later;
    start = Clock::now();
    scheduler.run(b.state, b.now, options);
    const double took = ms_since(start);
    b.settle();
    return took;
  };
  after_end(options.plan_interval);
  std::vector<double> warm_all;
  std::vector<double> end_all;
  for (std::uint32_t i = 0; i < repeat; ++i) {
    warm_all.push_back(after_end(options.plan_interval));
    end_all.push_back(after_end(0));
  }
  const double warm_ms = median(warm_all);
  const double end_ms = median(end_all);
  // The same in slices: how long does the longest take?
  options.slice = slice;
  double longest_ms = 0;
  b.now += options.plan_interval;
  while (!running.empty() && !b.state.find(running.back())->running) running.pop_back();
  b.ends(running.back());
  for (bool more = true; more;) {
    start = Clock::now();
    more = scheduler.run(b.state, b.now, options).unfinished;
    longest_ms = std::max(longest_ms, ms_since(start));
  }
  options.slice = 0;
  b.settle();
  b.submit(kinds.front());
  start = Clock::now();
  scheduler.run(b.state, b.now, options);
  const double arrival_us = ms_since(start) * 1000;
  fmt::print("{},{},{},{},{},{:.1f},{:.1f},{:.1f},{:.2f},{:.0f},{},{},{},{:.1f},{},{:.2f}\n", nodes,
             jobs, shapes, planned, holding, fill_ms, cold_ms, warm_ms, end_ms, arrival_us,
             cold.examined, cold.placed, cold.started, submit_us, bytes, longest_ms);
  return 0;
}

}  // namespace
}  // namespace berth::schedule

int main(int argc, char** argv) {
  std::uint32_t values[6] = {1000, 10000, 1000, 500, berth::schedule::kServingSlice, 5};
  const char* names[6] = {"--nodes", "--jobs", "--shapes", "--planned", "--slice", "--repeat"};
  fmt::print(
      "nodes,jobs,shapes,planned,running,fill_ms,cold_ms,warm_ms,end_ms,arrival_us,examined,placed,"
      "started,submit_us,bytes_per_job,longest_slice_ms\n");
  for (int i = 1; i + 1 < argc; i += 2) {
    for (int n = 0; n < 6; ++n) {
      if (std::strcmp(argv[i], names[n]) == 0) {
        std::from_chars(argv[i + 1], argv[i + 1] + std::strlen(argv[i + 1]), values[n]);
      }
    }
  }
  return berth::schedule::bench(values[0], values[1], values[2], values[3], values[4], values[5]);
}
