// salloc: waits for an allocation, runs a command in it, gives it back.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "auth/random.h"
#include "base/process.h"
#include "command/commands.h"
#include "command/controller_client.h"
#include "command/messages.h"
#include "command/submit_asked.h"
#include "command/submit_link.h"
#include "command/submit_wait.h"
#include "request/signals.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::command {
namespace {

using request::Command;
using request::Environment;
using request::Opt;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kSallocName = "salloc";
constexpr auto kSallocFinishPatience = seconds(20);
constexpr auto kBellAfter = seconds(10);

/// The shell or command in the allocation, in a process group of its own when there is a terminal.
class Child {
 public:
  Child(std::vector<std::string> argv, const Environment& environment, const sigset_t& mask)
      : argv_(std::move(argv)), mask_(mask) {
    for (const auto& [name, value] : environment) entries_.push_back(name + "=" + value);
  }

  /// False when there can be no child at all.
  bool start() {
    terminal_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    if (terminal_) ::tcgetattr(STDIN_FILENO, &modes_);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) exec(writer.get());
    writer.reset();
    if (pid_ < 0) return false;
    if (terminal_) {
      ::setpgid(pid_, pid_);
      give_terminal(pid_);
    }
    int problem = 0;
    if (::read(reader.get(), &problem, sizeof problem) == sizeof problem) problem_ = problem;
    return true;
  }

  /// The wait(2) status when it ended.
  std::optional<int> ended() {
    int status = 0;
    const pid_t pid = ::waitpid(pid_, &status, WNOHANG | WUNTRACED);
    if (pid != pid_) return std::nullopt;
    if (WIFSTOPPED(status)) {
      // A stopped shell stops salloc too, and goes on with it.
      if (terminal_) give_terminal(::getpgrp());
      ::kill(::getpid(), SIGSTOP);
      if (terminal_) give_terminal(pid_);
      ::kill(-pid_, SIGCONT);
      return std::nullopt;
    }
    if (terminal_) {
      give_terminal(::getpgrp());
      ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes_);
    }
    return status;
  }

  void signal(int number) const {
    if (::kill(terminal_ ? -pid_ : pid_, number) != 0) ::kill(pid_, number);
  }
  [[nodiscard]] bool on_terminal() const { return terminal_; }
  /// Why it could not be started: errno.
  [[nodiscard]] std::optional<int> problem() const { return problem_; }

 private:
  [[noreturn]] void exec(int report) {
    if (terminal_) {
      ::setpgid(0, 0);
      give_terminal(::getpid());
    }
    for (const int number : {SIGTTOU, SIGTTIN, SIGTSTP, SIGPIPE}) ::signal(number, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
    const std::vector<char*> words = pointers_to(argv_);
    const std::vector<char*> variables = pointers_to(entries_);
    ::execvpe(words[0], words.data(), variables.data());
    const int problem = errno;
    [[maybe_unused]] const ssize_t told = ::write(report, &problem, sizeof problem);
    ::_exit(problem == ENOENT ? 127 : 126);
  }

  static void give_terminal(pid_t group) {
    // The caller may be in the background just now: the kernel would stop it.
    sigset_t mask;
    sigset_t before;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGTTOU);
    ::sigprocmask(SIG_BLOCK, &mask, &before);
    ::tcsetpgrp(STDIN_FILENO, group);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
  }

  std::vector<std::string> argv_;
  std::vector<std::string> entries_;
  sigset_t mask_;
  pid_t pid_ = -1;
  bool terminal_ = false;
  termios modes_{};
  std::optional<int> problem_;
};

class Salloc {
 public:
  Salloc(const Prepared& prepared, const Environment& environment)
      : prepared_(prepared),
        environment_(environment),
        signals_({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGCONT, SIGUSR1, SIGUSR2}),
        link_(environment, std::string(kSallocName)) {}

