// How a step's tasks are started and what their streams are.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "step/launch_failure.h"
#include "step/spool.h"
#include "step/supervisor.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::step {
namespace {

/// Tasks that are made ready before the first of them is started: each has some descriptors more
/// until then.
constexpr std::size_t kAtOnce = 64;

Result<std::pair<Fd, Fd>> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return launch_failure(LaunchPart::descriptor, "pipe", errno);
  }
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

void set_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

Result<std::shared_ptr<Fd>> nothing(int flags) {
  const int fd = ::open("/dev/null", flags | O_CLOEXEC);
  if (fd < 0) return launch_failure(LaunchPart::descriptor, "/dev/null", errno);
  return std::make_shared<Fd>(fd);
}

/// Whoever writes to it may have to wait for somebody.
bool is_read_by_somebody(int fd) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return true;
  if (S_ISREG(found.st_mode)) return false;
  constexpr unsigned kNullMajor = 1;
  constexpr unsigned kNullMinor = 3;
  return !S_ISCHR(found.st_mode) || found.st_rdev != makedev(kNullMajor, kNullMinor);
}

/// A terminal pair whose slave belongs to the user.
Result<std::pair<Fd, Fd>> open_terminal(const Identity& who) {
  const ActingAs user(who);
  Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[128];
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0 ||
      ::ptsname_r(master.get(), name, sizeof name) != 0) {
    return launch_failure(LaunchPart::terminal, "Unable to open a terminal", errno);
  }
  Fd slave(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave) return launch_failure(LaunchPart::terminal, name, errno);
  return std::pair<Fd, Fd>(std::move(master), std::move(slave));
}

}  // namespace

void Supervisor::give_up_launch(const Error& why) {
  launched_ = true;
  launch_again_at_.reset();
  trouble_ = std::string(why.what());
  tell_launched(&why);
  reap();  // where no child is, none is waited for
}

void Supervisor::launch_failed(const Error& why) {
  if (why.code == Code::node_unfit && !tried_before_) {
    tried_before_ = true;
    launch_again_at_ = Clock::now() + kTryAgainAfter;
    return;
  }
  node_unfit_ = why.code == Code::node_unfit;
  give_up_launch(failed_twice(why));
}

void Supervisor::launch() {
  const auto give_up = [this] {
    give_up_launch(fail(Code::job_completed, "the step was ended").error());
  };
  if (ending()) return give_up();
  if (launch_again_at_ && Clock::now() < *launch_again_at_) return;
  launch_again_at_.reset();
  if (!prepared_) {
    if (auto ready = prepare(); !ready) return launch_failed(ready.error());
    prepared_ = true;
  }
  if (keys_.waits()) return;
  watch_lease();  // it may have taken long until here: a file system of the user hung
  if (ending()) return give_up();
  if (auto begun = start_tasks(); !begun) return launch_failed(begun.error());
  launched_ = true;
  tell_launched(nullptr);
  if (spec_.step_id() == wire::kBatchStep) {
    for (auto& agent : agents_) {
      agent->send(wire::StepStarted());
      agent->flush();
    }
  }
  if (spec_.has_time_limit_seconds() && spec_.time_limit_seconds() > 0) {
    limit_alarm_.emplace();
    limit_alarm_->set(boot_now() + std::chrono::seconds(spec_.time_limit_seconds()));
  }
  if (spec_.oom_kill_step() && !order_.fence().memory_events().empty()) memory_at_ = Clock::now();
  early_bytes_ = 0;
  for (const wire::Input& input : std::exchange(early_input_, {})) take_input(input);
}

Result<void> Supervisor::start_tasks() {
  // What is not written down would be started again by whoever finds no trace of it.
  const off_t before = ::lseek(record_.get(), 0, SEEK_END);
  if (!write_all(record_.get(), wire::framed(wire::StepStarted()))) {
    int why = errno;
    // Half a frame would hide what is written after it.
    const bool some = ::lseek(record_.get(), 0, SEEK_END) > before;
    if (some && ::ftruncate(record_.get(), before) != 0) why = errno;
    return launch_failure(LaunchPart::spool, order_.step_directory(), why);
  }
  tasks_.clear();
  tasks_.resize(static_cast<std::size_t>(spec_.tasks_size()));
  for (int i = 0; i < spec_.tasks_size(); ++i) {
    tasks_[static_cast<std::size_t>(i)].spec = &spec_.tasks(i);
  }
  environment_.emplace(spec_, order_.program(), order_.mark(), [this](Environment& all) {
    keys_.put_common(all);
    if (!order_.conf_path().empty()) all.insert_or_assign("SLURM_CONF", order_.conf_path());
    if (order_.emulated()) all.insert_or_assign("BERTH_PRETENDED", "1");
  });
  crash_.reached("step.before_tasks");
  for (std::size_t first = 0; first < tasks_.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, tasks_.size() - first);
    if (auto begun = start_some(std::span(tasks_).subspan(first, count)); !begun) {
      const bool some = !leaders().empty();
      if (some) end("", true);
      for (Task& other : tasks_) {
        if (other.pid > 0) continue;
        other.exited = true;
        other.streams.clear();
      }
      return pass(some ? once_begun(std::move(begun.error())) : std::move(begun.error()));
    }
  }
  crash_.reached("step.after_tasks");
  return {};
}

