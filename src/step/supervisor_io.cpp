// What flows between the tasks and the clients.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "step/spool.h"
#include "step/supervisor.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::step {
namespace {

/// Beyond this the tasks wait for the client, and the client for the tasks.
constexpr std::size_t kOutputBacklog = 1024 * 1024;
constexpr std::size_t kInputBacklog = 16 * 1024 * 1024;
/// A sattach that reads more slowly than the step writes is dropped. Supervisors are outside of
/// their job's memory: what all that are attached can make one keep is little.
constexpr std::size_t kMostAttached = 16;
constexpr std::size_t kAttachedBacklog = 8 * 1024 * 1024;
constexpr std::size_t kAllAttachedBacklog = 32 * 1024 * 1024;
constexpr std::size_t kAttachedFrame = 1024 * 1024;
constexpr std::size_t kPiece = 64 * 1024;
/// More than a pipe holds: what a task wrote before it ended. Others may go on writing for ever.
constexpr std::size_t kMostDrained = 4 * 1024 * 1024;
constexpr char kEndOfTerminalInput = 4;

}  // namespace

bool Supervisor::congested() const {
  return phase_ == Phase::running && std::ranges::any_of(clients_, [](const auto& client) {
           return client->owner && client->peer.backlog() > kOutputBacklog;
         });
}

bool Supervisor::input_blocked() const {
  if (early_bytes_ > kInputBacklog) return true;
  return std::ranges::any_of(tasks_,
                             [](const Task& task) { return task.in_queue.size() > kInputBacklog; });
}

KeyExchange::Outside Supervisor::outside() {
  return {.up =
              [this](const std::string& frame) {
                for (auto& client : clients_) {
                  if (!client->owner) continue;
                  client->peer.send_bytes(frame);
                  client->peer.flush();
                }
              },
          .say = [this](const std::string& line) { say(line); },
          .start = [this](const std::function<void()>& child) { return container_.start(child); },
          .ending = [this] { return killed_ || signalled_to_end_ || kill_at_.has_value(); }};
}

void Supervisor::read_client(Client& client) {
  const bool more = client.peer.read();
  while (client.peer.open()) {
    const auto frame = client.peer.next();
    if (!frame) break;
    take_frame(client, *frame);
  }
  if (!more || !client.peer.open()) client_gone(client);
}

void Supervisor::take_frame(Client& client, const wire::Frame& frame) {
  switch (frame.kind) {
    case wire::Kind::Input:
      if (auto m = wire::decode<wire::Input>(frame.payload); m && !client.read_only) {
        // A sattach that has nothing more to say leaves the input to the step's own srun.
        if (!client.owner) m->set_end(false);
        take_input(*m);
      }
      return;
    case wire::Kind::SignalTasks:
      if (const auto m = wire::decode<wire::SignalTasks>(frame.payload); m && !client.read_only) {
        signal_step(m->signal(), false);
      }
      return;
    case wire::Kind::WindowSize:
      if (const auto m = wire::decode<wire::WindowSize>(frame.payload); m && !client.read_only) {
        set_window(m->rows(), m->columns());
      }
      return;
    default:
      if (!client.owner || !keys_.take(frame)) client.peer.close();
  }
}

void Supervisor::set_window(std::uint32_t rows, std::uint32_t columns) {
  const winsize size{.ws_row = static_cast<unsigned short>(rows),
                     .ws_col = static_cast<unsigned short>(columns),
                     .ws_xpixel = 0,
                     .ws_ypixel = 0};
  for (const Task& task : tasks_) {
    if (task.terminal && task.in) ::ioctl(task.in.get(), TIOCSWINSZ, &size);
  }
}

void Supervisor::take_input(const wire::Input& input) {
  if (!launched_) {
    early_input_.push_back(input);
    early_bytes_ += sizeof input + input.data().size();
    return;
  }
  for (Task& task : tasks_) {
    if (!task.in || (input.has_rank() && input.rank() != task.spec->rank())) continue;
    task.in_queue += input.data();
    if (input.end()) {
      if (task.terminal) {
        task.in_queue.push_back(kEndOfTerminalInput);
      } else {
        task.in_ends = true;
      }
    }
    write_input(task);
  }
}