  int run() {
    wire::SubmitJob job;
    *job.mutable_asked() = asked_of(prepared_, false);
    job.set_token(auth::random_token());
    job.set_interactive(true);
    job.set_detached(prepared_.has(Opt::no_shell));
    const auto reply = submit_job(link_, environment_, job, prepared_.parsed.warnings, &signals_);
    if (!reply) return refused(reply.error());
    JobWait wait;
    wait.program = kSallocName;
    wait.job_id = job_ = reply->job_id();
    wait.token = job.token();
    wait.quiet = prepared_.quiet();
    wait.immediate = immediate_of(prepared_.first());
    const auto grant =
        job.detached() ? watch_job(link_, signals_, wait) : wait_for_job(link_, signals_, wait);
    if (!grant) return refused(grant.error());

    say(fmt::format("Granted job allocation {}", job_));
    ring(wait.waited);
    say(fmt::format("Nodes {} are ready for job", nodes_of(*grant)));
    if (job.detached()) return 0;
    return run_command(*grant);
  }

 private:
  int refused(const Error& error) {
    const int code = print_error(error, kSallocName);
    return error.code == Code::nodes_busy ? immediate_exit_code(environment_)
                                          : own_exit_code(environment_, code);
  }

  void say(const std::string& text) const {
    if (!prepared_.quiet()) print_info(text, kSallocName);
  }

  void ring(milliseconds waited) const {
    const bool wanted = prepared_.has(Opt::bell) || waited > kBellAfter;
    if (!wanted || prepared_.has(Opt::no_bell) || ::isatty(STDOUT_FILENO) != 1) return;
    [[maybe_unused]] const ssize_t told = ::write(STDOUT_FILENO, "\a", 1);
  }

  static std::string nodes_of(const wire::JobGrant& grant) {
    if (grant.components_size() == 1) return grant.components(0).nodes();
    std::vector<std::string> names;
    for (const wire::Component& component : grant.components()) {
      names.insert(names.end(), component.node_names().begin(), component.node_names().end());
    }
    return text::compress_hostlist(names);
  }

  [[nodiscard]] std::vector<std::string> command(const wire::JobGrant& grant) const {
    if (!prepared_.first().argv.empty()) return prepared_.first().argv;
    const auto found = environment_.find("SHELL");
    const bool known = found != environment_.end() && !found->second.empty();
    const std::string shell = known ? found->second : "/bin/sh";
    if (grant.interactive_step().empty()) return {shell};
    // LaunchParameters=use_interactive_step: the shell is a step on the first node.
    std::vector<std::string> argv{"srun"};
    for (const std::string_view word : text::split(grant.interactive_step(), ' ')) {
      if (!word.empty()) argv.emplace_back(word == "$SHELL" ? std::string_view(shell) : word);
    }
    return argv;
  }

  [[nodiscard]] Environment variables(const wire::JobGrant& grant) const {
    Environment out = environment_;
    for (const wire::Variable& variable : grant.environment()) {
      out[variable.name()] = variable.value();
    }
    out["SLURM_SUBMIT_DIR"] = current_directory();
    out["SLURM_SUBMIT_HOST"] = short_host_name();
    if (!grant.conf_path().empty()) out["SLURM_CONF"] = grant.conf_path();
    return out;
  }

  int run_command(const wire::JobGrant& grant) {
    const std::vector<std::string> argv = command(grant);
    if (const auto& directory = prepared_.first().chdir) {
      if (::chdir(directory->c_str()) != 0) {
        print_message(
            {Severity::error, fmt::format("chdir({}): {}", *directory, std::strerror(errno))},
            kSallocName);
        finish(1 << 8);
        return own_exit_code(environment_, 1);
      }
    }
    Child child(argv, variables(grant), signals_.outside());
    if (!child.start()) {
      print_message({Severity::error, fmt::format("fork: {}", std::strerror(errno))}, kSallocName);
      finish(1 << 8);
      return own_exit_code(environment_, 1);
    }
    const int status = wait_for(child);
    if (child.problem()) {
      print_message(
          {Severity::error, fmt::format("{}: {}", argv.front(), std::strerror(*child.problem()))},
          kSallocName);
    }
    finish(status);
    if (child.problem()) return own_exit_code(environment_, 1);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    switch (WTERMSIG(status)) {
      // These come from the user: the command ended as it should.
      case SIGHUP:
      case SIGINT:
      case SIGQUIT:
      case SIGKILL:
        return 0;
      default:
        return 1;
    }
  }