Result<void> Supervisor::prepare() {
  if (std::string why = who_.unreachable(); !why.empty()) {
    return launch_failure(LaunchPart::other_user, std::move(why));
  }
  if (const int why = who_.try_on(); why != 0) {
    return launch_failure(LaunchPart::identity, fmt::format("cannot become user {}", who_.uid),
                          why);
  }
  const bool batch = spec_.step_id() == wire::kBatchStep;
  bool usable = false;
  int why = 0;
  {
    const ActingAs user(who_);
    const Fd folder(::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    usable = folder && ::faccessat(folder.get(), ".", X_OK, AT_EACCESS) == 0;
    why = errno;
  }
  if (!usable) {
    if (batch) return launch_failure(LaunchPart::directory, directory_, why);
    say(fmt::format("couldn't chdir to `{}': {}: going to /tmp instead", directory_,
                    std::strerror(why)));
    files_.set_directory("/tmp");
  }
  if (batch) return write_script();
  const ActingAs user(who_);  // the program is the user's to find
  const std::vector<std::string> words =
      spec_.tasks_size() > 0 ? argv_of(spec_.tasks(0)) : std::vector<std::string>();
  std::string file;
  if (!words.empty()) {
    std::optional<std::string_view> path;
    for (const wire::Variable& v : order_.program().environment()) {
      if (v.name() == "PATH") path = v.value();
    }
    file = find_program(words.front(), directory_, path);
  }
  return keys_.prepare(file);
}

Result<void> Supervisor::write_script() {
  if (!order_.program().step_started_by_batch()) return {};
  const std::string directory = directory_of(order_.step_directory());
  const std::string path = directory + '/' + kScriptFile;
  if (::mkdir(directory.c_str(), 0711) != 0 && errno != EEXIST) {
    return launch_failure(LaunchPart::spool, directory, errno);
  }
  if (!write_file(path, order_.program().script(), 0500)) {
    return launch_failure(LaunchPart::spool, path, errno);
  }
  if (::geteuid() == 0 && ::chown(path.c_str(), spec_.uid(), spec_.gid()) != 0) {
    return launch_failure(LaunchPart::script_owner, path, errno);
  }
  if (order_.program().argv_size() == 0) order_.mutable_program()->add_argv();
  order_.mutable_program()->set_argv(0, path);
  return {};
}

std::vector<std::string> Supervisor::argv_of(const wire::TaskSpec& task) const {
  const wire::Program& program = order_.program();
  for (const wire::ProgramOf& own : program.multi_prog()) {
    if (own.rank() == task.rank()) return {own.argv().begin(), own.argv().end()};
  }
  return {program.argv().begin(), program.argv().end()};
}

std::string Supervisor::directory_for(const wire::TaskSpec& task) const {
  for (const wire::ProgramOf& own : order_.program().multi_prog()) {
    if (own.rank() == task.rank() && !own.directory().empty()) return own.directory();
  }
  return directory_;
}

TaskStart Supervisor::start_of(const Task& task) const {
  const auto index = static_cast<int>(&task - tasks_.data());
  return TaskStart{.order = order_,
                   .spec = spec_,
                   .task = *task.spec,
                   .who = who_,
                   .argv = argv_of(*task.spec),
                   .environment = environment_->of(*task.spec),
                   .directory = directory_for(*task.spec),
                   .os_cpus = index < order_.os_cpus_size() ? order_.os_cpus(index) : ""};
}

const wire::TaskFence& Supervisor::fence_of(const Task& task) const {
  const auto index = static_cast<int>(&task - tasks_.data());
  return index < order_.fence().tasks_size() ? order_.fence().tasks(index)
                                             : wire::TaskFence::default_instance();
}

/// A task's first words go to a pipe that this process reads later, or to a file. Not so where the
/// user has named something else.
bool Supervisor::may_wait(const Task& task, bool error, int fd) {
  const bool streamed = std::ranges::any_of(
      task.streams, [&](const Stream& stream) { return stream.error == error; });
  return !streamed && is_read_by_somebody(fd);
}

Result<Supervisor::Starting> Supervisor::make_ready(Task& task) {
  Result<TaskEnds> ends = make_streams(task);
  if (!ends) return pass(std::move(ends.error()));
  TaskStart start = start_of(task);
  const auto& all = order_.fence().join();
  start.groups.assign(all.begin(), all.end());
  const auto& own = fence_of(task).join();
  start.groups.insert(start.groups.end(), own.begin(), own.end());
  Fd pmi = keys_.connect(task.spec->rank());
  start.pmi = pmi.get();
  keys_.put_variables(task.spec->rank(), start.environment);
  start.in = ends->in->get();
  start.out = ends->out->get();
  start.err = ends->err->get();
  start.terminal = ends->terminal;
  // Entering a group of cgroup v1 may wait for the kernel, and what is said to a pipe for its
  // reader.
  const bool takes_a_while =
      start.has_prologs() || !start.groups.empty() ||
      (!ends->terminal && (may_wait(task, false, start.out) || may_wait(task, true, start.err)));
  return Starting{&task, std::move(*ends), std::move(pmi), PreparedTask(std::move(start)),
                  takes_a_while};
}

Result<void> Supervisor::start_some(std::span<Task> tasks) {
  std::vector<Starting> ready;
  ready.reserve(tasks.size());
  for (Task& task : tasks) {
    auto one = make_ready(task);
    if (!one) return pass(std::move(one.error()));
    ready.push_back(std::move(*one));
  }
  std::vector<std::function<void()>> children;
  std::vector<Starting*> sharing;
  int why = 0;
  for (Starting& one : ready) {
    const std::string& own = fence_of(*one.task).cgroup();
    if (one.takes_a_while || !own.empty()) {
      const pid_t pid = container_.start([&one] { one.prepared.run(); }, own);
      if (pid < 0) why = errno;
      // The task does so too: whoever comes first, signals to the group work from now on.
      if (pid > 0 && !one.ends.terminal) ::setpgid(pid, pid);
      started(one, pid);
    } else {
      children.emplace_back([this, &one] { one.prepared.run(container_.low()); });
      sharing.push_back(&one);
    }
  }
  const std::vector<pid_t> pids = container_.start_sharing(children);
  if (std::ranges::find(pids, -1) != pids.end()) why = errno;
  for (std::size_t i = 0; i < pids.size(); ++i) started(*sharing[i], pids[i]);
  if (why != 0) return launch_failure(LaunchPart::process, "fork", why);
  return {};
}

void Supervisor::started(Starting& starting, pid_t pid) {
  Task& task = *starting.task;
  task.pid = pid;
  if (pid < 0) return;
  task.out_file = std::move(starting.ends.out);
  task.err_file = std::move(starting.ends.err);
  // Pipes must end with the task; only files stay open, for epilogs and the supervisor's lines.
  for (const Stream& stream : task.streams) (stream.error ? task.err_file : task.out_file).reset();
  if (order_.program().stderr().kind().empty() && !order_.has_client()) {
    task.err_file = task.out_file;
  }
}

Result<Supervisor::TaskEnds> Supervisor::make_streams(Task& task) {
  const wire::Program& program = order_.program();
  if (program.pty() && task.spec->rank() == 0) return make_terminal(task);
  TaskEnds ends;
  Result<std::shared_ptr<Fd>> in = make_input(task);
  if (!in) return pass(std::move(in.error()));
  ends.in = std::move(*in);
  Result<std::shared_ptr<Fd>> out = make_output(task, program.stdout(), false);
  if (!out) return pass(std::move(out.error()));
  ends.out = std::move(*out);
  // Unset on a node without a client: where standard output goes.
  const bool same = program.stderr().kind().empty() && program.stdout().kind() == "file";
  if (same) {
    ends.err = ends.out;
    return ends;
  }
  Result<std::shared_ptr<Fd>> err = make_output(task, program.stderr(), true);
  if (!err) return pass(std::move(err.error()));
  ends.err = std::move(*err);
  return ends;
}

Result<std::shared_ptr<Fd>> Supervisor::make_input(Task& task) {
  const wire::StdioSpec& how = order_.program().stdin();
  if (how.kind() == "file") return files_.reading(files_.path_of(how.pattern(), task.spec->rank()));
  const bool from_client = order_.has_client() && !order_.program().pty() &&
                           (how.kind() == "client" || how.kind().empty() ||
                            (how.kind() == "task" && how.rank() == task.spec->rank()));
  if (!from_client) return nothing(O_RDONLY);
  auto ends = make_pipe();
  if (!ends) return pass(std::move(ends.error()));
  task.in = std::move(ends->second);
  set_nonblocking(task.in.get());
  return std::make_shared<Fd>(std::move(ends->first));
}

Result<std::shared_ptr<Fd>> Supervisor::make_output(Task& task, const wire::StdioSpec& how,
                                                    bool error) {
  const wire::Program& program = order_.program();
  Stream stream;
  stream.error = error;
  stream.cutter = LineCutter(program.unbuffered() && !program.label());
  if (how.kind() == "file") {
    const std::string path = files_.path_of(how.pattern(), task.spec->rank());
    if (!program.label()) return files_.writing(path);
    auto file = files_.queued(path);
    if (!file) return pass(std::move(file.error()));
    stream.file = std::move(*file);
  } else {
    const bool to_client =
        order_.has_client() && (how.kind() == "client" || how.kind().empty() ||
                                (how.kind() == "task" && how.rank() == task.spec->rank()));
    if (!to_client) return nothing(O_WRONLY);
  }
  if (program.unbuffered() && !error) {
    // A terminal makes the C library write line by line; nothing else of a terminal is wanted.
    auto ends = open_terminal(who_);
    if (!ends) return pass(std::move(ends.error()));
    termios raw{};
    ::tcgetattr(ends->second.get(), &raw);
    ::cfmakeraw(&raw);
    ::tcsetattr(ends->second.get(), TCSANOW, &raw);
    stream.fd = std::move(ends->first);
    set_nonblocking(stream.fd.get());
    task.streams.push_back(std::move(stream));
    return std::make_shared<Fd>(std::move(ends->second));
  }
  auto ends = make_pipe();
  if (!ends) return pass(std::move(ends.error()));
  stream.fd = std::move(ends->first);
  set_nonblocking(stream.fd.get());
  task.streams.push_back(std::move(stream));
  return std::make_shared<Fd>(std::move(ends->second));
}

Result<Supervisor::TaskEnds> Supervisor::make_terminal(Task& task) {
  auto ends = open_terminal(who_);
  if (!ends) return pass(std::move(ends.error()));
  const wire::Program& program = order_.program();
  if (program.rows() > 0 && program.columns() > 0) {
    const winsize size{.ws_row = static_cast<unsigned short>(program.rows()),
                       .ws_col = static_cast<unsigned short>(program.columns()),
                       .ws_xpixel = 0,
                       .ws_ypixel = 0};
    ::ioctl(ends->first.get(), TIOCSWINSZ, &size);
  }
  set_nonblocking(ends->first.get());
  task.terminal = true;
  task.in.reset(::fcntl(ends->first.get(), F_DUPFD_CLOEXEC, 3));
  Stream stream;
  stream.cutter = LineCutter(true);
  stream.fd = std::move(ends->first);
  task.streams.push_back(std::move(stream));
  auto slave = std::make_shared<Fd>(std::move(ends->second));
  return TaskEnds{.in = slave, .out = slave, .err = slave, .terminal = true};
}

void Supervisor::start_epilogs(Task& task) {
  if (spec_.step_id() == wire::kBatchStep) return;
  for (const std::string* program : {&order_.program().task_epilog(), &order_.task_epilog()}) {
    if (program->empty()) continue;
    const int none = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    TaskStart start = start_of(task);
    start.in = none;
    start.out = task.out_file ? task.out_file->get() : none;
    start.err = task.err_file ? task.err_file->get() : none;
    const pid_t pid = Container::start_outside([&] { run_epilog(start, *program); });
    if (pid > 0) task.epilogs.push_back(pid);
    ::close(none);
  }
}

void Supervisor::tell_launched(const Error* refusal) {
  wire::LaunchReply reply;
  if (refusal != nullptr) *reply.mutable_refusal() = wire::to_refusal(*refusal);
  for (const Task& task : tasks_) {
    reply.add_ranks(task.spec->rank());
    reply.add_pids(static_cast<std::uint32_t>(std::max(task.pid, 0)));
  }
  for (auto& client : clients_) {
    client->peer.send(reply);
    client->peer.flush();
  }
}

}  // namespace berth::step
