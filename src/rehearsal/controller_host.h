// The controller of a rehearsal: its engine, over its store, with the rehearsal's clock and network
// in place of its thread and its sockets. It can be killed in the middle of what it says, and is
// then started from the files as they are at that moment.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "controller/engine.h"
#include "rehearsal/network.h"
#include "rehearsal/witness.h"

namespace berth::rehearsal {

inline constexpr Host kController = 0;

/// What every controller needs and no seed changes: made once for a process.
class Site {
 public:
  /// A folder of the site's own, which goes with it.
  static Result<std::unique_ptr<Site>> open(const std::string& slurm_conf);
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  [[nodiscard]] const controller::Setup& setup() const { return setup_; }
  /// Of no node yet.
  [[nodiscard]] Result<controller::Identities> identities() const;
  [[nodiscard]] const std::string& cluster_key() const { return cluster_key_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] controller::Users& users() { return users_; }
  /// A store in which nothing was ever done.
  [[nodiscard]] std::string blank_store() const { return folder_ + "/blank"; }

 private:
  explicit Site(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  controller::Setup setup_;
  std::string cluster_key_;
  controller::Users users_;
};

class ControllerHost final : private controller::Messenger {
 public:
  ControllerHost(Site& site, Agenda& agenda, Network& network, Random& random, Witness& witness);
  ~ControllerHost() override;

  [[nodiscard]] bool runs() const { return engine_ != nullptr; }
  void start();
  /// At once; what is under way from it still arrives.
  void kill();
  /// It dies after so many more messages, if it sends as many.
  void kill_after(std::uint64_t messages) { messages_left_ = messages; }
  /// Its machine: nobody hears of it, and what was not synced may be gone.
  void lose_power();
  /// Its disk; somebody makes room before it is started again.
  void fill_disk(bool full);
  /// SIGTERM.
  void stop_in_order();
  [[nodiscard]] const job::State& state() const { return engine_->state(); }

 private:
  struct Link {
    std::shared_ptr<Socket> socket;
    controller::Standing standing;
    bool busy = false;
    bool kept = false;
    std::deque<std::pair<wire::Kind, std::string>> waiting;
  };
  /// Unwinds a turn whose process has been killed.
  struct Killed {};

  void act(std::vector<controller::Act> acts) override;
  void act_on(controller::Act& act);
  void accept(std::shared_ptr<Socket> socket);
  void take(controller::Peer peer, std::string_view bytes);
  void hand_on(controller::Peer peer, Link& link, wire::Kind kind, std::string payload);
  void closed(controller::Peer peer);
  void turn_soon();
  void turn();
  void set_alarm();
  /// What is left of the files of one that is over goes to a folder of its own.
  void keep_files(bool power_cut);
  void end(bool power_cut);

  Site& site_;
  Agenda& agenda_;
  Network& network_;
  Random& random_;
  Witness& witness_;
  AgendaTime time_;
  std::optional<ClusterClock> clock_;  // of the controller that runs
  controller::Log log_;
  controller::CrashPoints crash_;
  controller::Published published_;
  controller::RequestCounts requests_;
  std::string folder_;  // of this rehearsal
  std::string files_;   // of the store
  std::uint64_t lives_ = 0;
  std::unique_ptr<controller::Engine> engine_;
  std::map<controller::Peer, Link> links_;
  controller::Peer last_peer_ = 0;
  Agenda::Event turn_ = Agenda::kNone;
  Agenda::Event alarm_ = Agenda::kNone;
  std::optional<std::uint64_t> messages_left_;
};

}  // namespace berth::rehearsal
