// A step as its client sees it: streams, ends of tasks, signals, until every node is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "command/launch_exits.h"
#include "command/launch_link.h"
#include "command/launch_merge.h"
#include "command/launch_signals.h"
#include "command/launch_sink.h"
#include "command/submit_link.h"

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
  std::optional<std::chrono::seconds> wait;  // -W
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
};

class StepRun {
 public:
  /// `link` may be nullptr (sattach).
  StepRun(RunOptions options, std::vector<NodeStart> starts, ControllerLink* link,
          SignalFd& signals);

  /// Until all nodes are done; the exit code of srun.
  int run();
  /// For the controller, wait(2) form.
  [[nodiscard]] int wait_status() const;

 private:
  enum class Ending { no, asked, killed };

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
  void take_node(NodeLink& node);
  void take_frame(NodeLink& node, const wire::Frame& frame);
  void take_output(const wire::Output& output);
  void take_exits(NodeLink& node, const wire::TasksExited& exits);
  void take_line(const wire::Line& line);
  void launch_failed(NodeLink& node, const Error& error);
  bool dial_again(NodeLink& node, const Error& why);
  void node_lost(NodeLink& node, const Error& error);
  void run_timers();

  /// SIGCONT and SIGTERM now, SIGKILL after KillWait.
  void end_step(int first_signal);
  void tell_abort();
  void tell_exits();
  void tell_status();
  void info(const std::string& text);
  void error(const std::string& text);
  void say(const Message& message, std::string_view who);
  void drain();

  RunOptions options_;
  std::vector<NodeLink> nodes_;
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
  bool pipe_told_ = false;
  bool failed_to_run_ = false;
  bool quit_ = false;
  bool raw_ = false;               // the terminal is in raw mode
  std::optional<Moment> tell_at_;  // lines about ends are held a moment to be grouped
  std::optional<Moment> kill_at_;
  std::optional<Moment> first_exit_;
  std::optional<Moment> wait_until_;
  std::optional<Moment> redial_at_;
  std::optional<Moment> patience_until_;  // for agents that are just being started again
  std::optional<Moment> last_interrupt_;
};

}  // namespace berth::command
