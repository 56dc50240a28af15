// What change_update.h promises.
#include "controller/change_update.h"

#include <fmt/format.h>

#include "controller/change_results.h"
#include "text/words.h"
#include "wire/refusal.h"

namespace berth::controller {

std::unexpected<Error> refused(const RefusedKey& key) {
  return fail(Code::unsupported, fmt::format("Update of {} is not supported by berth", key.key),
              std::string(key.instead));
}

bool is_key(std::string_view word, std::string_view key, std::size_t letters) {
  return word.size() >= letters && text::to_lower(key).starts_with(text::to_lower(word));
}

std::string selected(const wire::Change& ask, std::string_view key, std::size_t letters) {
  for (const wire::Variable& given : ask.keys()) {
    if (is_key(given.name(), key, letters)) return given.value();
  }
  return {};
}

wire::Done change(job::State& state, const Caller& caller, const wire::Change& ask,
                  ChangeContext& context, job::Time now) {
  Result<void> done;
  wire::Done reply;
  if (ask.what() == "job" && ask.action() == "update") {
    done = change_job(state, caller, ask, context, now);
  } else if (ask.what() == "step" && ask.action() == "update") {
    done = change_step(state, caller, ask, now);
  } else if (ask.what() == "node" && ask.action() == "update") {
    done = change_node(state, caller, ask, now);
  } else if (ask.what() == "node" && ask.action() == "create") {
    done = create_nodes(state, caller, ask, context, now);
  } else if (ask.what() == "node" && ask.action() == "delete") {
    done = delete_nodes(state, caller, ask, context, now);
  } else if (ask.what() == "gpu" && ask.action() == "update") {
    auto lines = change_gpus(state, caller, ask, context, now);
    if (lines) {
      for (const Message& line : *lines) *reply.add_lines() = wire::to_line(line);
    } else {
      done = pass(std::move(lines.error()));
    }
  } else if (ask.what() == "partition") {
    done = change_partition(state, caller, ask, context, now);
  } else if (ask.what() == "reservation") {
    auto name = change_reservation(state, caller, ask, context, now);
    if (name) {
      reply.set_name(*name);
    } else {
      done = pass(std::move(name.error()));
    }
  } else if (ask.what() == "job" && ask.action() == "delete") {
    done = fail(Code::unsupported, "delete JobId is not supported by berth", "use scancel");
  } else {
    done = fail(Code::unsupported,
                fmt::format("{} of a {} is not supported by berth", ask.action(), ask.what()),
                "update, create and delete know jobs, steps, nodes, partitions and reservations");
  }
  if (!done) {
    *reply.mutable_refusal() = wire::to_refusal(done.error());
    reply.mutable_refusal()->set_code(std::string(code_of(done.error())));
  }
  return reply;
}

}  // namespace berth::controller
