// What the rules of jobs (jobs.h) need of a machine: records that outlive the agent, the list of
// attempts that outlives the machine, node scripts, and the steps. machine_job_host.h is the real
// one; the simulation of faults has one in memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "step/spool.h"
#include "wire/agent.pb.h"

namespace berth::node {

using step::StepKey;

struct NodeStep {
  std::string node;
  StepKey key;
  friend auto operator<=>(const NodeStep&, const NodeStep&) = default;
};

struct NodeJob {
  std::string node;
  std::uint32_t job = 0;
  std::uint32_t attempt = 0;
  friend auto operator<=>(const NodeJob&, const NodeJob&) = default;
};

/// Where a crash is of interest to a test.
enum class JobMoment { recorded, prolog_done, gone };

class JobHost {
 public:
  using Frames = std::vector<std::pair<wire::Kind, std::string>>;
  /// "" or what went wrong; always called later, never from within the call that asks for it.
  using Done = std::move_only_function<void(std::string trouble)>;

  JobHost() = default;
  JobHost(const JobHost&) = delete;
  JobHost& operator=(const JobHost&) = delete;
  virtual ~JobHost() = default;

  /// Job ids and attempts of the records of a node.
  [[nodiscard]] virtual std::vector<std::pair<std::uint32_t, std::uint32_t>> recorded(
      const std::string& node) = 0;
  [[nodiscard]] virtual Frames record_of(const NodeJob& at) = 0;
  /// The first frame of a new record, whatever was there.
  virtual Result<void> begin_record(const NodeJob& at, const std::string& frame) = 0;
  virtual void add_to_record(const NodeJob& at, const std::string& frame) = 0;
  /// The record and the attempt need not be remembered any more.
  virtual void forget_record(const NodeJob& at) = 0;
  /// On disk before anything of the attempt runs.
  virtual void store_attempt(const NodeJob& at, Done done) = 0;

  [[nodiscard]] virtual bool has_prolog() const = 0;
  [[nodiscard]] virtual bool has_epilog() const = 0;
  /// Returns a function that stops it; done is called then too.
  virtual std::function<void()> run_prolog(const wire::BeginJob& job, Done done) = 0;
  virtual void run_epilog(const std::string& node, const wire::EndJob& end, Done done) = 0;

  [[nodiscard]] virtual bool step_known(const NodeStep& at) const = 0;
  [[nodiscard]] virtual std::vector<NodeStep> steps_running(const NodeJob& job) const = 0;
  /// As its job's record says: no launch of the step is taken any more.
  virtual void ticket_used(const NodeStep& at) = 0;
  virtual void start_batch_step(const NodeStep& at, const wire::Launch& launch,
                                std::move_only_function<void(Result<void>)> started) = 0;
  virtual void end_step(const NodeStep& at, const std::string& cause, bool now) = 0;
  virtual void forget_steps(const NodeJob& job) = 0;

  /// Whether files are on their way into the job (sbcast), and what writes them is not gone. Some
  /// hosts take none.
  [[nodiscard]] virtual bool receives(const NodeJob& /*job*/) const { return false; }
  virtual void end_receivers(const NodeJob& /*job*/) {}

  virtual void later(std::move_only_function<void()> what) = 0;
  virtual void after(std::chrono::seconds wait, std::move_only_function<void()> what) = 0;
  virtual void reached(JobMoment moment) = 0;
  virtual void log_info(const std::string& line) = 0;
  virtual void log_error(const std::string& line) = 0;
};

}  // namespace berth::node
