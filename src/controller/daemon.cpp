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

#include "auth/ticket.h"
#include "base/fd.h"
#include "controller/crash_points.h"
#include "controller/engine.h"
#include "controller/front.h"
#include "controller/log.h"
#include "controller/published.h"
#include "controller/reader.h"
#include "controller/setup.h"
#include "net/fds.h"
#include "net/loop.h"
#include "net/paths.h"
#include "net/pid_file.h"
#include "store/store.h"

namespace berth::controller {
namespace {

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "localhost";
  const std::string text = name;
  return text.substr(0, text.find('.'));
}

Result<void> make_state_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return fail(Code::io, fmt::format("cannot make the directory {}: {}", path, error.message()));
  }
  // Scripts and environments of all users are in there.
  if (::chmod(path.c_str(), 0700) != 0) {
    return fail(Code::io, fmt::format("cannot protect {}: {}", path, std::strerror(errno)));
  }
  return {};
}

/// Other machines are served where there are any: a pretended cluster and the single node of this
/// machine need no open port.
bool has_other_machines(const Setup& setup, bool emulate, const std::string& host) {
  if (emulate) return false;
  return setup.cluster.nodes.size() > 1 ||
         (setup.cluster.nodes.size() == 1 && setup.cluster.nodes.front().name != host &&
          setup.cluster.nodes.front().name != "localhost");
}

/// Ends the threads before what they use: the engine first, since the reader may wait for it.
struct Ending {
  std::unique_ptr<Engine>& engine;
  std::unique_ptr<Reader>& reader;
  ~Ending() {
    if (engine) engine->stop();
    reader.reset();
    engine.reset();
  }
};

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

  const std::string state =
      options.state.empty() ? setup->keys().state_save_location : options.state;
  if (auto made = make_state_directory(state); !made) return made;
  auto key = auth::load_or_create_cluster_key(state + "/cluster.key");
  if (!key) return pass(std::move(key.error()));
  auto store = store::Store::open(state);
  if (!store) return pass(std::move(store.error()));
  const auto epoch = store->raise_epoch();
  if (!epoch) return pass(epoch.error());
  crash.reached("after_epoch");

  const std::size_t descriptors = net::raise_fd_limit();
  net::Loop loop;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Reader> reader;
  loop.on_signal(SIGTERM, [&] { loop.stop(); });
  loop.on_signal(SIGINT, [&] { loop.stop(); });
  loop.on_signal(SIGHUP, [&] { engine->reread(); });

  const std::string host = host_name();
  const bool other_machines = has_other_machines(*setup, options.emulate, host);
  const auto port = static_cast<std::uint16_t>(setup->keys().controller_port);
  Users users;
  Published published;
  Front front(loop, log,
              {.to_reader = [&](Request request) { reader->ask(std::move(request)); },
               .to_state = [&](Request request) { engine->request(std::move(request)); },
               .closed = [&](Peer peer) { engine->closed(peer); }});
  const Ending ending{engine, reader};
  front.set_privileged({setup->slurm_uid, ::geteuid()});
  for (const std::string& note : setup->notes) log.info("{}", note);
  log.info("berthctld, epoch {}, {} nodes, {} descriptors, state in {}", *epoch,
           setup->cluster.nodes.size(), descriptors, state);
  engine = std::make_unique<Engine>(Parts{.log = log,
                                          .crash = crash,
                                          .users = users,
                                          .front = front,
                                          .published = published,
                                          .setup = std::move(*setup),
                                          .store = std::move(*store),
                                          .cluster_key = std::move(*key),
                                          .epoch = *epoch,
                                          .emulate = options.emulate,
                                          .host = host,
                                          .shut = [&] { loop.stop(); }});
  if (auto done = engine->load(); !done) return done;
  engine->start();
  reader =
      std::make_unique<Reader>(front, published, users, log, [&] { engine->refresh(); }, state);
  if (auto done = front.listen_unix(net::controller_socket(run), ::geteuid() == 0 ? 0777 : 0700);
      !done) {
    return done;
  }
  if (other_machines) {
    if (auto done = front.listen_tcp(port); !done) return done;
    log.info("listening on port {}", port);
  }
  log.info("listening on {}", net::controller_socket(run));
  background.ready(log_file.empty());

  loop.run();
  log.info("stopping");
  front.stop_listening();
  engine->stop();
  reader->stop();
  loop.run_once(std::chrono::milliseconds(0));  // what was answered last goes out
  return {};
}

}  // namespace berth::controller
