// What server.h promises, as far as both versions share it.
#include "pmi/server.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "pmi/limits.h"

namespace berth::pmi {
namespace {

/// A number with or without a sign, as C programs print it.
int code_of(std::string_view text) {
  int code = 1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), code);
  return read.ec == std::errc{} ? code : 1;
}

}  // namespace

Server::Server(Step step) : step_(std::move(step)) {
  for (const auto& [key, value] : step_.given) shared_.put(key, value);
  if (!step_.mapping.empty()) shared_.put("PMI_process_mapping", step_.mapping);
  for (const std::uint32_t rank : step_.ranks) tasks_[rank].rank = rank;
  depart();  // a node without tasks
}

void Server::received(std::uint32_t rank, std::string_view bytes) {
  Task* task = find(rank);
  if (task == nullptr || task->state == State::closed) return;
  task->inbox.append(bytes);
  for (;;) {
    const auto message = task->inbox.next();
    if (!message) return misuse(*task, message.error().what());
    if (!*message) return;
    const Result<void> done =
        task->version == 2 ? counted(*task, **message) : line(*task, **message);
    if (!done) return misuse(*task, done.error().what());
  }
}

void Server::closed(std::uint32_t rank) {
  Task* task = find(rank);
  if (task != nullptr && task->state != State::closed) end(*task);
}

Result<void> Server::fenced(std::uint64_t number, std::string_view merged) {
  if (number != contributed_ || number == fenced_) {
    return fail(Code::protocol, "the tree ended a fence that this node is not at");
  }
  const auto pairs = decode(merged);
  if (!pairs) return pass(pairs.error());
  std::size_t bytes = shared_.bytes();
  for (const auto& [key, value] : *pairs) bytes += shared_.bytes_with(key, value) - shared_.bytes();
  if (bytes > kMaxShared) return fail(Code::limit, "the step has too many keys");
  for (const auto& [key, value] : *pairs) shared_.put(key, value);
  fenced_ = number;
  answer_waiting(false);
  for (auto& [rank, task] : tasks_) {
    if (task.fence != number) continue;
    if (task.fence_origin.version == 1) {
      answer(task.fence_origin, "barrier_out", {{"rc", "0"}});
    } else {
      answer(task.fence_origin, "kvs-fence-response", {{"rc", "0"}});
    }
  }
  contribute();
  return {};
}

void Server::named(std::uint64_t ticket, const Result<std::string>& port) {
  Kind kind = Kind::publish;
  const std::optional<Origin> origin = redeem(ticket, kind);
  if (!origin || kind == Kind::spawn) return;
  const std::string_view rc = port ? "0" : "1";
  if (origin->version == 2) {
    if (kind == Kind::publish) {
      answer(*origin, "name-publish-response", {{"rc", rc}});
    } else if (kind == Kind::unpublish) {
      answer(*origin, "name-unpublish-response", {{"rc", rc}});
    } else if (port) {
      // Clients differ in which of the two they read.
      answer(*origin, "name-lookup-response",
             {{"rc", rc}, {"found", "TRUE"}, {"port", *port}, {"value", *port}});
    } else {
      answer(*origin, "name-lookup-response", {{"rc", rc}, {"found", "FALSE"}});
    }
    return;
  }
  const std::string_view info = port ? "ok" : "failed";
  if (kind == Kind::publish) {
    answer(*origin, "publish_result", {{"info", info}, {"rc", rc}});
  } else if (kind == Kind::unpublish) {
    answer(*origin, "unpublish_result", {{"info", info}, {"rc", rc}});
  } else if (port) {
    answer(*origin, "lookup_result", {{"info", info}, {"rc", rc}, {"port", *port}});
  } else {
    answer(*origin, "lookup_result", {{"info", info}, {"rc", rc}});
  }
}

void Server::spawned(std::uint64_t ticket, const Result<std::string>& id) {
  Kind kind = Kind::publish;
  const std::optional<Origin> origin = redeem(ticket, kind);
  if (!origin || kind != Kind::spawn) return;
  if (origin->version == 1) {
    answer(*origin, "spawn_result", {{"rc", id ? "0" : "-1"}});
  } else if (id) {
    answer(*origin, "spawn-response", {{"rc", "0"}, {"jobid", *id}, {"nerrs", "0"}});
  } else {
    answer(*origin, "spawn-response", {{"rc", "1"}, {"errmsg", id.error().what()}});
  }
}

std::vector<Event> Server::take() {
  return std::exchange(events_, {});
}

bool Server::used(std::uint32_t rank) const {
  const Task* task = find(rank);
  return task != nullptr && task->used;
}

bool Server::finalized(std::uint32_t rank) const {
  const Task* task = find(rank);
  return task != nullptr && task->finalized;
}

