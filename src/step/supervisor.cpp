// The supervisor's loop: who is listened to, and what happens when.
#include "step/supervisor.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "step/lease_file.h"
#include "step/pretended_host.h"
#include "step/receive_file.h"
#include "step/relay.h"
#include "step/spool.h"

namespace berth::step {
namespace {

constexpr int kDefaultKillWait = 30;
constexpr std::chrono::milliseconds kMemoryLook{500};
/// Beyond this the tasks wait for whoever reads the pipe that their output goes to.
constexpr std::size_t kFileBacklog = 1024 * 1024;

Fd take_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGCHLD);
  ::sigaddset(&mask, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  return Fd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool same_user_or_root(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace

Supervisor::Supervisor(wire::Supervise order, wire::StepSpec spec, std::unique_ptr<Peer> agent,
                       Fd client, Fd record)
    : order_(std::move(order)),
      spec_(std::move(spec)),
      container_(order_.cgroup(), {order_.fence().remove().begin(), order_.fence().remove().end()}),
      directory_(order_.program().directory()),
      files_(spec_, order_.program(), directory_),
      crash_(CrashPoints::from_environment()),
      keys_(order_, spec_, outside()),
      record_(std::move(record)),
      signals_(take_signals()) {
  agents_.push_back(std::move(agent));
  if (client) {
    clients_.push_back(std::make_unique<Client>(
        Client{.peer = Peer::handed_on(std::move(client), order_), .owner = true}));
  }
  if (order_.kill_wait_seconds() == 0) order_.set_kill_wait_seconds(kDefaultKillWait);
}

void Supervisor::watch_lease() {
  const std::chrono::seconds lease(spec_.lease_seconds());
  if (lease.count() == 0 || phase_ != Phase::running) return lease_alarm_.reset();
  const auto from = read_lease_file(lease_file_of(order_.step_directory()));
  const auto next = look_at_lease(from, began_, lease, boot_now());
  if (!next) {
    lease_alarm_.reset();
    return end("NODE FAILURE", true);
  }
  if (!lease_alarm_) lease_alarm_.emplace();
  lease_alarm_->set(next);
}

void Supervisor::run() {
  watch_lease();
  launch();
  if (prepared_) {
    for (auto& client : clients_) read_client(*client);
  }
  // What came together with the order, such as the end of a job that was cancelled meanwhile.
  for (auto& agent : agents_) obey(*agent);
  advance();
  while (!done()) poll_once();
}

bool Supervisor::done() const {
  if (phase_ != Phase::over) return false;
  if (leave_at_ && Clock::now() >= *leave_at_) return true;
  const auto idle = [](const auto& peer) { return peer->backlog() == 0; };
  return clients_.empty() && std::ranges::all_of(agents_, idle);
}

std::vector<pid_t> Supervisor::leaders() const {
  std::vector<pid_t> pids;
  for (const Task& task : tasks_) {
    if (task.pid > 0 && !task.exited) pids.push_back(task.pid);
  }
  return pids;
}

void Supervisor::poll_once() {
  struct Entry {
    std::function<void(short)> act;
  };
  std::vector<pollfd> fds;
  std::vector<Entry> entries;
  const auto add = [&](int fd, short events, std::function<void(short)> act) {
    fds.push_back({.fd = fd, .events = events, .revents = 0});
    entries.push_back({std::move(act)});
  };
  add(signals_.get(), POLLIN, [this](short) {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGTERM) end("", false);
    }
    reap();
  });
  if (lease_alarm_) {
    add(lease_alarm_->fd(), POLLIN, [this](short) {
      lease_alarm_->seen();
      watch_lease();
    });
  }
  if (limit_alarm_) {
    add(limit_alarm_->fd(), POLLIN, [this](short) {
      limit_alarm_.reset();
      end("TIME LIMIT", false);
    });
  }
  if (listener_) add(listener_.get(), POLLIN, [this](short) { accept_agent(); });
  for (auto& agent : agents_) {
    const auto events = static_cast<short>(POLLIN | (agent->wants_write() ? POLLOUT : 0));
    add(agent->fd(), events, [this, a = agent.get()](short ready) {
      if ((ready & ~POLLOUT) != 0) read_agent(*a);
    });
  }
  const bool blocked = input_blocked();
  for (auto& client : clients_) {
    const auto events = static_cast<short>((blocked ? POLLRDHUP : POLLIN | POLLRDHUP) |
                                           (client->peer.wants_write() ? POLLOUT : 0));
    add(client->peer.fd(), events, [this, blocked, c = client.get()](short ready) {
      if (blocked && (ready & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return client_gone(*c);
      if ((ready & ~POLLOUT) != 0) read_client(*c);
    });
  }
  const bool full = congested();
  for (Task& task : tasks_) {
    if (task.in && !task.in_queue.empty()) {
      add(task.in.get(), POLLOUT, [this, &task](short) { write_input(task); });
    }
    for (Stream& stream : task.streams) {
      const bool waits = stream.file ? stream.file->backlog() > kFileBacklog : full;
      if (!stream.fd || waits) continue;
      add(stream.fd.get(), POLLIN,
          [this, &task, &stream](short) { read_stream(task, stream, false); });
    }
  }

  for (QueuedFile* file : files_.waiting()) {
    add(file->fd(), POLLOUT, [file](short) { file->flush(); });
  }

  if (phase_ == Phase::running) keys_.add_polled(add, full);

  int wait_ms = -1;
  for (const auto& when :
       {kill_at_, retry_at_, stuck_at_, leave_at_, memory_at_, writer_until_, launch_again_at_}) {
    if (!when) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*when - Clock::now()).count();
    const int ms = static_cast<int>(std::clamp<long>(left, 0, 3'600'000));
    wait_ms = wait_ms < 0 ? ms : std::min(wait_ms, ms);
  }
  if (::poll(fds.data(), fds.size(), wait_ms) > 0) {
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents != 0) entries[i].act(fds[i].revents);
    }
  }
  run_timers();
  if (!launched_ && (prepared_ || launch_again_at_ || ending())) launch();
  advance();
  drop_closed();
}

