// What an agent does with the controller's words about jobs and steps, and what of them it does not
// obey: what comes of an older controller, what is too late for its lease, a script without a
// ticket. And what it does when the controller has not answered for too long.
//
// Without a socket, a file and a clock of its own: a machine is behind Host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/boot_clock.h"
#include "node/jobs.h"
#include "node/lease.h"
#include "wire/agent.pb.h"

namespace berth::node {

class Orders {
 public:
  class Host {
   public:
    Host() = default;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    virtual ~Host() = default;

    [[nodiscard]] virtual BootTime now() const = 0;
    /// On disk when it returns.
    virtual void store_epoch(std::uint64_t epoch) = 0;
    /// From when leases count; supervisors read it.
    virtual void store_lease(BootTime from) = 0;
    /// keep_leases() is called then; nullopt: not any more.
    virtual void wake_for_leases(std::optional<BootTime> when) = 0;
    virtual void remember(const wire::StoreMemory& memory) = 0;
    /// The connection to the controller is given up, and another one made.
    virtual void register_anew(std::string_view why) = 0;
    virtual void tell(const wire::JobBegun& message) = 0;
    virtual void tell(const wire::StepEnded& message) = 0;

    [[nodiscard]] virtual bool step_known(const NodeStep& at) const = 0;
    /// Of a step that is over and not forgotten.
    [[nodiscard]] virtual const wire::StepEnded* step_ended(const NodeStep& at) const = 0;
    virtual void end_step(const NodeStep& at, const std::string& cause, bool now) = 0;
    /// Its ticket is used.
    virtual void refuse_step(const NodeStep& at) = 0;
    virtual void forget_step(const NodeStep& at) = 0;

    [[nodiscard]] virtual std::int64_t seconds() const = 0;
    virtual void log_error(const std::string& line) = 0;
  };

  Orders(Host& host, Jobs& jobs) : host_(host), jobs_(jobs) {}

  /// As an earlier agent left it.
  void take_up(std::uint64_t epoch, std::optional<BootTime> lease_from);

  /// A registration is about to leave.
  void registers();
  // As Conversation::Handlers
  void asked(std::uint64_t question) { lease_.sent(question, host_.now()); }
  void answered(std::uint64_t question);
  void lost() { lease_.forget_questions(); }
  void leases_rest(std::chrono::seconds longest);

  /// The controller takes the node, and this is the key of its tickets; or it does not.
  void accepted(const std::string& node, std::string key) { keys_[node] = std::move(key); }
  void refused(const std::string& node) { keys_.erase(node); }
  void see_epoch(std::uint64_t epoch);
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] const std::map<std::string, std::string>& keys() const { return keys_; }
  /// "" = it has none.
  [[nodiscard]] std::string key_of(const std::string& node) const;

  void begin(const wire::BeginJob& message);
  void end(const wire::EndJob& message) { jobs_.end(message); }
  void end_step(const wire::EndStep& message);
  void forget(const wire::Forget& message);
  /// Now and whenever a lease may be over. Answers that come meanwhile only make that later.
  void keep_leases();

 private:
  void lease_renewed();

  Host& host_;
  Jobs& jobs_;
  Lease lease_;
  std::uint64_t epoch_ = 0;                  // of the newest controller that was seen
  std::map<std::string, std::string> keys_;  // by node
};

}  // namespace berth::node