Server::Task* Server::find(std::uint32_t rank) {
  const auto found = tasks_.find(rank);
  return found == tasks_.end() ? nullptr : &found->second;
}

const Server::Task* Server::find(std::uint32_t rank) const {
  const auto found = tasks_.find(rank);
  return found == tasks_.end() ? nullptr : &found->second;
}

void Server::answer(const Origin& origin, std::string_view command, const AnswerFields& fields) {
  const Task* task = find(origin.rank);
  if (task == nullptr || task->state == State::closed) return;
  events_.emplace_back(Answer{origin.rank, origin.version == 2
                                               ? counted_of(command, origin.thread, fields)
                                               : line_of(command, fields)});
}

void Server::misuse(Task& task, std::string_view what) {
  events_.emplace_back(Misuse{task.rank, std::string(what)});
  end(task);
}

Result<void> Server::put(Task& task, std::string_view key, std::string_view value) {
  if (key.empty() || key.size() > kMaxKey) return fail(Code::limit, "bad_key");
  if (value.size() > kMaxValue) return fail(Code::limit, "value_too_long");
  const std::size_t held = held_ - task.puts.bytes() + task.puts.bytes_with(key, value);
  if (held > kMaxHeld) return fail(Code::limit, "too_many_keys");
  held_ = held;
  task.puts.put(key, value);
  return {};
}

const std::string* Server::get(const Task& task, std::string_view key) const {
  const std::string* own = task.puts.find(key);
  return own != nullptr ? own : shared_.find(key);
}

std::uint32_t Server::appnum(std::uint32_t rank) const {
  const auto found = step_.appnums.find(rank);
  return found == step_.appnums.end() ? 0 : found->second;
}

std::uint32_t Server::universe_size() const {
  return step_.universe_size == 0 ? step_.size : step_.universe_size;
}

Result<void> Server::arrive(Task& task, Origin origin) {
  if (task.fence > fenced_) return fail(Code::protocol, "a task is at a fence twice");
  task.fence = contributed_ + 1;
  task.fence_origin = std::move(origin);
  contribute();
  return {};
}

/// The tree gets exactly one contribution of each node to a fence. Tasks that have finalized or are
/// gone are not waited for: they will never come.
void Server::contribute() {
  if (contributed_ != fenced_) return;
  const std::uint64_t number = contributed_ + 1;
  bool wanted = false;
  for (const auto& [rank, task] : tasks_) {
    if (task.fence == number) {
      wanted = true;
    } else if (task.state != State::finalized && task.state != State::closed) {
      return;
    }
  }
  if (!wanted) return;
  Contribution contribution{number, {}};
  for (auto& [rank, task] : tasks_) {
    encode(task.puts, contribution.bytes);
    held_ -= task.puts.bytes();
    task.puts = Kvs();
  }
  contributed_ = number;
  events_.emplace_back(std::move(contribution));
}

void Server::finalize(Task& task) {
  task.state = State::finalized;
  task.finalized = true;
  contribute();
}

void Server::end(Task& task) {
  task.state = State::closed;
  task.inbox = Inbox();
  task.spawn = SpawnDraft();
  std::erase_if(waiting_, [&](const Waiting& w) { return w.origin.rank == task.rank; });
  contribute();
  depart();
}

void Server::depart() {
  const auto gone = [](const auto& entry) { return entry.second.state == State::closed; };
  if (departed_ || !std::ranges::all_of(tasks_, gone)) return;
  departed_ = true;
  events_.emplace_back(Departed{});
}

Result<std::uint64_t> Server::ticket(Task& task, Kind kind, Origin origin) {
  if (task.outstanding == kMaxOutstanding) {
    return fail(Code::limit, "too many requests wait for an answer");
  }
  ++task.outstanding;
  const std::uint64_t number = next_ticket_++;
  tickets_.emplace(number, Ticket{std::move(origin), kind});
  return number;
}

std::optional<Server::Origin> Server::redeem(std::uint64_t ticket, Kind& kind) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return std::nullopt;
  Origin origin = std::move(found->second.origin);
  kind = found->second.kind;
  tickets_.erase(found);
  --find(origin.rank)->outstanding;
  return origin;
}

Result<void> Server::abort(Task& task, const Message& message) {
  std::string_view text;
  for (const std::string_view name : {"error_msg", "message", "msg"}) {
    if (text.empty()) text = message.get(name);
  }
  events_.emplace_back(
      Abort{task.rank, code_of(message.find("exitcode").value_or("1")), std::string(text)});
  return {};
}

Result<void> Server::request_spawn(Task& task, Origin origin) {
  const auto number = ticket(task, Kind::spawn, std::move(origin));
  if (!number) return pass(number.error());
  SpawnRequest request = task.spawn.take();
  request.ticket = *number;
  request.rank = task.rank;
  events_.emplace_back(std::move(request));
  return {};
}

}  // namespace berth::pmi
