// A step as its client sees it: streams, ends of tasks, signals, until every node is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "command/launch_exits.h"
#include "command/launch_grace.h"
#include "command/launch_merge.h"
#include "command/launch_signals.h"
#include "command/launch_sink.h"
#include "command/launch_spawn.h"
#include "command/submit_link.h"
#include "launch/exchanges.h"
#include "launch/name_service.h"
#include "launch/node_link.h"
#include "launch/tree.h"

namespace berth::command {

struct RunOptions {
  std::string program = "srun";
  std::uint32_t job_id = 0;
  std::uint32_t step_id = 0;
  std::uint32_t ntasks = 0;
  bool label = false;
  bool unbuffered = false;
  bool pty = false;
  bool kill_on_bad_exit = false;
  bool no_kill = false;         // go on when a node is lost
  bool disable_status = false;  // -X
  bool quit_on_interrupt = false;
  bool quiet = false;
  bool reduce_exit_lines = false;  // SLURM_SRUN_REDUCE_TASK_EXIT_MSG
  bool attached = false;           // sattach: the step is not ours to end
  int verbosity = 0;
  std::set<int> ignored_signals;
  std::chrono::seconds kill_wait{30};
  std::chrono::seconds patience{20};         // for an agent that does not answer: --msg-timeout
  std::optional<std::chrono::seconds> wait;  // -W
  /// How long the others have after a task has failed; unset = for ever.
  std::optional<std::chrono::seconds> failure_grace;
  // Standard input: to all tasks, to one, or none.
  bool input = false;
  std::optional<std::uint32_t> input_rank;
  Fd input_file;  // else standard input
  // Ranks whose output is shown; unset = all (sattach's filters).
  std::optional<std::uint32_t> only_output;
  std::optional<std::uint32_t> only_error;
  // Files instead of standard output and standard error.
  std::shared_ptr<Sink> output;
  std::shared_ptr<Sink> error;
  /// For steps that tasks of this one ask for; none: they cannot have any.
  std::optional<SpawnTemplate> spawns;
  /// This step is one that a task of another one has asked for.
  std::optional<SpawnOrder> spawned;
};

/// A node of the step and the tasks there.
struct StepNode {
  std::string name;
  std::vector<std::uint32_t> ranks;
};

class StepRun {
 public:
  /// Each branch reaches neighbours among `nodes`, through its first one when there are several.
  /// `link` may be nullptr (sattach).
  StepRun(RunOptions options, std::vector<StepNode> nodes, std::vector<launch::Branch> branches,
          ControllerLink* link, SignalFd& signals);

  /// Until all nodes are done; the exit code of srun.
  int run();
  /// For the controller, wait(2) form.
  [[nodiscard]] int wait_status() const;

 private:
  enum class Ending { no, asked, killed };
  enum class State { starting, running, done, lost };

  struct Node {
    StepNode what;
    State state = State::starting;
    std::size_t link = 0;
    [[nodiscard]] bool over() const { return state == State::done || state == State::lost; }
  };
  struct Link {
    launch::NodeLink wire;
    launch::Share nodes;
    std::size_t left;    // nodes that are not over
    bool begun = false;  // something was answered: it cannot be dialled again
    [[nodiscard]] bool relays() const { return nodes.count > 1; }
    [[nodiscard]] bool over() const { return left == 0; }
  };

  /// A step that a task here has asked for.
  struct Spawned {
    SpawnedSrun srun;
    wire::Errand question;
    std::string name = {};  // "12.3", once it runs
  };

  void dial_some();
  void poll_once();
  [[nodiscard]] int timeout() const;
  [[nodiscard]] bool finished() const;

