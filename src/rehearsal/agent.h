// An agent of a rehearsal: the real rules of the node, over a machine in memory. What the daemon
// has around these rules (node/agent.cpp, steps.cpp, gate.cpp: sockets, files, processes) is
// pretended here, with the same promises.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/conversation.h"
#include "node/jobs.h"
#include "node/launches.h"
#include "node/orders.h"
#include "rehearsal/machine.h"

namespace berth::rehearsal {

class Agent final : private node::Conversation::Line,
                    private node::Orders::Host,
                    private node::JobHost,
                    private node::LaunchBook {
 public:
  explicit Agent(Machine& machine);
  ~Agent() override = default;

  /// Takes up what an earlier one left, then serves.
  void start();
  /// It is dead: its connections close.
  void end();
  /// Its machine has no power: nobody hears of it.
  void vanish();

  /// The record has the result.
  void supervisor_done(const node::NodeStep& at);
  /// It died without a word; its tasks are gone.
  void supervisor_lost(const node::NodeStep& at);

 private:
  struct Step {
    std::string spec;
    std::optional<wire::StepEnded> result;
    bool ordered = false;
    std::move_only_function<void(Result<void>)> done;
  };
  /// A launch that waits for its job, or for the key of the node.
  struct Waiting {
    std::shared_ptr<Socket> client;
    wire::Launch launch;
    Agenda::Event patience = Agenda::kNone;
  };

  // node::Conversation::Line
  void dial() override;
  void send(std::string frame) override;
  void hang_up() override;
  void set(node::Conversation::Timer timer, std::chrono::milliseconds after) override;
  void cancel(node::Conversation::Timer timer) override;
  std::chrono::milliseconds any_up_to(std::chrono::milliseconds most) override;
  void describe_load(wire::Beat&) override {}
  void log_lost(std::string_view why) override;
  void log_refused(const wire::Refusal& refusal) override;

  // node::Orders::Host
  [[nodiscard]] BootTime now() const override;
  void store_epoch(std::uint64_t epoch) override { machine_.spool().epoch = epoch; }
  void store_lease(BootTime from) override;
  void wake_for_leases(std::optional<BootTime> when) override;
  void remember(const wire::StoreMemory& memory) override;
  void register_anew(std::string_view why) override { conversation_.register_anew(why); }
  void tell(const wire::JobBegun& message) override { conversation_.send(message); }
  void tell(const wire::StepEnded& message) override { conversation_.send(message); }
  [[nodiscard]] const wire::StepEnded* step_ended(const node::NodeStep& at) const override;
  void refuse_step(const node::NodeStep& at) override;
  void forget_step(const node::NodeStep& at) override;
  [[nodiscard]] std::int64_t seconds() const override;

  // node::JobHost, and Orders::Host where they want the same
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> recorded(
      const std::string& node) override;
  [[nodiscard]] Frames record_of(const node::NodeJob& at) override;
  Result<void> begin_record(const node::NodeJob& at, const std::string& frame) override;
  void add_to_record(const node::NodeJob& at, const std::string& frame) override;
  void forget_record(const node::NodeJob& at) override;
  void store_attempt(const node::NodeJob& at, Done done) override;
  [[nodiscard]] bool has_prolog() const override { return false; }
  [[nodiscard]] bool has_epilog() const override { return false; }
  std::function<void()> run_prolog(const wire::BeginJob&, Done) override { return {}; }
  void run_epilog(const std::string&, const wire::EndJob&, Done) override {}
  [[nodiscard]] bool step_known(const node::NodeStep& at) const override;
  [[nodiscard]] std::vector<node::NodeStep> steps_running(const node::NodeJob& job) const override;
  void ticket_used(const node::NodeStep& at) override { used_.add(at); }
  void start_batch_step(const node::NodeStep& at, const wire::Launch& launch,
                        std::move_only_function<void(Result<void>)> started) override;
  void end_step(const node::NodeStep& at, const std::string& cause, bool now) override;
  void forget_steps(const node::NodeJob& job) override;
  void later(std::move_only_function<void()> what) override;
  void after(std::chrono::seconds wait, std::move_only_function<void()> what) override;
  void reached(node::JobMoment moment) override;
  void log_info(const std::string& line) override { machine_.here().witness.say(line); }
  void log_error(const std::string& line) override { machine_.here().witness.say(line); }

  // node::LaunchBook
  [[nodiscard]] bool used(const node::NodeStep& at) const override;
  [[nodiscard]] const Error* unfit_for(const node::NodeStep&) const override { return nullptr; }

  [[nodiscard]] wire::RegisterNodes registration() const;
  bool registered(const wire::Registered& message);
  void take(const wire::Frame& frame);
  [[nodiscard]] std::vector<node::StepKey> adopt_steps();
  void lost_with_the_machine();
  void start_step(const node::NodeStep& at, const std::string& spec, std::shared_ptr<Socket> client,
                  std::move_only_function<void(Result<void>)> done);
  void give_order(const node::NodeStep& at);
  void take_result(const node::NodeStep& at, const wire::StepEnded& ended);
  void drop(const node::NodeStep& at);
  [[nodiscard]] wire::StepEnded failed(const node::NodeStep& at) const;
  void accept(const std::shared_ptr<Socket>& client);
  bool settle(Waiting& waiting, bool last_chance);
  void look_again();
  /// Called by the agenda, if this agent lives then.
  [[nodiscard]] std::move_only_function<void()> mine(std::move_only_function<void()> what);

  Machine& machine_;
  std::uint64_t life_;
  node::Conversation conversation_;
  node::Jobs jobs_;
  node::Orders orders_;
  node::UsedTickets used_;
  std::map<node::NodeStep, Step> steps_;
  std::list<Waiting> waiting_;
  std::vector<std::shared_ptr<Socket>> clients_;  // that have not said what they want
  std::shared_ptr<Socket> uplink_;
  std::uint64_t dials_ = 0;
  std::map<node::Conversation::Timer, Agenda::Event> timers_;
  Agenda::Event lease_alarm_ = Agenda::kNone;
};

}  // namespace berth::rehearsal
