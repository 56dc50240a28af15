// How the tasks of a step on this node find the others (PMI-1, PMI-2, PMIx): each task has a
// connection for PMI, and an address that PMIx clients dial. Until one of them is used nothing
// happens but that: who they are is asked for, and the PMIx helper started, when the first task
// speaks; or before the tasks, where they are sure to ask for PMIx.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "launch/name_service.h"
#include "pmi/server.h"
#include "step/environment.h"
#include "step/peer.h"
#include "wire/supervise.pb.h"

namespace berth::step {

/// The number of a task's end of its PMI connection: out of the way of what scripts and shells use.
inline constexpr int kPmiDescriptor = 40;

class KeyExchange {
 public:
  struct Outside {
    std::function<void(const std::string& frame)> up;          // to srun
    std::function<void(const std::string& line)> say;          // to the user
    std::function<pid_t(const std::function<void()>&)> start;  // a process of the step
    std::function<bool()> ending;                              // the step was told to end
  };
  KeyExchange(const wire::Supervise& order, const wire::StepSpec& spec, Outside outside);

  /// Before tasks are started: why a step that insists on PMIx cannot have it.
  /// `program`: the file that the tasks are going to run, "" = not known.
  Result<void> prepare(const std::string& program);
  /// The tasks are not to be started yet.
  [[nodiscard]] bool waits() const { return ready_first_ && !served_; }
  /// Makes a task's connection; its end is to become kPmiDescriptor there. None for steps without
  /// PMI.
  Fd connect(std::uint32_t rank);
  /// Sets the variables by which tasks find all this, or takes away those of an outer step: what
  /// all tasks have in common, and a task's own.
  void put_common(Environment& environment) const;
  void put_variables(std::uint32_t rank, TaskEnvironment& environment) const;

  using Add = std::function<void(int fd, short events, std::function<void(short)> act)>;
  /// `full`: srun does not take what there is for it already, so nothing more is read.
  void add_polled(const Add& add, bool full);
  /// The code with which a task here has aborted the step: it may be ended before it can exit with
  /// it.
  [[nodiscard]] std::optional<int> abort_code(std::uint32_t rank) const;
  /// A frame of srun's; false when it is not for here.
  bool take(const wire::Frame& frame);

 private:
  struct Line {
    Fd fd;
    std::string out;  // answers that the task has not taken
    std::size_t taken = 0;
    [[nodiscard]] bool waits() const { return taken < out.size(); }
  };
  void first_word(std::uint32_t rank);
  void ask_layout();
  void take_layout(wire::StepLayout layout);
  void start_server();
  void start_helper();
  [[nodiscard]] wire::ServePmix order_of_helper() const;
  /// Tasks are told, and go on without it: who dials is refused at once.
  void no_helper(const std::string& what, int why);
  [[nodiscard]] std::string name_space() const;
  /// Where the helper keeps what tasks read.
  [[nodiscard]] std::string helper_directory() const;
  void read_task(std::uint32_t rank);
  void write_task(std::uint32_t rank);
  void hang_up(std::uint32_t rank);
  void act();  // what the PMI server wants
  void act(const pmi::Event& event);
  void fenced(std::uint64_t number, std::string_view data);
  void ask_root(const char* channel, std::uint64_t ticket, std::string data);
  void ask_name(std::uint64_t ticket, const launch::NameQuestion& question);
  void ask_spawn(const pmi::SpawnRequest& request);
  void take_errand(const wire::Errand& errand);
  void read_helper();
  void abort_step(const wire::AbortStep& abort);

  const wire::Supervise& order_;
  const wire::StepSpec& spec_;
  Outside outside_;
  bool serves_pmi_ = false;
  bool serves_pmix_ = false;
  std::optional<wire::StepLayout> layout_;
  bool layout_asked_ = false;
  std::map<std::uint32_t, Line> lines_;
  std::optional<pmi::Server> server_;
  Fd door_;  // PMIx clients dial it; the helper's from its start on
  std::uint16_t port_ = 0;
  bool helper_wanted_ = false;
  bool ready_first_ = false;  // the helper is to be there before the tasks
  bool served_ = false;       // it is, or it said that it cannot
  std::map<std::uint32_t, int> aborted_;
  std::optional<Peer> helper_;
};

}  // namespace berth::step
