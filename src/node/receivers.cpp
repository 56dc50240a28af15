// What receivers.h promises.
#include "node/receivers.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cgroup/tree.h"
#include "node/unkillable.h"
#include "step/container.h"
#include "step/spool.h"
#include "text/number.h"
#include "text/words.h"
#include "wire/refusal.h"

namespace berth::node {
namespace {

/// For one that is told to end. It needs a moment, unless it hangs.
constexpr std::chrono::milliseconds kReceiverGrace{500};
constexpr std::chrono::milliseconds kLongestPause{500};
constexpr std::string_view kReceiverRecord = "file.";

std::string groups_name(unsigned number) {
  return fmt::format("sbcast_{}", number);
}

std::string sbcast_text(const NodeJob& at) {
  return fmt::format("sbcast to job {} on {}", at.job, at.node);
}

std::unexpected<Error> receiver_trouble(const std::string& what) {
  return fail(Code::io, fmt::format("{}: {}", what, std::strerror(errno)));
}

std::vector<ReceiverKey> receiver_records(const std::string& path) {
  std::vector<ReceiverKey> keys;
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return keys;
  while (const dirent* entry = ::readdir(folder)) {
    if (const auto key = read_receiver_record_name(entry->d_name)) keys.push_back(*key);
  }
  ::closedir(folder);
  return keys;
}

std::uint32_t uid_of_record(const std::string& record) {
  const auto spec = wire::decode<wire::AccessSpec>(step::read_step_record(record).spec);
  return spec ? spec->uid() : 0;
}

}  // namespace

std::optional<unsigned> free_receiver_number(const std::set<unsigned>& taken) {
  for (unsigned number = 1; number <= kMostReceivers; ++number) {
    if (!taken.contains(number)) return number;
  }
  return std::nullopt;
}

std::string receiver_record_name(std::uint32_t job, std::uint32_t attempt, unsigned number) {
  return fmt::format("{}{}.{}.{}", kReceiverRecord, job, attempt, number);
}

std::optional<ReceiverKey> read_receiver_record_name(std::string_view name) {
  if (!name.starts_with(kReceiverRecord)) return std::nullopt;
  const auto words = text::split(name.substr(kReceiverRecord.size()), '.');
  if (words.size() != 3) return std::nullopt;
  const auto job = text::parse_number(words[0], UINT32_MAX);
  const auto attempt = text::parse_number(words[1], UINT32_MAX);
  const auto number = text::parse_number(words[2], kMostReceivers);
  if (!job || !attempt || !number || *number == 0) return std::nullopt;
  return ReceiverKey{.job = static_cast<std::uint32_t>(*job),
                     .attempt = static_cast<std::uint32_t>(*attempt),
                     .number = static_cast<unsigned>(*number)};
}

Receivers::~Receivers() {
  for (auto& [key, receiver] : receivers_) {
    here_.loop.cancel(receiver.timer);
    if (receiver.pid > 0) here_.children.ignore(receiver.pid);
    if (receiver.link) receiver.link->abort();
  }
}

Receivers::Receiver& Receivers::add(const Key& key, std::uint32_t uid) {
  const auto& [at, number] = key;
  Receiver& receiver = receivers_[key];
  receiver.record = fmt::format("{}/{}/{}", here_.spool, at.node,
                                receiver_record_name(at.job, at.attempt, number));
  const std::string name = groups_name(number);
  receiver.groups = {
      .cgroup = {}, .uid = uid, .job = at.job, .name = here_.fencing.name_of(at.node, name)};
  if (here_.cgroups.usable()) {
    receiver.groups.cgroup =
        here_.cgroups.path_of(here_.cgroups.name_of(at.node, at.job, at.attempt, name));
  }
  return receiver;
}

void Receivers::adopt(const std::string& node) {
  for (const ReceiverKey& found : receiver_records(fmt::format("{}/{}", here_.spool, node))) {
    const Key key{{node, found.job, found.attempt}, found.number};
    Receiver& receiver = add(key, 0);
    receiver.groups.uid = uid_of_record(receiver.record);
    receiver.ended = true;
    press(key);
  }
}

std::optional<unsigned> Receivers::free_number(const NodeJob& at) const {
  std::set<unsigned> taken;
  for (auto it = receivers_.lower_bound({at, 0}); it != receivers_.end() && it->first.first == at;
       ++it) {
    taken.insert(it->first.second);
  }
  return free_receiver_number(taken);
}

Result<void> Receivers::room_for(const NodeJob& at) const {
  if (free_number(at)) return {};
  return fail(Code::limit, fmt::format("{} files are on their way to job {} on {} already, which "
                                       "is as many as may be at once",
                                       kMostReceivers, at.job, at.node));
}

void Receivers::start(const wire::BeginJob& job, const wire::PutFile& message,
                      net::Connection::Released client) {
  const NodeJob at{job.node(), job.job_id(), job.attempt()};
  Result<void> done = room_for(at);
  if (done) done = begin({at, *free_number(at)}, job, message, client);
  if (done) return;
  here_.log.of_user(job.uid()).error("{}: {}", sbcast_text(at), done.error().what());
  auto connection = net::Connection::take_up(here_.loop, std::move(client));
  if (!connection) return;
  wire::Done reply;
  *reply.mutable_refusal() = wire::to_refusal(done.error());
  (*connection)->start({});
  (*connection)->send(reply);
  (*connection)->close();
}

Result<void> Receivers::begin(const Key& key, const wire::BeginJob& job,
                              const wire::PutFile& message, net::Connection::Released& client) {
  const auto& [at, number] = key;
  Receiver& receiver = add(key, job.uid());
  const auto give_up = [&](std::unexpected<Error> why) -> std::unexpected<Error> {
    receiver.over = true;
    press(key);
    return why;
  };
  const Fd lock(
      ::open(receiver.record.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  wire::Supervised first;
  first.set_spec(message.ticket().spec());
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      !step::write_all(lock.get(), wire::framed(first))) {
    return give_up(receiver_trouble(receiver.record));
  }
  wire::SuperviseFile order;
  if (here_.cgroups.usable()) {
    const std::string name =
        here_.cgroups.name_of(at.node, at.job, at.attempt, groups_name(number));
    if (here_.cgroups.make(name).empty()) return give_up(receiver_trouble(receiver.groups.cgroup));
    order.set_cgroup(receiver.groups.cgroup);
  }
  if (here_.fencing.active()) {
    auto fence = here_.fencing.put_up_beside(job, groups_name(number), receiver.groups.cgroup);
    if (!fence) return give_up(pass(std::move(fence.error())));
    if (*fence) {
      receiver.memory_events = (*fence)->memory_events();
      order.mutable_join()->Swap((*fence)->mutable_join());
    }
  }
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return give_up(receiver_trouble("socketpair"));
  }
  Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  auto pid = here_.children.start({.program = here_.supervisor,
                                   .argv = {},
                                   .environment = supervisor_environment(),
                                   .descriptors = {theirs.get(), client.fd.get(), lock.get()}},
                                  [this, key](int status) { exited(key, status); });
  if (!pid) return give_up(pass(std::move(pid.error())));
  receiver.pid = *pid;
  *order.mutable_file() = message;
  order.set_record(receiver.record);
  order.set_lease_seconds(job.lease_seconds());
  order.set_unread(std::move(client.unread));
  order.set_unsent(std::move(client.unsent));
  order.set_session_key(std::move(client.key));
  client.fd.reset();
  receiver.link = net::Connection::adopt(here_.loop, std::move(ours));
  receiver.link->start({});
  receiver.link->send(order);
  return {};
}

void Receivers::exited(const Key& key, int status) {
  const auto found = receivers_.find(key);
  if (found == receivers_.end()) return;
  Receiver& receiver = found->second;
  receiver.over = true;
  receiver.link.reset();
  if (WIFSIGNALED(status) && !receiver.ended) {
    const auto counted = step::read_file(receiver.memory_events).value_or("");
    here_.log.of_user(receiver.groups.uid)
        .error("{}: its receiver was killed{}", sbcast_text(key.first),
               cgroup::count_named(counted, "oom_kill") > 0
                   ? ", since the memory of the job is used up"
                   : "");
  }
  press(key);
}

void Receivers::end(const NodeJob& at) {
  for (auto it = receivers_.lower_bound({at, 0}); it != receivers_.end() && it->first.first == at;
       ++it) {
    Receiver& receiver = it->second;
    if (receiver.over || std::exchange(receiver.ended, true)) continue;
    receiver.link->send(wire::SuperviseEnd());
    receiver.link->close();
    receiver.timer = here_.loop.after(kReceiverGrace, [this, key = it->first] { press(key); });
  }
}

bool Receivers::any(const NodeJob& at) const {
  const auto first = receivers_.lower_bound({at, 0});
  return first != receivers_.end() && first->first.first == at;
}

std::vector<pid_t> Receivers::pids_of(const Receiver& receiver) {
  if (receiver.over) return {};
  if (receiver.pid > 0) return {receiver.pid};
  return step::processes_holding(receiver.record, step::kRecordDescriptor);
}

void Receivers::press(const Key& key) {
  const auto found = receivers_.find(key);
  if (found == receivers_.end()) return;
  Receiver& receiver = found->second;
  here_.loop.cancel(receiver.timer);
  if (receiver.pid == 0 && !step::is_held(receiver.record)) receiver.over = true;
  const std::vector<pid_t> pids = pids_of(receiver);
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
  if (receiver.over && drop_groups(here_, receiver.groups)) return forget(key);
  const auto now = net::Clock::now();
  if (!receiver.pressed_since) receiver.pressed_since = now;
  const auto patience = std::chrono::seconds(std::max(1U, here_.config.unkillable_seconds()));
  if (now - *receiver.pressed_since > patience && !pids.empty()) take_stuck(key, receiver, pids);
  receiver.timer = here_.loop.after(receiver.delay, [this, key] { press(key); });
  receiver.delay = std::min(receiver.delay * 2, kLongestPause);
}

void Receivers::take_stuck(const Key& key, Receiver& receiver, const std::vector<pid_t>& pids) {
  if (!receiver.stuck.empty()) return;
  const NodeJob& at = key.first;
  receiver.stuck = fmt::format("Kill task failed: sbcast to job {}: {}", at.job, described(pids));
  here_.log.error("node {}: {}", at.node, receiver.stuck);
  events_.stuck(at.node, receiver.stuck);
  run_unkillable_program(
      here_, {.node = at.node, .job = at.job, .step = groups_name(key.second), .pids = pids});
}

void Receivers::forget(const Key& key) {
  const NodeJob at = key.first;
  const Receiver& receiver = receivers_.at(key);
  if (!receiver.stuck.empty()) here_.log.info("{}: its processes are gone now", sbcast_text(at));
  ::unlink(receiver.record.c_str());
  receivers_.erase(key);
  if (!any(at)) events_.gone(at);
}

void Receivers::repeat_stuck() const {
  for (const auto& [key, receiver] : receivers_) {
    if (!receiver.stuck.empty()) events_.stuck(key.first.node, receiver.stuck);
  }
}

bool Receivers::uses(const std::string& cgroup) const {
  return std::ranges::any_of(
      receivers_, [&](const auto& entry) { return entry.second.groups.cgroup == cgroup; });
}

bool Receivers::knows(std::uint32_t job, const std::string& name) const {
  return std::ranges::any_of(receivers_, [&](const auto& entry) {
    return entry.first.first.job == job && entry.second.groups.name == name;
  });
}

bool Receivers::knows(std::uint32_t job) const {
  return std::ranges::any_of(receivers_,
                             [&](const auto& entry) { return entry.first.first.job == job; });
}

}  // namespace berth::node
