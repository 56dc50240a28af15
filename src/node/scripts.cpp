// What scripts.h promises.
#include "node/scripts.h"

#include <fmt/format.h>
#include <glob.h>
#include <signal.h>
#include <sys/wait.h>

#include <deque>

namespace berth::node {
namespace {

struct Run : std::enable_shared_from_this<Run> {
  net::Loop& loop;
  Children& children;
  std::deque<std::string> programs;
  std::vector<std::string> environment;
  std::move_only_function<void(std::string)> done;
  net::TimerId timer = net::TimerId::none;
  std::chrono::seconds limit{0};
  pid_t pid = 0;
  std::string why_stopped;

  Run(net::Loop& l, Children& c) : loop(l), children(c) {}

  void finish(std::string trouble) {
    loop.cancel(timer);
    programs.clear();
    if (done) std::exchange(done, {})(std::move(trouble));
  }
  void stop(std::string why) {
    why_stopped = std::move(why);
    programs.clear();
    if (pid > 0) ::kill(-pid, SIGKILL);
  }
  void next() {
    if (programs.empty()) return finish({});
    std::string program = std::move(programs.front());
    programs.pop_front();
    auto started = children.start(
        {.program = program, .argv = {}, .environment = environment, .descriptors = {}},
        [self = shared_from_this(), program](int status) { self->exited(program, status); });
    if (!started) return finish(std::string(started.error().what()));
    pid = *started;
  }
  void exited(const std::string& program, int status) {
    ::kill(-pid, SIGKILL);  // what it left in its group
    pid = 0;
    if (!why_stopped.empty()) return finish(fmt::format("{} {}", program, why_stopped));
    if (status == 0) return next();
    if (WIFEXITED(status)) {
      return finish(fmt::format("{} exited with {}", program, WEXITSTATUS(status)));
    }
    finish(fmt::format("{} was killed by signal {}", program, WTERMSIG(status)));
  }
};

/// Patterns match in order of name; a plain path stands for itself.
std::deque<std::string> expanded(const std::vector<std::string>& patterns) {
  std::deque<std::string> programs;
  for (const std::string& pattern : patterns) {
    if (pattern.find_first_of("*?[") == std::string::npos) {
      programs.push_back(pattern);
      continue;
    }
    glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
      for (std::size_t i = 0; i < found.gl_pathc; ++i) programs.emplace_back(found.gl_pathv[i]);
    }
    ::globfree(&found);
  }
  return programs;
}

}  // namespace

std::function<void()> run_scripts(net::Loop& loop, Children& children, ScriptRun run,
                                  std::move_only_function<void(std::string trouble)> done) {
  auto state = std::make_shared<Run>(loop, children);
  state->programs = expanded(run.programs);
  state->environment = std::move(run.environment);
  state->done = std::move(done);
  state->limit = run.limit;
  if (run.limit.count() > 0) {
    state->timer = loop.after(run.limit, [weak = std::weak_ptr(state)] {
      if (const auto self = weak.lock()) {
        self->stop(fmt::format("ran longer than {} s", self->limit.count()));
      }
    });
  }
  state->next();
  return [weak = std::weak_ptr(state)] {
    if (const auto self = weak.lock()) self->stop("was stopped as the job ended");
  };
}

std::vector<std::string> script_environment(
    const google::protobuf::RepeatedPtrField<wire::Variable>& given, const std::string& node,
    const std::string& context, const std::string& conf) {
  std::vector<std::string> variables;
  for (const wire::Variable& v : given) {
    if (v.name() != "SLURM_CONF") variables.push_back(v.name() + '=' + v.value());
  }
  variables.push_back("SLURM_CONF=" + conf);
  variables.push_back("SLURMD_NODENAME=" + node);
  variables.push_back("SLURM_SCRIPT_CONTEXT=" + context);
  variables.push_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  return variables;
}

}  // namespace berth::node
