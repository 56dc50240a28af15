#include "controller/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/fd.h"
#include "controller/crash_points.h"
#include "controller/log.h"
#include "controller/service.h"
#include "controller/setup.h"
#include "net/fds.h"
#include "net/log_timer.h"
#include "net/loop.h"
#include "net/paths.h"
#include "net/pid_file.h"

namespace berth::controller {
namespace {

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "localhost";
  const std::string text = name;
  return text.substr(0, text.find('.'));
}

/// Leaves a child to go on in the background; the parent ends when the child is ready or has
/// failed.
class Background {
 public:
  Result<void> enter() {
    int ends[2] = {};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      return fail(Code::io, fmt::format("pipe: {}", std::strerror(errno)));
    }
    const pid_t child = ::fork();
    if (child < 0) return fail(Code::io, fmt::format("fork: {}", std::strerror(errno)));
    if (child > 0) {
      ::close(ends[1]);
      char byte = 0;
      const ssize_t got = ::read(ends[0], &byte, 1);
      ::_exit(got == 1 ? 0 : 1);
    }
    ::close(ends[0]);
    ready_.reset(ends[1]);
    ::setsid();
    return {};
  }
  void ready(bool keep_stderr) {
    if (!ready_) return;
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ::dup2(null.get(), STDIN_FILENO);
    ::dup2(null.get(), STDOUT_FILENO);
    if (!keep_stderr) ::dup2(null.get(), STDERR_FILENO);
    [[maybe_unused]] const ssize_t written = ::write(ready_.get(), "1", 1);
    ready_.reset();
  }

 private:
  Fd ready_;
};

}  // namespace

Result<void> run_controller(const Options& options) {
  CrashPoints crash;
  const char* crash_at = std::getenv("BERTH_CRASH_AT");
  if (auto done = CrashPoints::read(crash_at == nullptr ? "" : crash_at, crash); !done) return done;
  const std::string conf = options.conf.empty() ? net::find_conf() : options.conf;
  if (conf.empty()) return fail(Code::bad_config, "no slurm.conf is known", "name it with -f");
  auto setup = read_setup(conf, options.emulate);
  if (!setup) return pass(std::move(setup.error()));

  Background background;
  if (!options.foreground) {
    if (auto done = background.enter(); !done) return done;
  }
  Log log;
  const std::string log_file = !options.log.empty() ? options.log
                               : options.foreground ? ""
                                                    : setup->keys().controller_log;
  if (!log_file.empty()) {
    if (auto done = log.open(log_file); !done) return done;
  }
  if (const auto level = log_level(setup->keys().controller_debug)) log.set_level(*level);

  std::string run = options.run;
  if (run.empty()) {
    auto made = net::make_run_directory(setup->conf_path);
    if (!made) return pass(std::move(made.error()));
    run = std::move(*made);
  } else if (auto made =
                 net::make_private_directory(run, ::geteuid() == 0 ? 0755 : 0700, ::geteuid());
             !made) {
    return made;
  }
  auto lock = net::PidFile::take(net::controller_pid_file(run));
  if (!lock) return pass(std::move(lock.error()));

  net::raise_fd_limit();
  net::Loop loop;
  std::unique_ptr<Service> service;
  const net::LogTimer<Log> log_timer(loop, log);
  loop.on_signal(SIGTERM, [&] { loop.stop(); });
  loop.on_signal(SIGINT, [&] { loop.stop(); });
  loop.on_signal(SIGHUP, [&] {
    if (service) service->reread();
  });
  const std::string state =
      options.state.empty() ? setup->keys().state_save_location : options.state;
  auto opened = Service::open(loop, log, crash,
                              {.setup = std::move(*setup),
                               .state = state,
                               .run = run,
                               .conf = conf,
                               .emulate = options.emulate,
                               .host = host_name(),
                               .shut = [&] { loop.stop(); }});
  if (!opened) return pass(std::move(opened.error()));
  service = std::move(*opened);
  background.ready(log_file.empty());
  loop.run();
  log.info("stopping");
  service->stop_in_order();
  service.reset();
  loop.run_once(std::chrono::milliseconds(0));  // what was answered last goes out
  return {};
}

}  // namespace berth::controller
