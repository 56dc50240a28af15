// The commands of PMI-2.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "pmi/limits.h"
#include "pmi/server.h"

namespace berth::pmi {
namespace {

constexpr std::string_view kNode = "info-getnodeattr";

}  // namespace

Server::Origin Server::origin_of(const Task& task, const Message& message) {
  Origin origin{task.rank, 2, {}};
  if (const auto thread = message.find("thrid")) origin.thread = *thread;
  return origin;
}

Result<void> Server::counted(Task& task, std::string_view text) {
  static constexpr auto kCommands = std::to_array<Row>({
      {"fullinit", &Server::counted_init},
      {"job-getid", &Server::counted_id},
      {"kvs-put", &Server::counted_put},
      {"kvs-get", &Server::counted_get},
      {"kvs-fence", &Server::counted_fence},
      {"info-getjobattr", &Server::counted_attribute},
      {kNode, &Server::counted_attribute},
      {"info-putnodeattr", &Server::counted_put_attribute},
      {"name-publish", &Server::counted_publish},
      {"name-unpublish", &Server::counted_unpublish},
      {"name-lookup", &Server::counted_lookup},
      {"spawn", &Server::counted_spawn},
      {"finalize", &Server::counted_finalize},
      {"abort", &Server::abort},
  });
  const auto message = parse_counted(text);
  if (!message) return pass(message.error());
  const auto row = std::ranges::find(kCommands, std::string_view(message->command), &Row::command);
  if (row != kCommands.end()) return (this->*row->handler)(task, *message);
  // Also job-connect and job-disconnect: the protocol names them, no manager has them.
  answer(origin_of(task, *message), message->command + "-response",
         {{"rc", "1"}, {"errmsg", "not supported"}});
  return {};
}

Result<void> Server::counted_init(Task& task, const Message& message) {
  const std::string rank = fmt::to_string(task.rank);
  const std::string size = fmt::to_string(step_.size);
  const std::string number = fmt::to_string(appnum(task.rank));
  AnswerFields fields = {{"rc", "0"},           {"pmi-version", "2"},   {"pmi-subversion", "0"},
                         {"rank", rank},        {"size", size},         {"appnum", number},
                         {"debugged", "FALSE"}, {"pmiverbose", "FALSE"}};
  // That it is there tells the client that it was spawned.
  if (!step_.spawner.empty()) fields.emplace_back("spawner-jobid", step_.spawner);
  answer(origin_of(task, message), "fullinit-response", fields);
  return {};
}

Result<void> Server::counted_id(Task& task, const Message& message) {
  answer(origin_of(task, message), "job-getid-response", {{"rc", "0"}, {"jobid", step_.id}});
  return {};
}

Result<void> Server::counted_put(Task& task, const Message& message) {
  const auto done = put(task, message.get("key"), message.get("value"));
  if (done) {
    answer(origin_of(task, message), "kvs-put-response", {{"rc", "0"}});
    answer_waiting(false);
  } else {
    answer(origin_of(task, message), "kvs-put-response",
           {{"rc", "1"}, {"errmsg", done.error().what()}});
  }
  return {};
}

Result<void> Server::counted_get(Task& task, const Message& message) {
  const std::string_view id = message.get("jobid");
  const bool here = id.empty() || id == step_.id;
  const std::string* value = here ? get(task, message.get("key")) : nullptr;
  if (value != nullptr) {
    answer(origin_of(task, message), "kvs-get-response",
           {{"rc", "0"}, {"found", "TRUE"}, {"value", *value}});
  } else {
    answer(origin_of(task, message), "kvs-get-response", {{"rc", "0"}, {"found", "FALSE"}});
  }
  return {};
}

Result<void> Server::counted_fence(Task& task, const Message& message) {
  return arrive(task, origin_of(task, message));
}

Result<void> Server::counted_attribute(Task& task, const Message& message) {
  Waiting question{origin_of(task, message), message.command == kNode,
                   std::string(message.get("key"))};
  if (answer_attribute(question)) return {};
  if (message.get("wait") != "TRUE") {
    answer(question.origin, message.command + "-response", {{"rc", "0"}, {"found", "FALSE"}});
    return {};
  }
  if (task.outstanding == kMaxOutstanding) {
    return fail(Code::limit, "too many requests wait for an answer");
  }
  ++task.outstanding;
  waiting_.push_back(std::move(question));
  return {};
}

/// Whether the attribute is there; then it was sent.
bool Server::answer_attribute(const Waiting& question) {
  const Task* task = find(question.origin.rank);
  std::string universe;
  const std::string* value = nullptr;
  if (question.of_node) {
    value = attributes_.find(question.key);
  } else if (question.key == "universeSize") {
    universe = fmt::to_string(universe_size());
    value = &universe;
  } else if (task != nullptr) {
    value = get(*task, question.key);
  }
  if (value == nullptr) return false;
  answer(question.origin,
         question.of_node ? "info-getnodeattr-response" : "info-getjobattr-response",
         {{"rc", "0"}, {"found", "TRUE"}, {"value", *value}});
  return true;
}

void Server::answer_waiting(bool of_node) {
  std::erase_if(waiting_, [&](const Waiting& question) {
    if (question.of_node != of_node || !answer_attribute(question)) return false;
    --find(question.origin.rank)->outstanding;
    return true;
  });
}

Result<void> Server::counted_put_attribute(Task& task, const Message& message) {
  const Origin origin = origin_of(task, message);
  const std::string_view key = message.get("key");
  const std::string_view value = message.get("value");
  const std::size_t held = held_ - attributes_.bytes() + attributes_.bytes_with(key, value);
  if (key.empty() || key.size() > kMaxKey || value.size() > kMaxValue || held > kMaxHeld) {
    answer(origin, "info-putnodeattr-response", {{"rc", "1"}, {"errmsg", "too much"}});
    return {};
  }
  held_ = held;
  attributes_.put(key, value);
  answer(origin, "info-putnodeattr-response", {{"rc", "0"}});
  answer_waiting(true);
  return {};
}

Result<void> Server::counted_publish(Task& task, const Message& message) {
  const auto number = ticket(task, Kind::publish, origin_of(task, message));
  if (!number) return pass(number.error());
  events_.emplace_back(Publish{*number, task.rank, std::string(message.get("name")),
                               std::string(message.get("port"))});
  return {};
}

Result<void> Server::counted_unpublish(Task& task, const Message& message) {
  const auto number = ticket(task, Kind::unpublish, origin_of(task, message));
  if (!number) return pass(number.error());
  events_.emplace_back(Unpublish{*number, task.rank, std::string(message.get("name"))});
  return {};
}

Result<void> Server::counted_lookup(Task& task, const Message& message) {
  const auto number = ticket(task, Kind::lookup, origin_of(task, message));
  if (!number) return pass(number.error());
  events_.emplace_back(Lookup{*number, task.rank, std::string(message.get("name"))});
  return {};
}

Result<void> Server::counted_spawn(Task& task, const Message& message) {
  if (const auto added = task.spawn.add_message(message); !added) {
    task.spawn = SpawnDraft();
    answer(origin_of(task, message), "spawn-response",
           {{"rc", "1"}, {"errmsg", added.error().what()}});
    return {};
  }
  return request_spawn(task, origin_of(task, message));
}

Result<void> Server::counted_finalize(Task& task, const Message& message) {
  answer(origin_of(task, message), "finalize-response", {{"rc", "0"}});
  // Whatever comes next on this connection is an init, and that is a line.
  task.version = 1;
  task.inbox.set_counted(false);
  finalize(task);
  return {};
}

}  // namespace berth::pmi
