// The commands of PMI-1. A client reads lines of at most 1024 bytes, so answers carry no word that
// it has no use for: what it could put it can also get.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "pmi/limits.h"
#include "pmi/server.h"
#include "text/number.h"

namespace berth::pmi {

Result<void> Server::line(Task& task, std::string_view line) {
  static constexpr auto kCommands = std::to_array<Row>({
      {"init", &Server::line_init},
      {"get_maxes", &Server::line_maxes},
      {"get_appnum", &Server::line_appnum},
      {"get_my_kvsname", &Server::line_name},
      {"get_universe_size", &Server::line_universe},
      {"put", &Server::line_put},
      {"get", &Server::line_get},
      {"getbyidx", &Server::line_by_place},
      {"barrier_in", &Server::line_barrier},
      {"publish_name", &Server::line_publish},
      {"unpublish_name", &Server::line_unpublish},
      {"lookup_name", &Server::line_lookup},
      {"finalize", &Server::line_finalize},
      {"abort", &Server::abort},
  });
  if (task.spawn.open()) {
    const auto complete = task.spawn.add_line(line);
    if (!complete) return pass(complete.error());
    return *complete ? request_spawn(task, {task.rank, 1, {}}) : Result<void>{};
  }
  if (line.empty()) return {};
  if (line == "mcmd=spawn" && task.state == State::running) return task.spawn.begin();
  const auto message = parse_line(line);
  if (!message) return pass(message.error());
  if (task.state != State::running && message->command != "init" && message->command != "abort") {
    return fail(Code::protocol, "a command came before init");
  }
  const auto row = std::ranges::find(kCommands, std::string_view(message->command), &Row::command);
  if (row != kCommands.end()) return (this->*row->handler)(task, *message);
  answer({task.rank, 1, {}}, "error", {{"rc", "-1"}, {"msg", "unknown_command"}});
  return {};
}

Result<void> Server::line_init(Task& task, const Message& message) {
  const Origin origin{task.rank, 1, {}};
  const std::string_view version = message.get("pmi_version");
  if (version != "1" && version != "2") {
    answer(origin, "response_to_init",
           {{"pmi_version", "1"}, {"pmi_subversion", "1"}, {"rc", "-1"}});
    return {};
  }
  task.used = true;
  task.finalized = false;
  task.state = State::running;
  if (version == "2") {
    answer(origin, "response_to_init",
           {{"pmi_version", "2"}, {"pmi_subversion", "0"}, {"rc", "0"}});
    task.version = 2;
    task.inbox.set_counted(true);
  } else {
    answer(origin, "response_to_init",
           {{"pmi_version", "1"}, {"pmi_subversion", "1"}, {"rc", "0"}});
  }
  return {};
}

Result<void> Server::line_maxes(Task& task, const Message&) {
  answer({task.rank, 1, {}}, "maxes",
         {{"kvsname_max", fmt::to_string(kToldName)},
          {"keylen_max", fmt::to_string(kToldKey)},
          {"vallen_max", fmt::to_string(kToldValue)}});
  return {};
}

Result<void> Server::line_appnum(Task& task, const Message&) {
  answer({task.rank, 1, {}}, "appnum", {{"appnum", fmt::to_string(appnum(task.rank))}});
  return {};
}

Result<void> Server::line_name(Task& task, const Message&) {
  answer({task.rank, 1, {}}, "my_kvsname", {{"kvsname", step_.id}});
  return {};
}

Result<void> Server::line_universe(Task& task, const Message&) {
  answer({task.rank, 1, {}}, "universe_size", {{"size", fmt::to_string(universe_size())}});
  return {};
}

Result<void> Server::line_put(Task& task, const Message& message) {
  const Origin origin{task.rank, 1, {}};
  if (message.find("kvsname").value_or(step_.id) != step_.id) {
    answer(origin, "put_result", {{"rc", "-1"}, {"msg", "unknown_kvsname"}});
  } else if (const auto done = put(task, message.get("key"), message.get("value")); !done) {
    answer(origin, "put_result", {{"rc", "-1"}, {"msg", done.error().what()}});
  } else {
    answer(origin, "put_result", {{"rc", "0"}, {"msg", "success"}});
  }
  return {};
}

Result<void> Server::line_get(Task& task, const Message& message) {
  const Origin origin{task.rank, 1, {}};
  const bool here = message.find("kvsname").value_or(step_.id) == step_.id;
  const std::string* value = here ? get(task, message.get("key")) : nullptr;
  // A value of PMI-2 may hold what ends a line here.
  if (value == nullptr || value->find('\n') != std::string::npos) {
    answer(origin, "get_result", {{"rc", "-1"}, {"msg", "key_not_found"}, {"value", "unknown"}});
  } else {
    answer(origin, "get_result", {{"rc", "0"}, {"value", *value}});
  }
  return {};
}

Result<void> Server::line_by_place(Task& task, const Message& message) {
  const Origin origin{task.rank, 1, {}};
  const auto place = text::parse_number(message.get("idx"));
  if (!place || *place >= shared_.size()) {
    answer(origin, "getbyidx_results", {{"rc", "-2"}, {"reason", "no_more_keyvals"}});
    return {};
  }
  const auto& [key, value] = shared_.at(*place);
  answer(origin, "getbyidx_results",
         {{"rc", "0"}, {"nextidx", fmt::to_string(*place + 1)}, {"key", key}, {"val", value}});
  return {};
}

Result<void> Server::line_barrier(Task& task, const Message&) {
  return arrive(task, {task.rank, 1, {}});
}

Result<void> Server::line_publish(Task& task, const Message& message) {
  const auto number = ticket(task, Kind::publish, {task.rank, 1, {}});
  if (!number) return pass(number.error());
  events_.emplace_back(Publish{*number, task.rank, std::string(message.get("service")),
                               std::string(message.get("port"))});
  return {};
}

Result<void> Server::line_unpublish(Task& task, const Message& message) {
  const auto number = ticket(task, Kind::unpublish, {task.rank, 1, {}});
  if (!number) return pass(number.error());
  events_.emplace_back(Unpublish{*number, task.rank, std::string(message.get("service"))});
  return {};
}

Result<void> Server::line_lookup(Task& task, const Message& message) {
  const auto number = ticket(task, Kind::lookup, {task.rank, 1, {}});
  if (!number) return pass(number.error());
  events_.emplace_back(Lookup{*number, task.rank, std::string(message.get("service"))});
  return {};
}

Result<void> Server::line_finalize(Task& task, const Message&) {
  answer({task.rank, 1, {}}, "finalize_ack", {{"rc", "0"}});
  finalize(task);
  return {};
}

}  // namespace berth::pmi
