// The supervisor of one step on one node: starts its tasks, carries their streams, passes signals,
// ends them, and does not go before everything they started is gone.
//
//   launch ── tasks run ──▶ all exited ──▶ clearing (what they left behind is killed) ──▶ over:
//             │ end(), client gone                              result file, StepEnded, NodeDone
//             └ SIGCONT+SIGTERM, KillWait, SIGKILL
#pragma once

#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/boot_clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "step/container.h"
#include "step/crash_point.h"
#include "step/key_exchange.h"
#include "step/lines.h"
#include "step/output_files.h"
#include "step/peer.h"
#include "step/task_start.h"
#include "step/task_use.h"
#include "wire/frame.h"

namespace berth::step {

class Supervisor {
 public:
  using Clock = std::chrono::steady_clock;

  /// `agent`: the connection Supervise came on; `client`: none for a batch step; `record`: of the
  /// step in the spool, to append to.
  Supervisor(wire::Supervise order, wire::StepSpec spec, std::unique_ptr<Peer> agent, Fd client,
             Fd record);
  /// Returns when the step is over and everybody was told.
  void run();

 private:
  /// A stream of a task that passes through here.
  struct Stream {
    Fd fd;
    bool error = false;
    LineCutter cutter;
    std::shared_ptr<QueuedFile> file;  // none = to the clients
    bool line_open = false;            // of a labelled file
    bool used = false;                 // something was written to it
  };
  struct Task {
    const wire::TaskSpec* spec = nullptr;
    pid_t pid = 0;
    bool exited = false;
    int status = 0;
    TaskUse used;  // once it has exited
    Fd in;         // to its standard input
    std::string in_queue;
    bool in_ends = false;
    bool terminal = false;
    std::vector<Stream> streams;
    std::vector<pid_t> epilogs;
    std::shared_ptr<Fd> out_file;  // of an epilog
    std::shared_ptr<Fd> err_file;
  };
  struct Client {
    Peer peer;
    bool owner = false;
    bool read_only = false;
    bool finished = false;  // everything was sent, only its end is awaited
  };
  /// The descriptors of one task, on the task's side.
  struct TaskEnds {
    std::shared_ptr<Fd> in, out, err;
    bool terminal = false;
  };

  // supervisor_launch.cpp
  /// Prepares what is not prepared yet, and starts the tasks unless they wait for keys. Starts none
  /// of a step that is ending.
  void launch();
  Result<void> start_tasks();
  /// By the node's fault: once more in a moment. Else, and the second time, it is over.
  void launch_failed(const Error& why);
  void give_up_launch(const Error& why);
  Result<void> prepare();
  Result<void> write_script();
  Result<TaskEnds> make_streams(Task& task);
  Result<std::shared_ptr<Fd>> make_input(Task& task);
  Result<std::shared_ptr<Fd>> make_output(Task& task, const wire::StdioSpec& how, bool error);
  Result<TaskEnds> make_terminal(Task& task);
  /// What is there before a task's process is.
  struct Starting {
    Task* task;
    TaskEnds ends;
    Fd pmi;
    PreparedTask prepared;
    bool takes_a_while;
  };
  Result<void> start_some(std::span<Task> tasks);
  Result<Starting> make_ready(Task& task);
  [[nodiscard]] static bool may_wait(const Task& task, bool error, int fd);
  void started(Starting& starting, pid_t pid);
  void start_epilogs(Task& task);
  void tell_launched(const Error* refusal);
  [[nodiscard]] std::vector<std::string> argv_of(const wire::TaskSpec& task) const;
  [[nodiscard]] std::string directory_for(const wire::TaskSpec& task) const;
  [[nodiscard]] TaskStart start_of(const Task& task) const;
  [[nodiscard]] const wire::TaskFence& fence_of(const Task& task) const;

  // supervisor_io.cpp
  [[nodiscard]] KeyExchange::Outside outside();
  void read_client(Client& client);
  void take_frame(Client& client, const wire::Frame& frame);
  void take_input(const wire::Input& input);
  void write_input(Task& task);
  /// Reads once, or (drain) until nothing is there. The stream is closed at its end.
  void read_stream(Task& task, Stream& stream, bool drain);
  void pass_on(Task& task, Stream& stream, std::string bytes, bool end);
  void attach(Fd fd, const wire::SuperviseAttach& how);
  void client_gone(Client& client);
  void set_window(std::uint32_t rows, std::uint32_t columns);
  [[nodiscard]] bool congested() const;
  [[nodiscard]] bool input_blocked() const;
  /// How many sattach are connected.
  [[nodiscard]] std::size_t attached() const;