  int wait_for(Child& child) {
    while (true) {
      if (const auto status = child.ended()) return *status;
      while (auto frame = link_.next()) take(*frame, child);
      if (const auto status = child.ended()) return *status;
      const auto retry = revoked_ ? std::nullopt : link_.until_try();
      std::array<pollfd, 2> polled = {pollfd{signals_.fd(), POLLIN, 0},
                                      pollfd{revoked_ ? -1 : link_.fd(), link_.events(), 0}};
      ::poll(polled.data(), polled.size(), retry ? static_cast<int>(retry->count()) + 1 : -1);
      while (const auto signal = signals_.take()) {
        // A terminal tells the child itself.
        if (*signal == SIGCHLD || *signal == SIGCONT) continue;
        if (!child.on_terminal() && (*signal == SIGINT || *signal == SIGQUIT)) continue;
        child.signal(*signal);
      }
      if (revoked_) continue;
      if (link_.connected()) {
        link_.flush();
      } else {
        link_.try_again();
      }
    }
  }

  void take(const wire::Frame& frame, const Child& child) {
    if (frame.kind == wire::Kind::Notice) {
      if (const auto notice = wire::decode<wire::Notice>(frame.payload)) {
        print_message(wire::from_line(notice->line()), kSallocName);
      }
      return;
    }
    if (frame.kind != wire::Kind::JobEnded || revoked_) return;
    revoked_ = true;
    link_.close();
    print_info(fmt::format("Job allocation {} has been revoked.", job_), kSallocName);
    const request::Given* kill = prepared_.first().given.find(Opt::kill_command);
    if (kill == nullptr) {
      // A shell without its allocation is of no use; a command may have its own ideas.
      if (child.on_terminal()) child.signal(SIGHUP);
      return;
    }
    const auto number = request::parse_signal(kill->text);
    child.signal(number.value_or(child.on_terminal() ? SIGHUP : SIGTERM));
  }

  void finish(int status) {
    if (revoked_) return;
    say(fmt::format("Relinquishing job allocation {}", job_));
    wire::FinishJob done;
    done.set_job_id(job_);
    done.set_exit_status(status);
    const Moment until = std::chrono::steady_clock::now() + kSallocFinishPatience;
    link_.send(done);
    bool sent = link_.connected();
    while (std::chrono::steady_clock::now() < until) {
      if (!link_.connected()) sent = false;
      if (!sent && link_.try_again()) {
        link_.send(done);
        sent = true;
      }
      while (auto frame = link_.next()) {
        if (frame->kind == wire::Kind::Done || frame->kind == wire::Kind::JobEnded) return;
      }
      pollfd wait{link_.fd(), link_.events(), 0};
      ::poll(&wait, 1, link_.connected() ? 1000 : 100);
      link_.flush();
    }
  }

  const Prepared& prepared_;
  const Environment& environment_;
  SignalFd signals_;
  ControllerLink link_;
  std::uint32_t job_ = 0;
  bool revoked_ = false;
};

}  // namespace

int run_salloc(std::span<const std::string> words, const Environment& environment) {
  const auto prepared = prepare(Command::salloc, words, {}, environment, /*inside_job=*/false);
  if (!prepared) return own_exit_code(environment, print_error(prepared.error(), kSallocName));
  if (answered(*prepared)) return 0;
  return Salloc(*prepared, environment).run();
}

}  // namespace berth::command