void Supervisor::write_input(Task& task) {
  if (!task.in) return;
  std::size_t written = 0;
  bool broken = false;
  while (written < task.in_queue.size()) {
    const ssize_t n =
        ::write(task.in.get(), task.in_queue.data() + written, task.in_queue.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      broken = errno != EAGAIN;
      break;
    }
    written += static_cast<std::size_t>(n);
  }
  task.in_queue.erase(0, written);
  if (broken) task.in_queue.clear();
  if (broken || (task.in_queue.empty() && task.in_ends)) task.in.reset();
}

void Supervisor::read_stream(Task& task, Stream& stream, bool drain) {
  char buffer[kPiece];
  std::size_t seen = 0;
  do {
    if (!stream.fd) return;
    const ssize_t n = ::read(stream.fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {  // a terminal whose other end is closed says EIO
      stream.fd.reset();
      return pass_on(task, stream, stream.cutter.rest(), true);
    }
    pass_on(task, stream, stream.cutter.take({buffer, static_cast<std::size_t>(n)}), false);
    seen += static_cast<std::size_t>(n);
  } while (drain && seen < kMostDrained);
}

void Supervisor::pass_on(Task& task, Stream& stream, std::string bytes, bool end) {
  stream.used = stream.used || !bytes.empty();
  if (bytes.empty() && (!end || !stream.used)) return;  // nobody waits for the end of nothing
  if (stream.file) {
    const std::size_t width = std::to_string(spec_.ntasks() > 0 ? spec_.ntasks() - 1 : 0).size();
    const std::string label = fmt::format("{:>{}}: ", task.spec->rank(), width);
    stream.file->write(labelled(bytes, label, stream.line_open));
    return;
  }
  wire::Output output;
  output.set_rank(task.spec->rank());
  output.set_error(stream.error);
  output.set_end(end);
  output.set_data(std::move(bytes));
  const std::string frame = wire::framed(output);
  const std::size_t most = std::min(kAttachedBacklog, kAllAttachedBacklog / (attached() + 1));
  for (auto& client : clients_) {
    if (client->finished) continue;
    client->peer.send_bytes(frame);
    if (!client->owner && client->peer.backlog() > most) client->peer.close();
  }
}

void Supervisor::attach(Fd fd, const wire::SuperviseAttach& how) {
  if (!fd) return;
  if (clients_.size() > 2 * kMostAttached) return;  // those that were refused have not gone yet
  const bool full = attached() >= kMostAttached;
  clients_.push_back(std::make_unique<Client>(
      Client{.peer = Peer::handed_on(std::move(fd), how), .read_only = how.read_only()}));
  Client& client = *clients_.back();
  client.peer.limit_frames(kAttachedFrame);
  wire::LaunchReply reply;
  if (full) {
    *reply.mutable_refusal() = wire::to_refusal(
        fail(Code::limit,
             fmt::format("{} commands are attached to this step already, which is the most",
                         kMostAttached),
             "one of them has to end first")
            .error());
    client.peer.send(reply);
    client.read_only = client.finished = true;
    return;
  }
  for (const Task& task : tasks_) {
    reply.add_ranks(task.spec->rank());
    reply.add_pids(static_cast<std::uint32_t>(std::max(task.pid, 0)));
  }
  client.peer.send(reply);
  read_client(client);  // what it said together with its request
}

std::size_t Supervisor::attached() const {
  return static_cast<std::size_t>(std::ranges::count_if(clients_, [](const auto& client) {
    return !client->owner && !client->finished && client->peer.open();
  }));
}

void Supervisor::client_gone(Client& client) {
  client.peer.close();
  // srun died: nobody is left to see or to stop the step.
  if (client.owner && phase_ == Phase::running) end("", false);
}

}  // namespace berth::step
