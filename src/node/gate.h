// Clients that come to this node: srun with a launch, sattach, sbcast. They show a ticket of the
// controller; nobody is asked.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/door.h"
#include "net/listener.h"
#include "node/go_between.h"
#include "node/jobs.h"
#include "node/receivers.h"
#include "node/steps.h"
#include "tls/context.h"

namespace berth::node {

class Gate {
 public:
  /// The key of a node, "" when it has none (yet).
  using KeyOf = std::function<std::string(const std::string& node)>;
  /// Seconds: what expires before that has expired (ControllerClock::even_seconds).
  using Now = std::function<std::int64_t()>;

  Gate(Surroundings& here, Steps& steps, Receivers& receivers, Jobs& jobs, KeyOf key_of, Now now,
       GoBetween::Controller controller)
      : go_between_(here.loop, std::move(controller)),
        here_(here),
        steps_(steps),
        receivers_(receivers),
        jobs_(jobs),
        key_of_(std::move(key_of)),
        now_(std::move(now)),
        door_(here.loop, net::QuotaLimits::of_descriptors(net::fd_limit())) {}

  Result<void> listen(const net::Address& address, mode_t mode);
  /// Who takes SwitchNodes; without it they are refused.
  using Switch = std::function<Result<void>(const wire::SwitchNodes& message, uid_t caller)>;
  void on_switch(Switch take) { switch_ = std::move(take); }
  /// Launches that wait for this job are looked at again.
  void job_changed(const NodeJob& at);
  /// Keys have come: all that wait are looked at again.
  void keys_changed();

 private:
  struct Waiting {
    std::shared_ptr<net::Connection> connection;
    wire::Launch launch;
    NodeJob job;  // as its ticket says, which is not believed yet
    uid_t uid = 0;
    std::size_t bytes = 0;  // of the message
    net::TimerId timer = net::TimerId::none;
  };
  using WaitingList = std::list<Waiting>;

  struct Caller {
    uid_t uid = 0;
    gid_t gid = 0;
  };

  void accept(std::shared_ptr<net::Connection> connection);
  /// A client of another machine: the key of its session says for whom the controller made it.
  [[nodiscard]] std::optional<std::string> key_of_session(std::string_view name) const;
  void accept_remote(const std::shared_ptr<net::Connection>& connection);
  void take(net::Connection& connection, const wire::Frame& frame, const Caller& caller);
  void launch(const std::shared_ptr<net::Connection>& connection, wire::Launch message,
              std::size_t bytes, uid_t uid);
  /// What comes of a connection of somebody who is known.
  void serve(net::Connection& connection, const Caller& caller, std::shared_ptr<net::Visit> visit);
  void attach(net::Connection& connection, const wire::Attach& message, uid_t uid);
  void relay(net::Connection& connection, wire::Relay message, const Caller& caller);
  /// A berth-stepd with the client's connection, told what to do by `order`.
  template <class Order>
  Result<pid_t> hand_over(net::Connection::Released client, Order order, Children::Exited exited);
  void switch_nodes(net::Connection& connection, const wire::SwitchNodes& message, uid_t uid);
  void put_file(net::Connection& connection, const wire::PutFile& message, uid_t uid);
  /// Starts it, refuses it, or leaves it waiting; true when it is settled.
  bool settle(Waiting& waiting, bool last_chance);
  /// Launches that wait are few before their ticket was checked, and not many after.
  [[nodiscard]] bool room_to_wait(const Waiting& waiting) const;
  void look_again(const NodeJob* only);
  [[nodiscard]] Result<void> may_relay(const wire::StepSpec& spec) const;
  /// Of a job that is over here, or was never here.
  void end_relays(const NodeJob& job);
  void end_relays_after(std::chrono::seconds delay, const NodeJob& job);

  /// Leaves the connection to the go-between.
  void pass_to_controller(net::Connection& connection, const wire::CallController& message,
                          const Caller& caller);

  GoBetween go_between_;
  Surroundings& here_;
  Steps& steps_;
  Receivers& receivers_;
  Jobs& jobs_;
  KeyOf key_of_;
  Now now_;
  net::Door door_;
  Switch switch_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::optional<tls::Context> keyed_;  // sessions of clients of other machines
  bool have_keys_ = false;
  std::vector<std::shared_ptr<net::Connection>> early_;  // they came before there were keys
  WaitingList waiting_;
  std::map<NodeStep, pid_t> relays_;  // a ticket makes one at a time
  std::shared_ptr<const bool> alive_ =
      std::make_shared<const bool>(true);  // the loop may outlive it
};

}  // namespace berth::node