  // supervisor_end.cpp
  void end(const std::string& cause, bool now);
  /// To the clients; without any, to the file of the step's errors.
  void say(const std::string& text, bool as_it_is = false);
  /// What was said to a file, by a process that may wait for it: this one never does.
  void write_lines();
  /// Who ended the step and why, for the user's eyes.
  void announce_end(const std::string& cause, bool now);
  void signal_step(int number, bool tasks_only);
  /// srun is told when all is stopped and when it goes on: its clocks stop too.
  void tell_paused(bool paused);
  void reap();
  void task_exited(Task& task, int status, const rusage& usage,
                   const std::optional<ProcessBytes>& bytes);
  /// Looks whether the kernel killed processes of the step for want of memory since it last did.
  bool ran_out_of_memory();
  void say_out_of_memory();
  void say_out_of_processes();
  void advance();
  void finish();
  void report_stuck();
  [[nodiscard]] wire::StepEnded stuck_report() const;
  wire::StepEnded result() const;
  void tell_agents(const wire::StepEnded& ended);

  // supervisor_measure.cpp
  [[nodiscard]] wire::TasksMeasured measure() const;
  void adopt_orphans(std::vector<std::vector<pid_t>>& processes) const;

  // supervisor.cpp
  void poll_once();
  void read_agent(Peer& agent);
  /// Does what the agent has said, as far as it was read.
  void obey(Peer& agent);
  void accept_agent();
  /// Without an agent: the next one finds it by a socket.
  void await_agent();
  void run_timers();
  /// Its job has a lease: who hears nothing of the controller for that long ends it. The agent does
  /// it a little earlier, if it is there and can.
  void watch_lease();
  /// Its tasks are to end, or were killed.
  [[nodiscard]] bool ending() const { return killed_ || kill_at_.has_value(); }
  void drop_closed();
  [[nodiscard]] bool done() const;
  [[nodiscard]] std::vector<pid_t> leaders() const;

  enum class Phase { running, clearing, over };

  wire::Supervise order_;
  wire::StepSpec spec_;
  const Identity who_ = Identity::of(spec_);
  Container container_;
  std::string directory_;  // where the tasks run
  OutputFiles files_;
  CrashPoints crash_;
  KeyExchange keys_;
  std::optional<StepEnvironment> environment_;  // from the start of the tasks on
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Peer>> agents_;
  Fd record_;
  Fd listener_;
  Fd signals_;
  Phase phase_ = Phase::running;
  bool children_left_ = true;
  bool launched_ = false;  // the tasks were started, or will not be
  bool prepared_ = false;
  bool tried_before_ = false;             // and failed by the node's fault
  bool node_unfit_ = false;               // it failed so again: nothing was started
  std::vector<wire::Input> early_input_;  // before the tasks are started
  std::size_t early_bytes_ = 0;           // of it
  bool killed_ = false;
  bool signalled_to_end_ = false;
  bool stuck_ = false;
  std::string lines_;  // for the file of errors
  pid_t writer_ = 0;   // of lines
  bool paused_ = false;
  std::uint64_t memory_kills_ = 0;
  std::string cause_;
  std::string trouble_;
  const BootTime began_ = boot_now();
  std::optional<BootAlarm> lease_alarm_;
  std::optional<BootAlarm> limit_alarm_;  // of the step; time that the machine sleeps counts
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> retry_at_;
  std::optional<Clock::time_point> stuck_at_;
  std::optional<Clock::time_point> leave_at_;
  std::optional<Clock::time_point> memory_at_;  // --oom-kill-step: to look again
  std::optional<Clock::time_point> writer_until_;
  std::optional<Clock::time_point> launch_again_at_;
  std::chrono::milliseconds retry_delay_{1};
  wire::StepUsage usage_;
};

/// The supervisor's program: reads Supervise from `agent_fd`. Returns the exit code.
int supervise(int agent_fd, int client_fd, int record_fd);

}  // namespace berth::step
