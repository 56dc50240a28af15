// Files of sbcast on their way into jobs of this agent's nodes. Each is written by a process with
// the user's rights that lives in its job: in groups of its own below the job's, ended with the
// job, and the job is not over on its node before it is gone.
//
//   start: record, lock, groups, process ─▶ it enters the groups, becomes the user, receives
//   end: it is told ── kReceiverGrace ──▶ SIGKILL ── UnkillableStepTimeout ──▶ the node drains
//   it is gone ──▶ groups and record are removed ──▶ gone, when it was the job's last one
//
// Without its agent it ends by itself. One that cannot, since it hangs in a file system, is found
// by the next agent: it holds its record.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/connection.h"
#include "node/groups_of.h"
#include "node/job_host.h"
#include "node/steps.h"
#include "wire/agent.pb.h"
#include "wire/supervise.pb.h"

namespace berth::node {

/// At once, for one job on one node.
inline constexpr unsigned kMostReceivers = 16;

/// The number of one more, beside those that there are; nullopt: there are enough.
std::optional<unsigned> free_receiver_number(const std::set<unsigned>& taken);

/// Of a receiver's record: "file.5.1.2".
std::string receiver_record_name(std::uint32_t job, std::uint32_t attempt, unsigned number);
struct ReceiverKey {
  std::uint32_t job = 0;
  std::uint32_t attempt = 0;
  unsigned number = 0;
  friend auto operator<=>(const ReceiverKey&, const ReceiverKey&) = default;
};
std::optional<ReceiverKey> read_receiver_record_name(std::string_view name);

class Receivers {
 public:
  struct Events {
    /// None of the job is left.
    std::function<void(const NodeJob&)> gone;
    /// One does not go after SIGKILL; `reason` names it.
    std::function<void(const std::string& node, const std::string& reason)> stuck;
  };

  Receivers(Surroundings& here, Events events) : here_(here), events_(std::move(events)) {}
  /// What still runs ends by itself.
  ~Receivers();
  Receivers(const Receivers&) = delete;
  Receivers& operator=(const Receivers&) = delete;

  /// Ends what an earlier agent left of its own on a node.
  void adopt(const std::string& node);
  /// Whether one more is taken.
  [[nodiscard]] Result<void> room_for(const NodeJob& at) const;
  /// The ticket was checked, the job runs here, and there is room. The client is answered, whatever
  /// comes of it.
  void start(const wire::BeginJob& job, const wire::PutFile& message,
             net::Connection::Released client);
  /// All of the job, at once.
  void end(const NodeJob& at);
  [[nodiscard]] bool any(const NodeJob& at) const;

  /// Says again which do not go.
  void repeat_stuck() const;
  /// Whether one has this cgroup.
  [[nodiscard]] bool uses(const std::string& cgroup) const;
  /// Whether one of the job has groups of this name.
  [[nodiscard]] bool knows(std::uint32_t job, const std::string& name) const;
  [[nodiscard]] bool knows(std::uint32_t job) const;

 private:
  using Key = std::pair<NodeJob, unsigned>;
  struct Receiver {
    std::string record;
    GroupsOf groups;
    std::string memory_events;  // the file that counts kills for want of memory; "" = no limit
    std::shared_ptr<net::Connection> link;
    pid_t pid = 0;       // of this agent; 0: of an earlier one
    bool over = false;   // the process is gone
    bool ended = false;  // because it was to end
    std::optional<net::Clock::time_point> pressed_since;
    net::TimerId timer = net::TimerId::none;
    std::chrono::milliseconds delay{10};
    std::string stuck;  // why it does not go, as it was said
  };

  [[nodiscard]] std::optional<unsigned> free_number(const NodeJob& at) const;
  Receiver& add(const Key& key, std::uint32_t uid);
  Result<void> begin(const Key& key, const wire::BeginJob& job, const wire::PutFile& message,
                     net::Connection::Released& client);
  void exited(const Key& key, int status);
  /// Kills it, and removes what it leaves; again until nothing is left.
  void press(const Key& key);
  [[nodiscard]] static std::vector<pid_t> pids_of(const Receiver& receiver);
  void take_stuck(const Key& key, Receiver& receiver, const std::vector<pid_t>& pids);
  void forget(const Key& key);

  Surroundings& here_;
  Events events_;
  std::map<Key, Receiver> receivers_;
};

}  // namespace berth::node
