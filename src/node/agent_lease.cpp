// The agent's part of leases: from when they count, and jobs that are ended because nobody answers.
#include "node/agent.h"
#include "step/lease_file.h"

namespace berth::node {

std::string Agent::lease_file() const {
  return place_.spool + '/' + step::kLeaseFile;
}

void Agent::watch_leases() {
  lease_ = Lease(step::read_lease_file(lease_file()));
  loop_.watch(lease_alarm_.fd(), {.read = true}, [this](net::Ready) {
    lease_alarm_.seen();
    keep_leases();
  });
  keep_leases();
}

void Agent::lease_renewed() {
  if (!lease_.from()) return;
  const auto stored = step::write_lease_file(lease_file(), *lease_.from());
  // Supervisors read it: without it they end what has a lease.
  if (!stored && lease_stored_) {
    log_.error("leases of jobs cannot be kept up, jobs that may be requeued are going to end: {}",
               stored.error().what());
  }
  lease_stored_ = stored.has_value();
}

/// Now and whenever a lease may be over. Answers that come meanwhile only make that later.
void Agent::keep_leases() {
  if (jobs_.end_leases(lease_, boot_now())) uplink_.register_anew("leases of jobs are over");
  lease_alarm_.set(jobs_.next_lease_end(lease_));
}

}  // namespace berth::node
