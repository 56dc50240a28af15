// What orders.h promises.
#include "node/orders.h"

#include <fmt/format.h>

#include "node/tickets.h"
#include "wire/refusal.h"

namespace berth::node {

void Orders::take_up(std::uint64_t epoch, std::optional<BootTime> lease_from) {
  epoch_ = epoch;
  lease_ = Lease(lease_from);
}

void Orders::registers() {
  const auto before = lease_.from();
  lease_.end_rest(host_.now());
  if (lease_.from() == before) return;
  lease_renewed();
  keep_leases();
}

void Orders::answered(std::uint64_t question) {
  // To an agent none of whose nodes it takes the controller gives answers, too.
  if (keys_.empty()) return;
  lease_.answered(question);
  lease_renewed();
}

void Orders::leases_rest(std::chrono::seconds longest) {
  lease_.rest(longest);
  lease_renewed();
}

void Orders::lease_renewed() {
  if (lease_.from()) host_.store_lease(*lease_.from());
}

void Orders::see_epoch(std::uint64_t epoch) {
  if (epoch <= epoch_) return;
  epoch_ = epoch;
  host_.store_epoch(epoch);
}

std::string Orders::key_of(const std::string& node) const {
  const auto found = keys_.find(node);
  return found == keys_.end() ? std::string() : found->second;
}

void Orders::keep_leases() {
  if (jobs_.end_leases(lease_, host_.now())) host_.register_anew("leases of jobs are over");
  host_.wake_for_leases(jobs_.next_lease_end(lease_));
}

void Orders::begin(const wire::BeginJob& message) {
  if (message.epoch() < epoch_) {
    return host_.log_error(
        fmt::format("BeginJob of job {} from an older controller (epoch {}, seen {}) is ignored",
                    message.job_id(), message.epoch(), epoch_));
  }
  see_epoch(message.epoch());
  const auto end = lease_.end_of(std::chrono::seconds(message.lease_seconds()));
  if (end && *end <= host_.now()) {
    // It lay somewhere: the controller has given this node up, and the job runs elsewhere.
    host_.log_error(fmt::format("BeginJob of job {} came after its lease was over and is ignored",
                                message.job_id()));
    return host_.register_anew("what it says is too old");
  }
  host_.remember(message.memory());
  if (message.has_batch()) {
    if (auto good = check_batch(message, key_of(message.node())); !good) {
      host_.log_error(fmt::format("the batch script of job {} is refused: {}", message.job_id(),
                                  good.error().what()));
      wire::JobBegun refused;
      refused.set_node(message.node());
      refused.set_job_id(message.job_id());
      refused.set_attempt(message.attempt());
      *refused.mutable_refusal() = wire::to_refusal(good.error());
      return host_.tell(refused);
    }
  }
  jobs_.begin(message);
  keep_leases();
}

void Orders::end_step(const wire::EndStep& message) {
  const NodeStep at{message.node(), {message.job_id(), message.attempt(), message.step_id()}};
  if (const wire::StepEnded* ended = host_.step_ended(at)) return host_.tell(*ended);
  if (host_.step_known(at)) return host_.end_step(at, message.cause(), message.now());
  host_.refuse_step(at);
  wire::StepEnded never;
  never.set_node(at.node);
  never.set_job_id(at.key.job);
  never.set_attempt(at.key.attempt);
  never.set_step_id(at.key.step);
  never.set_system_failure(true);
  never.set_ended(host_.seconds());
  host_.tell(never);
}

void Orders::forget(const wire::Forget& message) {
  if (message.has_step_id()) {
    return host_.forget_step(
        {message.node(), {message.job_id(), message.attempt(), message.step_id()}});
  }
  jobs_.forget({message.node(), message.job_id(), message.attempt()});
}

}  // namespace berth::node