void Supervisor::run_timers() {
  const auto now = Clock::now();
  const auto due = [&](std::optional<Clock::time_point>& when) {
    if (!when || now < *when) return false;
    when.reset();
    return true;
  };
  // The task that was killed need not be one of ours: it may be a child of theirs.
  if (due(memory_at_) && phase_ == Phase::running && !ran_out_of_memory()) {
    memory_at_ = now + kMemoryLook;
  }
  if (due(kill_at_)) {
    killed_ = true;
    container_.kill();
    retry_at_ = now + std::chrono::milliseconds(200);
    if (!stuck_at_)
      stuck_at_ = now + std::chrono::seconds(std::max(1U, order_.unkillable_seconds()));
  }
  if (due(retry_at_) && killed_ && phase_ == Phase::running) {
    container_.kill();
    retry_at_ = now + std::chrono::milliseconds(200);
  }
  if (due(stuck_at_) && phase_ != Phase::over) report_stuck();
  if (due(writer_until_) && writer_ > 0) ::kill(writer_, SIGKILL);
}

void Supervisor::drop_closed() {
  for (auto& client : clients_) {
    if (client->peer.open() && !client->peer.flush()) client_gone(*client);
    if (client->peer.open() && client->finished && client->peer.backlog() == 0) {
      // The other side reads to the end before it closes; a close now could lose data on TCP.
      ::shutdown(client->peer.fd(), SHUT_WR);
    }
  }
  std::erase_if(clients_, [](const auto& client) { return !client->peer.open(); });
  for (auto& agent : agents_) {
    // One that has gone may have said something before: its end is seen by reading.
    if (agent->open() && !agent->flush()) agent->drop_output();
  }
  if (std::erase_if(agents_, [](const auto& agent) { return !agent->open(); }) > 0) await_agent();
}

