// What scontrol_change.h promises, and the sub-commands.
#include "command/scontrol_change.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "command/messages.h"
#include "command/scontrol_resize.h"
#include "command/scontrol_session.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command::scontrol {
namespace {

struct Selector {
  std::string_view what;
  std::string_view key;
  std::size_t letters;
};
// In the order of precedence: a job may be given a Partition=, a reservation Nodes= and a
// partition.
constexpr std::array kSelectors = {
    Selector{"step", "stepid", 4},
    Selector{"job", "jobid", 3},
    Selector{"reservation", "reservationname", 3},
    Selector{"gpu", "gpu", 3},
    Selector{"node", "nodename", 4},
    Selector{"partition", "partitionname", 4},
};

bool selects(const Selector& selector, std::string_view key) {
  const std::string lower = text::to_lower(key);
  return lower.size() >= selector.letters && selector.key.starts_with(lower);
}

/// "TimeLimit+=5" → TimeLimit, "+5".
std::optional<wire::Variable> key_and_value(std::string_view word) {
  const std::size_t eq = word.find('=');
  if (eq == std::string_view::npos || eq == 0) return std::nullopt;
  wire::Variable key;
  std::string_view name = word.substr(0, eq);
  std::string value(word.substr(eq + 1));
  if (name.ends_with('+') || name.ends_with('-')) {
    value.insert(value.begin(), name.back());
    name.remove_suffix(1);
  }
  key.set_name(std::string(name));
  key.set_value(value);
  return key;
}

std::string_view what_is_meant(const wire::Change& change) {
  for (const Selector& selector : kSelectors) {
    for (const wire::Variable& key : change.keys()) {
      if (selects(selector, key.name())) return selector.what;
    }
  }
  // Jobs may be meant by their name alone.
  for (const wire::Variable& key : change.keys()) {
    if (text::equal_ignoring_case(key.name(), "jobname")) return "job";
  }
  return {};
}

bool write_text(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return (std::fclose(file) == 0) && written;
}

/// A running job was made smaller: shells in it have variables of the larger one.
void write_resize_scripts(Session& session, const wire::Change& change) {
  wire::ListJobs ask;
  ask.set_with_detail(true);
  for (const wire::Variable& key : change.keys()) {
    if (!selects(kSelectors[1], key.name())) continue;
    const auto name = wire::parse_job_name(key.value());
    if (name) *ask.add_ids() = *name;
  }
  if (ask.ids().empty()) return;
  const Result<wire::JobsReply> reply = session.ask<wire::JobsReply>(ask);
  if (!reply || reply->jobs_size() != 1 || reply->jobs(0).state() != "RUNNING") return;
  const ResizeScripts scripts = resize_scripts(reply->jobs(0));
  const std::string stem = fmt::format("slurm_job_{}_resize", reply->jobs(0).id());
  if (!write_text(stem + ".sh", scripts.sh) || !write_text(stem + ".csh", scripts.csh)) {
    session.complain(fmt::format("Could not create file {}.sh: {}", stem, std::strerror(errno)));
    return;
  }
  session.out += fmt::format(
      "To reset Slurm environment variables, execute\n"
      "  For bash or sh shells:  . ./{0}.sh\n"
      "  For csh shells:         source ./{0}.csh\n",
      stem);
}

int send(Session& session, std::string_view action, std::string_view prefix, Words words) {
  const Result<wire::Change> change = parse_change(action, words);
  if (!change) return print_error(change.error(), "scontrol");
  const Result<wire::Done> done = session.ask<wire::Done>(*change);
  const bool reservation = change->what() == "reservation";
  if (!done) {
    if (reservation && action == "create") prefix = "Error creating the reservation";
    if (reservation && action == "update") prefix = "Error updating the reservation";
    if (reservation && action == "delete") prefix = "Error deleting the reservation";
    return session.complain(prefix, done.error());
  }
  if (!session.quiet) print_messages(messages_of(done->lines()), "scontrol");
  if (reservation && action == "create") {
    session.out += fmt::format("Reservation created: {}\n", done->name());
  } else if (reservation && action == "update") {
    session.out += "Reservation updated.\n";
  }
  if (changes_size(*change)) write_resize_scripts(session, *change);
  return 0;
}

}  // namespace

Result<wire::Change> parse_change(std::string_view action, std::span<const std::string> words) {
  wire::Change change;
  change.set_action(std::string(action));
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto key = key_and_value(words[i]);
    // "update job 12 …": the value is the next word.
    if (!key && change.keys().empty() && i + 1 < words.size()) {
      for (const Selector& selector : kSelectors) {
        if (!selects(selector, words[i])) continue;
        key.emplace();
        key->set_name(words[i]);
        // "create reservation StartTime=…": it is given a name.
        const bool nameless = action == "create" && words[i + 1].find('=') != std::string::npos;
        if (!nameless) key->set_value(words[++i]);
        break;
      }
    }
    if (!key && text::equal_ignoring_case(words[i], "skip")) {
      key.emplace();
      key->set_name("Skip");
    }
    if (!key) {
      return fail(Code::option_syntax, fmt::format("Invalid input: {}  Request aborted", words[i]),
                  "write KEY=VALUE; quote values with blanks");
    }
    *change.add_keys() = std::move(*key);
  }
  change.set_what(std::string(what_is_meant(change)));
  if (change.what().empty()) {
    return fail(
        Code::option_syntax, fmt::format("No valid entity in {} command", action),
        "one of JobId=, StepId=, NodeName=, gpu=NODE:INDEX, PartitionName=, ReservationName= says "
        "what is meant");
  }
  return change;
}

int update(Session& session, Words words) {
  return send(session, "update", "slurm_update error", words);
}

int create(Session& session, Words words) {
  return send(session, "create", "slurm_create error", words);
}

int remove(Session& session, Words words) {
  return send(session, "delete", "slurm_delete error", words);
}

}  // namespace berth::command::scontrol
