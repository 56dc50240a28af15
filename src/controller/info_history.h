// sacct's question answered from the rows of the store: jobs that ended long ago and jobs that run
// now look alike there. Runs on the reader's thread; what it needs of the state is a copy.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/cluster.h"
#include "controller/caller.h"
#include "controller/disclosure.h"
#include "controller/info_tres.h"
#include "controller/users.h"
#include "job/types.h"
#include "store/history.h"
#include "wire/info.pb.h"

namespace berth::controller {

/// What history needs of the state, as it was at the last reconfiguration.
struct HistorySite {
  cluster::Cluster cluster;
  TrackedTres tracked;
  std::string cluster_name;
  std::vector<std::string> mpi_types;
  bool job_requeue = true;
  Disclosure disclosure = {};
};

class HistoryAnswer {
 public:
  /// Steps of a job that run now; the store has those that ended.
  using RunningSteps = std::function<std::vector<wire::StepInfo>(std::uint32_t job)>;

  HistoryAnswer(store::History& history, std::shared_ptr<const HistorySite> site, Users& users,
                RunningSteps running)
      : history_(history), site_(std::move(site)), users_(users), running_(std::move(running)) {}

  /// The error is a refusal.
  Result<void> begin(wire::ListHistory ask, const Caller& caller, std::int64_t now);
  /// The next page; the last one has `more` unset. Errors become a refusal. A page is as much
  /// larger than kPageBytes as its last job is.
  wire::HistoryReply next();

  static constexpr std::size_t kPageBytes = std::size_t{256} << 10;

 private:
  Result<store::Filter> filter_of(const wire::ListHistory& ask, const Caller& caller);
  Result<void> add_job(const store::JobRow& row, wire::HistoryReply& reply);
  std::shared_ptr<const job::Submission> submission_of(const store::JobRow& row,
                                                       const wire::Asked* asked) const;

  store::History& history_;
  std::shared_ptr<const HistorySite> site_;
  Users& users_;
  RunningSteps running_;
  wire::ListHistory ask_;
  Caller caller_;
  std::int64_t now_ = 0;
  store::Filter filter_;
  /// Of one page: elements of an array and equal submissions are read once.
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::shared_ptr<const job::Submission>> read_;
};

}  // namespace berth::controller
