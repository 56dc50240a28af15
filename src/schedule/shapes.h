// What is known of every different request, kept for as long as the configuration stays: a queue of
// many jobs has few of them.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "job/state.h"
#include "place/prepared.h"

namespace berth::schedule {

struct Shape {
  Shape(const cluster::Cluster& cluster, std::shared_ptr<const job::Submission> submission,
        bool equal_weights)
      : what(std::move(submission)), prepared(cluster, what->request, equal_weights) {}

  std::shared_ptr<const job::Submission> what;
  place::Prepared prepared;
  /// Set once it was looked at: whether the cluster could hold it when nothing ran. If not,
  /// `answer` says why, and no end of a job changes that.
  std::optional<bool> holds;
  place::JobPlan answer;
};

class Shapes {
 public:
  Shape& of(const job::State& state, const job::Job& job);
  void clear() {
    shapes_.clear();
    equal_weights_.reset();
  }

 private:
  /// More than this many different requests are not remembered at a time.
  static constexpr std::size_t kMost = 20000;
  std::unordered_map<std::uint64_t, std::unique_ptr<Shape>> shapes_;
  std::optional<bool> equal_weights_;
};

/// How long it may run, in seconds; a year where nothing limits it.
job::Time seconds_of(const job::Job& job, const place::Prepared& prepared);

}  // namespace berth::schedule
