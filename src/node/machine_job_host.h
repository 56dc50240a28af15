// JobHost on this machine: files of the spool, the fence, node scripts, supervisors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "node/job_host.h"
#include "node/receivers.h"
#include "node/steps.h"

namespace berth::node {

class MachineJobHost : public JobHost {
 public:
  MachineJobHost(Surroundings& here, Steps& steps, Receivers& receivers)
      : here_(here), steps_(steps), receivers_(receivers) {}

  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> recorded(
      const std::string& node) override;
  [[nodiscard]] Frames record_of(const NodeJob& at) override;
  Result<void> begin_record(const NodeJob& at, const std::string& frame) override;
  void add_to_record(const NodeJob& at, const std::string& frame) override;
  void forget_record(const NodeJob& at) override;
  void store_attempt(const NodeJob& at, Done done) override;

  [[nodiscard]] bool has_prolog() const override;
  [[nodiscard]] bool has_epilog() const override;
  std::function<void()> run_prolog(const wire::BeginJob& job, Done done) override;
  void run_epilog(const std::string& node, const wire::EndJob& end, Done done) override;

  [[nodiscard]] bool step_known(const NodeStep& at) const override;
  [[nodiscard]] std::vector<NodeStep> steps_running(const NodeJob& job) const override;
  void ticket_used(const NodeStep& at) override;
  void start_batch_step(const NodeStep& at, const wire::Launch& launch,
                        std::move_only_function<void(Result<void>)> started) override;
  void end_step(const NodeStep& at, const std::string& cause, bool now) override;
  void forget_steps(const NodeJob& job) override;

  [[nodiscard]] bool receives(const NodeJob& job) const override { return receivers_.any(job); }
  void end_receivers(const NodeJob& job) override { receivers_.end(job); }

  void later(std::move_only_function<void()> what) override;
  void after(std::chrono::seconds wait, std::move_only_function<void()> what) override;
  void reached(JobMoment moment) override;
  void log_info(const std::string& line) override;
  void log_error(const std::string& line) override;

 private:
  [[nodiscard]] std::string file_of(const NodeJob& at) const;
  /// Calls done in the loop, after the caller has returned.
  Done posted(Done done);

  Surroundings& here_;
  Steps& steps_;
  Receivers& receivers_;
};

}  // namespace berth::node