void Supervisor::await_agent() {
  if (listener_ || !agents_.empty() || phase_ == Phase::over) return;
  const std::string directory = directory_of(order_.step_directory());
  ::mkdir(directory.c_str(), 0711);
  listener_ = listen_in(directory, kControlSocket);
}

void Supervisor::accept_agent() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd || !same_user_or_root(fd.get())) return;
  agents_.push_back(std::make_unique<Peer>(std::move(fd)));
  wire::Supervised state;
  state.set_spec(order_.spec());
  for (const Task& task : tasks_) {
    state.add_ranks(task.spec->rank());
    state.add_pids(task.exited ? 0 : static_cast<std::uint32_t>(std::max(task.pid, 0)));
  }
  agents_.back()->send(state);
  if (phase_ == Phase::over) {
    agents_.back()->send(result());
  } else if (stuck_) {
    report_stuck();
  }
}

void Supervisor::read_agent(Peer& agent) {
  if (!agent.read()) return agent.close();
  obey(agent);
}

void Supervisor::obey(Peer& agent) {
  while (const auto frame = agent.next()) {
    switch (frame->kind) {
      case wire::Kind::SuperviseEnd:
        if (const auto m = wire::decode<wire::SuperviseEnd>(frame->payload))
          end(m->cause(), m->now());
        break;
      case wire::Kind::SuperviseSignal:
        if (const auto m = wire::decode<wire::SuperviseSignal>(frame->payload)) {
          signal_step(m->signal(), m->tasks_only());
        }
        break;
      case wire::Kind::SuperviseMeasure:
        agent.send(measure());
        break;
      case wire::Kind::SuperviseSay:
        if (const auto m = wire::decode<wire::SuperviseSay>(frame->payload)) {
          say(m->line(), m->as_it_is());
        }
        break;
      case wire::Kind::SuperviseAttach:
        if (const auto m = wire::decode<wire::SuperviseAttach>(frame->payload)) {
          attach(agent.take_descriptor(), *m);
        }
        break;
      default:
        return agent.close();
    }
  }
}

int supervise(int agent_fd, int client_fd, int record_fd) {
  auto agent = std::make_unique<Peer>(Fd(agent_fd));
  std::optional<wire::Frame> frame;
  while (!(frame = agent->next())) {
    pollfd waiting{.fd = agent->fd(), .events = POLLIN, .revents = 0};
    if (!agent->open() || (::poll(&waiting, 1, -1) < 0 && errno != EINTR) || !agent->read()) {
      return 1;  // the agent died before it said what to do: nothing was started
    }
  }
  if (frame->kind == wire::Kind::SuperviseFile) {
    const auto file = wire::decode<wire::SuperviseFile>(frame->payload);
    return file ? receive_file(*file, *agent, client_fd) : 1;
  }
  if (frame->kind == wire::Kind::SuperviseRelay) {
    auto order = wire::decode<wire::SuperviseRelay>(frame->payload);
    return order ? run_relay(std::move(*order), Fd(client_fd)) : 1;
  }
  if (frame->kind != wire::Kind::Supervise) return 1;
  auto order = wire::decode<wire::Supervise>(frame->payload);
  if (!order) return 1;
  auto spec = wire::decode<wire::StepSpec>(order->spec());
  if (!spec) return 1;
  Fd client(order->has_client() ? client_fd : -1);
  if (order->has_names() && !become_pretended_host(spec->node(), order->has_users())) {
    order->set_has_names(false);
  }
  // Pretended nodes are this machine, whatever they are called.
  if (order->emulated() && !order->has_names() && !spec->master().empty()) {
    spec->set_master("127.0.0.1");
  }
  // Never deleted: the process ends next, and taking apart what describes the step's tasks would be
  // a twentieth of all the work of a step of `true`.
  auto* supervisor = new Supervisor(std::move(*order), std::move(*spec), std::move(agent),
                                    std::move(client), Fd(record_fd));
  supervisor->run();
  return 0;
}

}  // namespace berth::step
