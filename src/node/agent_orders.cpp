// The agent's part of orders and leases: what of them is kept in the spool, and the alarm that
// rings when a lease is over.
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

#include "node/agent.h"
#include "node/machine_identity.h"
#include "step/lease_file.h"

namespace berth::node {

class Agent::OrderHost final : public Orders::Host {
 public:
  explicit OrderHost(Agent& agent) : agent_(agent) {}

  [[nodiscard]] BootTime now() const override { return boot_now(); }
  void store_epoch(std::uint64_t epoch) override {
    const std::string path = epoch_file(agent_.place_.spool);
    if (!step::write_file(path, std::to_string(epoch), 0600, true)) {
      agent_.log_.error("{}: {}", path, std::strerror(errno));
    }
  }
  void store_lease(BootTime from) override {
    const auto stored = step::write_lease_file(agent_.lease_file(), from);
    // Supervisors read it: without it they end what has a lease.
    if (!stored && stored_) {
      agent_.log_.error(
          "leases of jobs cannot be kept up, jobs that may be requeued are going to end: {}",
          stored.error().what());
    }
    stored_ = stored.has_value();
  }
  void wake_for_leases(std::optional<BootTime> when) override { agent_.lease_alarm_.set(when); }
  void remember(const wire::StoreMemory& memory) override { agent_.remember(memory); }
  void register_anew(std::string_view why) override { agent_.uplink_.register_anew(why); }
  void tell(const wire::JobBegun& message) override { agent_.uplink_.send(message); }
  void tell(const wire::StepEnded& message) override { agent_.uplink_.send(message); }

  [[nodiscard]] bool step_known(const NodeStep& at) const override {
    return agent_.steps_.known(at);
  }
  [[nodiscard]] const wire::StepEnded* step_ended(const NodeStep& at) const override {
    return agent_.steps_.ended(at);
  }
  void end_step(const NodeStep& at, const std::string& cause, bool now) override {
    agent_.steps_.end(at, cause, now);
  }
  void refuse_step(const NodeStep& at) override { agent_.steps_.refuse(at); }
  void forget_step(const NodeStep& at) override { agent_.steps_.forget(at); }

  [[nodiscard]] std::int64_t seconds() const override { return std::time(nullptr); }
  void log_error(const std::string& line) override { agent_.log_.error("{}", line); }

 private:
  Agent& agent_;
  bool stored_ = true;  // the lease, last
};

std::unique_ptr<Orders::Host> Agent::make_order_host() {
  return std::make_unique<OrderHost>(*this);
}

std::string Agent::lease_file() const {
  return place_.spool + '/' + step::kLeaseFile;
}

void Agent::take_up_orders() {
  std::uint64_t epoch = 0;
  const auto text = step::read_file(epoch_file(place_.spool));
  if (text) std::from_chars(text->data(), text->data() + text->size(), epoch);
  orders_.take_up(epoch, step::read_lease_file(lease_file()));
  loop_.watch(lease_alarm_.fd(), {.read = true}, [this](net::Ready) {
    lease_alarm_.seen();
    orders_.keep_leases();
  });
  orders_.keep_leases();
}

}  // namespace berth::node
