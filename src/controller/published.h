// What readers see: jobs, nodes and partitions as serialized messages, so that an answer is made by
// joining bytes. The state thread brings it up to date when somebody asks and something changed;
// between that, readers never wait for the state thread. Thread safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bits.h"
#include "controller/disclosure.h"
#include "controller/info_history.h"
#include "job/priority.h"
#include "job/types.h"
#include "wire/info.pb.h"

namespace berth::controller {

using Bytes = std::shared_ptr<const std::string>;

/// What the priority of a job that waits is made from, for sprio.
struct PriorityView {
  std::shared_ptr<const job::Submission> what;
  std::optional<std::uint32_t> minutes;  // time limit
  job::Accrual accrual;
  std::int32_t nice = 0;
  bool fixed = false;  // set by hand
};

/// A step that runs.
struct StepView {
  Bytes info;                    // StepInfo
  std::size_t public_bytes = 0;  // so many of them are for everybody
};

/// One job record with what filters look at.
struct JobView {
  job::JobId id = 0;
  job::JobId array_id = 0;    // its own id when it is none
  job::JobId het_leader = 0;  // 0 = none
  std::uint32_t uid = 0;
  std::uint32_t attempt = 0;
  bool over = false;                // ended, and not COMPLETING
  std::vector<std::string> states;  // base state and flags
  std::string partition;
  std::optional<std::uint32_t> array_task;
  std::shared_ptr<const Bits> rest;  // pending indices of an array
  Bytes info;                        // JobInfo without detail
  std::size_t brief_bytes = 0;       // so many of them are what a short listing shows
  std::size_t public_bytes = 0;      // so many, more than those, are for everybody
  Bytes detail;                      // JobInfo with nothing but detail; null = none
  std::vector<StepView> steps;
  std::optional<PriorityView> waits;  // in the queue, and its priority counts
  std::uint32_t info_priority = 0;    // as `info` has it
  /// As it is: the priorities of all who wait change at once, and their bytes stay as they are.
  mutable std::atomic<std::uint32_t> priority{0};
};

/// What all priorities are made from.
struct PrioritySite {
  std::shared_ptr<const HistorySite> site;  // the cluster
  job::PriorityPolicy policy;
  job::PriorityTotals totals;
};

struct Picture {
  std::map<job::JobId, std::shared_ptr<const JobView>> jobs;
  std::map<std::string, Bytes> nodes;  // NodeInfo by name
  std::vector<std::string> node_order;
  std::map<std::string, std::uint64_t, std::less<>> agents;  // who serves a node: a Peer
  std::vector<std::pair<std::string, Bytes>> partitions;     // PartitionInfo
  std::set<std::string, std::less<>> hidden_partitions;
  std::string cluster_name;
  std::int64_t last_backfill = 0;
  Disclosure disclosure;
  std::string config;  // serialized ConfigReply
  std::shared_ptr<const HistorySite> history;
  std::shared_ptr<const PrioritySite> priorities;
  job::Time priorities_at = 0;  // when they were last worked out
  wire::Pong pong;
};

class Published {
 public:
  /// Changes the picture under the lock.
  template <class F>
  void change(F&& apply) {
    const std::lock_guard lock(mutex_);
    apply(picture_);
  }
  template <class F>
  auto read(F&& look) const {
    const std::lock_guard lock(mutex_);
    return look(picture_);
  }

 private:
  mutable std::mutex mutex_;
  Picture picture_;
};

/// Appends a length-delimited field of a message: bytes, string or embedded message.
void append_field(std::string& out, std::uint32_t number, std::string_view bytes);

}  // namespace berth::controller
