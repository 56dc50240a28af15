// berthd from its options to its end.
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "net/fds.h"
#include "net/log_timer.h"
#include "net/paths.h"
#include "node/agent.h"
#include "step/oom_score.h"

namespace berth::node {
namespace {

std::string beside_this_program(std::string_view name) {
  std::string self(PATH_MAX, '\0');
  const ssize_t n = ::readlink("/proc/self/exe", self.data(), self.size());
  self.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return fmt::format("{}/{}", self.substr(0, self.rfind('/')), name);
}

Result<void> become_daemon() {
  const pid_t pid = ::fork();
  if (pid < 0) return fail(Code::io, fmt::format("fork: {}", std::strerror(errno)));
  if (pid > 0) ::_exit(0);
  ::setsid();
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int stream : {0, 1, 2}) ::dup2(nothing.get(), stream);
  return {};
}

uid_t uid_of(const std::string& name) {
  const passwd* found = ::getpwnam(name.c_str());
  return found == nullptr ? 0 : found->pw_uid;
}

}  // namespace

Result<void> run_agent(const Options& given) {
  Options options = given;
  if (options.conf.empty()) options.conf = net::find_conf();
  if (options.conf.empty()) return fail(Code::io, "no slurm.conf was found", "name it with -f");
  auto inventory = take_inventory(options);
  if (!inventory) return pass(std::move(inventory.error()));
  const conf::DaemonKeys keys = inventory->keys;
  const std::string host = inventory->machine.host;
  const std::string name = inventory->nodes.empty() ? host : inventory->nodes.front().name();

  Agent::Place place;
  place.emulated = options.emulate;
  place.spool = spool_directory(options, keys, host, name);
  place.supervisor = beside_this_program("berth-stepd");
  if (::access(place.supervisor.c_str(), X_OK) != 0) {
    return fail(Code::io, fmt::format("cannot run {}: {}", place.supervisor, std::strerror(errno)),
                "berthd and berth-stepd belong in one directory");
  }
  place.pmix_helper = beside_this_program("berth-pmix");
  if (::access(place.pmix_helper.c_str(), X_OK) != 0) place.pmix_helper.clear();
  if (options.run.empty()) {
    auto run = net::make_run_directory(options.conf);
    if (!run) return pass(std::move(run.error()));
    place.run = *run;
  } else {
    const mode_t mode = ::geteuid() == 0 ? 0755 : 0700;
    if (auto made = net::make_private_directory(options.run, mode, ::geteuid()); !made) return made;
    place.run = options.run;
  }
  place.slurm_uid = uid_of(keys.slurm_user);
  if (!options.emulate && !keys.controllers.empty()) {
    place.tcp_controller = net::Address::tcp(keys.controllers.front().address,
                                             static_cast<std::uint16_t>(keys.controller_port));
    place.tcp_listen = net::Address::tcp("", static_cast<std::uint16_t>(keys.node_port));
  }
  if (options.emulate) {
    place.look_again = [options](const std::vector<std::string>& created) {
      return take_inventory(options, created);
    };
  }
  if (!options.emulate) {
    place.look_at_machine = [options] { return take_inventory(options); };
  }
  place.read_fences = [options, of = options.emulate ? std::string() : name] {
    return read_fence_conf(options, of);
  };
  std::error_code ignored;
  if (!options.emulate) place.conf = std::filesystem::canonical(options.conf, ignored).string();
  std::filesystem::create_directories(place.spool, ignored);
  place.spool = std::filesystem::canonical(place.spool, ignored).string();

  Log log;
  std::string log_file = options.log;
  if (log_file.empty() && !options.foreground) log_file = with_names(keys.node_log, host, name);
  if (!log_file.empty()) {
    if (auto opened = log.open(log_file); !opened) return opened;
  }
  for (const std::string& note : inventory->machine.notes) log.info("hardware: {}", note);
  for (const std::string& one : inventory->gres.differences) log.error("{}", one);
  if (!options.foreground) {
    if (auto done = become_daemon(); !done) return done;
  }
  auto lock = net::PidFile::take(net::node_pid_file(place.run));
  if (!lock) return pass(std::move(lock.error()));
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  place.open_files = files.rlim_cur;
  net::raise_fd_limit();

  // Where it may not, the kernel chooses as among all others.
  if (!options.emulate) step::set_oom_score(step::kNeverKilled);

  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  net::Loop loop;
  const net::LogTimer<Log> log_timer(loop, log);
  for (const int signal : {SIGTERM, SIGINT}) loop.on_signal(signal, [&loop] { loop.stop(); });
  auto agent = Agent::open(loop, log, std::move(*inventory), std::move(place));
  if (!agent) return pass(std::move(agent.error()));
  if (auto started = (*agent)->start(); !started) return started;
  loop.run();
  log.info("stopped");
  return {};
}

}  // namespace berth::node
