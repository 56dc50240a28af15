// Steps that tasks of this one have started (MPI_Comm_spawn): each has an srun of its own, which
// this one ends when its own step fails and waits for when it ends well.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "command/launch_run.h"
#include "launch/errands.h"

namespace berth::command {
namespace {

/// At the same time; each is a process beside this one.
constexpr std::size_t kMostSpawned = 256;
constexpr std::size_t kLongestAnswer = 256;

}  // namespace

void StepRun::answer_errand(const wire::Errand& question, const Result<std::string>& answer) {
  wire::Errand errand;
  errand.set_to(question.from());
  errand.set_channel(question.channel());
  errand.set_number(question.number());
  errand.set_answer(true);
  errand.set_data(launch::answer_text(answer));
  deliver(errand);
}

void StepRun::spawn(const wire::Errand& question) {
  const auto refuse = [&](const Error& why) {
    error(fmt::format("MPI_Comm_spawn: {}", why.what()));
    if (!why.hint.empty()) say({Severity::plain, why.hint}, "berth");
    answer_errand(question, pass(why));
  };
  const auto tasks = wire::decode<wire::SpawnTasks>(question.data());
  if (!tasks) return refuse(fail(Code::protocol, "the request cannot be read").error());
  if (!options_.spawns || ending_ != Ending::no || spawned_.size() >= kMostSpawned) {
    return refuse(
        fail(Code::limit, fmt::format("StepId={} cannot start another step now: {}", step_name_,
                                      spawned_.size() >= kMostSpawned ? "too many of them run"
                                                                      : "it is about to end"))
            .error());
  }
  const auto words = spawn_words(*options_.spawns, *tasks, nodes_.size());
  if (!words) return refuse(words.error());
  auto started = start_srun(*words, *options_.spawns, *tasks, signals_);
  if (!started) return refuse(started.error());
  spawned_.push_back({.srun = std::move(*started), .question = question});
  spawned_.back().question.clear_data();
}

/// It has answered, or ended.
void StepRun::take_spawned(Spawned& step) {
  std::array<char, kLongestAnswer> buffer;
  const ssize_t n = ::read(step.srun.says.get(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n > 0) {
    if (!step.name.empty()) return;
    step.name.assign(buffer.data(), static_cast<std::size_t>(n));
    return answer_errand(step.question, step.name);
  }
  step.srun.says.reset();
  int status = 0;
  while (::waitpid(step.srun.pid, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = exit_code_of(status);
  if (step.name.empty()) {
    // Why was said by itself.
    answer_errand(step.question, fail(Code::bad_value, "the new step could not be started"));
    return;
  }
  spawned_code_ = std::max(spawned_code_, code);
  if (code == 0 || ending_ != Ending::no) return;
  error(fmt::format("StepId={}, which a task of StepId={} has started, ended with code {}",
                    step.name, step_name_, code));
  spawned_failed_first_ = spawned_failed_first_ || !first_failed_;
  if (left_ == 0) return;
  if (options_.kill_on_bad_exit) {
    failure_ended_it_ = true;
    grace_ended_it_ = true;
    tell_cancelled("TO TASK FAILURE");
    end_step(SIGTERM);
  } else if (options_.failure_grace) {
    grace_.begin(std::chrono::steady_clock::now(), *options_.failure_grace);
  }
}

void StepRun::end_spawned() {
  for (const Spawned& step : spawned_) {
    if (step.srun.says) ::kill(step.srun.pid, SIGTERM);
  }
}

/// The tasks here are all gone. Those of other steps that they have started go on only if these
/// have ended well.
void StepRun::spawned_outlive_us() {
  if (std::exchange(outlived_, true)) return;
  if (abort_code_ || failed_to_run_ || ending_ != Ending::no || exits_.exit_code() != 0) {
    end_spawned();
  }
}

/// To the srun that has started this one: the step runs on all its nodes.
void StepRun::tell_spawner() {
  if (!options_.spawned || spawner_told_) return;
  const auto starts = [](const Node& node) { return node.state == State::starting; };
  if (std::ranges::any_of(nodes_, starts)) return;
  spawner_told_ = true;
  // The other srun may be gone: then this one is told to end.
  if (::write(options_.spawned->answer.get(), step_name_.data(), step_name_.size()) < 0) return;
}

}  // namespace berth::command
