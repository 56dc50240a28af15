#include "command/why_text.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace berth::command {
namespace {

std::string show_time(std::int64_t when, const Shown& shown) {
  std::string out;
  append_time(out, when, shown, "Unknown");
  return out;
}

/// sbatch --explain asks of a job that has no id.
bool is_submitted(const wire::JobExplained& why) {
  return !why.shown().empty();
}

void put_running(const wire::JobExplained& why, const Shown& shown, std::string& out) {
  if (why.waking().empty()) {
    out += "\n  it does not wait\n";
  } else {
    out += fmt::format("\n  waiting for {} to power up, {}, at most until {}\n", why.waking(),
                       why.waking_since() == 0
                           ? std::string("which waits for its turn (ResumeRate)")
                           : fmt::format("since {}", show_time(why.waking_since(), shown)),
                       show_time(why.waking_until(), shown));
  }
  for (const std::string& fact : why.facts()) out += fmt::format("  {}\n", fact);
}

void put_head(const wire::JobExplained& why, const Shown& shown, std::string& out) {
  if (!is_submitted(why)) {
    if (why.reason() == "None") {
      out += fmt::format("it would start now, on {}\n", why.planned_nodes());
      return;
    }
    out += "it would wait";
  } else {
    out += fmt::format("job {}  {}", why.shown(), why.state());
    if (why.state() != "PENDING") return put_running(why, shown, out);
  }
  out += fmt::format(" ({})", why.reason());
  if (why.position() > 0) {
    out += fmt::format(", number {} of {} in the queue", why.position(), why.waiting());
  }
  out += "\n";
  for (const std::string& fact : why.facts()) out += fmt::format("  {}\n", fact);
  if (why.position() == 0) return;
  if (why.planned_start() > 0) {
    out += fmt::format("  starts    {} at the latest, on {}\n",
                       show_time(why.planned_start(), shown), why.planned_nodes());
    out += fmt::format("            known from {}\n", why.basis());
  } else {
    out += fmt::format("  starts    {}\n", why.basis());
  }
}

void put_lists(const wire::JobExplained& why, const Shown& shown, std::string& out) {
  std::string_view title = "  nodes";
  for (const auto& cause : why.causes()) {
    out += fmt::format("{:<12}{} {}: {}\n", title, cause.nodes(),
                       cause.nodes() == 1 ? "node" : "nodes", cause.words());
    title = "";
  }
  title = "  waits for";
  for (const auto& holder : why.holders()) {
    const std::string user = holder.user().empty() ? "" : fmt::format(" of {}", holder.user());
    const std::string until =
        holder.limited() ? fmt::format("until {} at the latest", show_time(holder.ends(), shown))
                         : std::string("without a time limit");
    out += fmt::format("{:<12}job {}{}: {}, {}\n", title, holder.job_id(), user, holder.holds(),
                       until);
    title = "";
  }
  if (why.more_holders() > 0) out += fmt::format("{:<12}and {} more\n", "", why.more_holders());
  title = "  starts now";
  for (const auto& change : why.changes()) {
    out += fmt::format("{:<12} with {} (on {})\n", title, change.option(), change.nodes());
    title = "";
  }
}

/// Names and words of users are in all of these.
void make_printable(wire::JobExplained& why) {
  const auto escape = [](std::string* text) { berth::make_printable(*text, 0); };
  for (std::string* text :
       {why.mutable_shown(), why.mutable_state(), why.mutable_reason(), why.mutable_basis(),
        why.mutable_planned_nodes(), why.mutable_waking()}) {
    escape(text);
  }
  for (std::string& fact : *why.mutable_facts()) escape(&fact);
  for (auto& cause : *why.mutable_causes()) escape(cause.mutable_words());
  for (auto& holder : *why.mutable_holders()) {
    escape(holder.mutable_user());
    escape(holder.mutable_holds());
  }
  for (auto& change : *why.mutable_changes()) {
    escape(change.mutable_option());
    escape(change.mutable_nodes());
  }
}

}  // namespace

std::string why_text(wire::JobExplained why, const Shown& shown) {
  make_printable(why);
  std::string out;
  put_head(why, shown, out);
  put_lists(why, shown, out);
  return out;
}

void why_json(const wire::JobExplained& why, JsonText& json) {
  json.begin_object();
  json.text("job", why.shown());
  json.text("state", why.state());
  json.text("reason", why.reason());
  json.begin_array("facts");
  for (const std::string& fact : why.facts()) json.item(fact);
  json.end_array();
  json.unsigned_number("position", why.position());
  json.unsigned_number("waiting", why.waiting());
  json.number("planned_start", why.planned_start());
  json.text("planned_nodes", why.planned_nodes());
  json.text("basis", why.basis());
  json.text("waking_nodes", why.waking());
  json.number("waking_since", why.waking_since());
  json.number("waking_until", why.waking_until());
  json.begin_array("nodes");
  for (const auto& cause : why.causes()) {
    json.begin_object();
    json.text("cause", cause.words());
    json.unsigned_number("count", cause.nodes());
    json.end_object();
  }
  json.end_array();
  json.begin_array("waits_for");
  for (const auto& holder : why.holders()) {
    json.begin_object();
    json.unsigned_number("job", holder.job_id());
    json.text("user", holder.user());
    json.text("holds", holder.holds());
    json.boolean("limited", holder.limited());
    json.number("ends", holder.ends());
    json.end_object();
  }
  json.end_array();
  json.unsigned_number("waits_for_more", why.more_holders());
  json.begin_array("would_start_with");
  for (const auto& change : why.changes()) {
    json.begin_object();
    json.text("option", change.option());
    json.text("nodes", change.nodes());
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace berth::command