  void take_signal(int signal);
  void interrupt();
  void forward(int signal);
  void take_controller();
  void take_input();
  [[nodiscard]] bool wants_input() const;
  void take_link(Link& link);
  void take_frame(Link& link, const wire::Frame& frame);
  void take_output(const wire::Output& output);
  void take_exits(const wire::TasksExited& exits);
  void take_line(const wire::Line& line);
  // launch_run_exchange.cpp
  void send_to_all(const std::string& frame);
  void tell_layout();
  void take_exchange(wire::Exchange part);
  void take_errand(const wire::Errand& question);
  /// To the node that it names; false when that is not there.
  bool deliver(const wire::Errand& errand);
  void take_pause(const wire::Errand& news);
  void take_abort(const wire::AbortStep& abort);
  void remember_error_line(std::uint32_t rank, std::string_view text);
  void note_failure(std::uint32_t rank, int status);
  void tell_first_failure();
  void grace_is_over();
  // launch_run_spawn.cpp
  void answer_errand(const wire::Errand& question, const Result<std::string>& answer);
  void spawn(const wire::Errand& question);
  void take_spawned(Spawned& step);
  void end_spawned();
  void spawned_outlive_us();
  void tell_spawner();
  void launch_failed(Node& node, const Error& error);
  bool dial_again(Link& link, const Error& why);
  void link_lost(Link& link, const Error& error);
  void node_lost(Node& node, const Error& error);
  void tell_lost(const std::string& nodes, bool relay);
  void set_state(Node& node, State state);
  /// The node that a frame of a link is about; nullptr when it is none of its own.
  Node* node_in(const Link& link, std::string_view name);
  [[nodiscard]] std::string_view node_of(std::uint32_t rank) const;
  /// Sends what was queued; a link that is broken is lost.
  void flush(Link& link);
  void run_timers();

  /// SIGCONT and SIGTERM now, SIGKILL after KillWait.
  void end_step(int first_signal);
  /// The line about a step that srun itself ends; a supervisor writes the same of what it is told.
  void tell_cancelled(std::string_view why);
  void tell_abort();
  void give_up_nodes();
  void tell_exits();
  void tell_status();
  void info(const std::string& text);
  void error(const std::string& text);
  void say(const Message& message, std::string_view who);
  void drain();

  RunOptions options_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::size_t left_ = 0;  // nodes that are not over
  std::vector<std::uint32_t> node_of_rank_;
  ControllerLink* link_;
  SignalFd& signals_;
  LineMerger merger_;
  TaskExits exits_;
  std::shared_ptr<Sink> out_;
  std::shared_ptr<Sink> err_;
  std::shared_ptr<Sink> own_;  // for lines of srun itself
  std::size_t next_dial_ = 0;
  std::string step_name_;
  Ending ending_ = Ending::no;
  bool input_open_ = false;
  bool abort_told_ = false;
  bool failure_ended_it_ = false;  // --kill-on-bad-exit
  bool pipe_told_ = false;
  bool failed_to_run_ = false;
  bool quit_ = false;
  bool raw_ = false;  // the terminal is in raw mode
  launch::Exchanges exchanges_;
  bool layout_told_ = false;
  launch::NameService names_;
  std::vector<Spawned> spawned_;
  int spawned_code_ = 0;   // the highest of their exit codes
  bool outlived_ = false;  // by some of them
  bool spawner_told_ = false;
  bool spawned_failed_first_ = false;
  std::optional<int> abort_code_;                              // of a task that ended all
  std::optional<std::pair<std::uint32_t, int>> first_failed_;  // rank, wait(2) status
  std::map<std::uint32_t, std::string> last_error_;            // line of each rank
  bool grace_ended_it_ = false;
  FailureGrace grace_;             // then the others are ended
  std::optional<Moment> tell_at_;  // lines about ends are held a moment to be grouped
  std::optional<Moment> kill_at_;
  std::optional<Moment> give_up_at_;  // the job is over: nodes that say nothing are not there
  std::optional<Moment> first_exit_;
  std::optional<Moment> wait_until_;
  std::optional<Moment> redial_at_;
  std::optional<Moment> patience_until_;  // for agents that are just being started again
  std::optional<Moment> last_interrupt_;
};

}  // namespace berth::command
