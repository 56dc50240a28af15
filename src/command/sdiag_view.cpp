#include "command/sdiag_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "command/option_words.h"
#include "command/show_text.h"
#include "text/words.h"

namespace berth::command {
namespace {

constexpr OptionRow kSdiagOptions[] = {
    {"all", 'a'},
    {"cluster", 'M', Takes::value},
    {"clusters", 0, Takes::value},
    {"help", 'h'},
    {"json", 0, Takes::attached},
    {"reset", 'r'},
    {"sort-by-id", 'i'},
    {"sort-by-time", 't'},
    {"sort-by-time2", 'T'},
    {"usage", 0},
    {"version", 'V'},
    {"yaml", 0, Takes::attached},
};

constexpr std::string_view kStars = "*******************************************************\n";

/// "@1794731093" is a time: "Sun Nov 15 08:24:53 2026 (1794731093)".
std::string shown_value(const std::string& value) {
  if (!value.starts_with('@')) return value;
  const std::int64_t time = std::strtoll(value.c_str() + 1, nullptr, 10);
  return fmt::format("{} ({})", date_line(time), time);
}

bool is_request(const wire::Variable& figure) {
  return figure.value().starts_with("count:");
}

std::int64_t number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == text.npos
             ? 0
             : std::strtoll(std::string(text.substr(at + word.size())).c_str(), nullptr, 10);
}

std::int64_t id_of(const wire::Variable& figure) {
  return number_after(figure.name(), "(");
}

/// What requests are sorted by, largest first (ids: smallest first).
std::int64_t sort_value(const wire::Variable& figure, SdiagOptions::Order order) {
  switch (order) {
    case SdiagOptions::Order::count:
      return number_after(figure.value(), "count:");
    case SdiagOptions::Order::id:
      return -id_of(figure);
    case SdiagOptions::Order::average:
      return number_after(figure.value(), "ave_time:");
    case SdiagOptions::Order::total:
      return number_after(figure.value(), "total_time:");
  }
  return 0;
}

using Figures = std::vector<const wire::Variable*>;

/// Runs of request lines in the order asked for; everything else stays where it is.
Figures ordered(const wire::DiagnoseReply& reply, SdiagOptions::Order order) {
  Figures out;
  for (const wire::Variable& figure : reply.figures()) out.push_back(&figure);
  for (auto at = out.begin(); at != out.end();) {
    const auto end = std::find_if(at, out.end(), [](const auto* f) { return !is_request(*f); });
    std::stable_sort(at, end, [&](const auto* a, const auto* b) {
      return sort_value(*a, order) > sort_value(*b, order);
    });
    at = end == out.end() ? end : end + 1;
  }
  return out;
}

/// Where a figure of the text stands in "statistics".
struct JsonName {
  std::string_view heading;  // "" = before the first one
  std::string_view figure;
  std::string_view key;
};
constexpr JsonName kJsonNames[] = {
    {"", "Server thread count", "server_thread_count"},
    {"", "Agent queue size", "agent_queue_size"},
    {"", "Agent count", "agent_count"},
    {"", "Agent thread count", "agent_thread_count"},
    {"", "DBD Agent queue size", "dbd_agent_queue_size"},
    {"", "Jobs submitted", "jobs_submitted"},
    {"", "Jobs started", "jobs_started"},
    {"", "Jobs completed", "jobs_completed"},
    {"", "Jobs canceled", "jobs_canceled"},
    {"", "Jobs failed", "jobs_failed"},
    {"", "Jobs pending", "jobs_pending"},
    {"", "Jobs running", "jobs_running"},
    {"Main schedule statistics", "Last cycle", "schedule_cycle_last"},
    {"Main schedule statistics", "Max cycle", "schedule_cycle_max"},
    {"Main schedule statistics", "Total cycles", "schedule_cycle_total"},
    {"Main schedule statistics", "Mean cycle", "schedule_cycle_mean"},
    {"Main schedule statistics", "Mean depth cycle", "schedule_cycle_mean_depth"},
    {"Main schedule statistics", "Cycles per minute", "schedule_cycle_per_minute"},
    {"Main schedule statistics", "Last queue length", "schedule_queue_length"},
    {"Backfilling stats", "Total backfilled jobs (since last slurm start)", "bf_backfilled_jobs"},
    {"Backfilling stats", "Total backfilled jobs (since last stats cycle start)",
     "bf_last_backfilled_jobs"},
    {"Backfilling stats", "Total backfilled heterogeneous job components",
     "bf_backfilled_het_jobs"},
    {"Backfilling stats", "Total cycles", "bf_cycle_counter"},
    {"Backfilling stats", "Last cycle", "bf_cycle_last"},
    {"Backfilling stats", "Max cycle", "bf_cycle_max"},
    {"Backfilling stats", "Mean cycle", "bf_cycle_mean"},
    {"Backfilling stats", "Last depth cycle", "bf_last_depth"},
    {"Backfilling stats", "Last depth cycle (try sched)", "bf_last_depth_try"},
    {"Backfilling stats", "Depth Mean", "bf_depth_mean"},
    {"Backfilling stats", "Depth Mean (try depth)", "bf_depth_mean_try"},
    {"Backfilling stats", "Last queue length", "bf_queue_len"},
    {"Backfilling stats", "Queue length mean", "bf_queue_len_mean"},
    {"Backfilling stats", "Last table size", "bf_table_size"},
    {"Backfilling stats", "Mean table size", "bf_table_size_mean"},
    {"Clock statistics", "Wall clock ahead (seconds)", "clock_ahead"},
    {"Clock statistics", "Adopted in (seconds)", "clock_adopts_in"},
    {"Clock statistics", "Adopted", "clock_adoptions"},
    {"Clock statistics", "Adopted in all (seconds)", "clock_adopted"},
};

/// "Last cycle: " → "Last cycle".
std::string_view bare(std::string_view name) {
  name = text::trim(name);
  if (name.ends_with(':')) name.remove_suffix(1);
  return name;
}

void append_requests(JsonText& json, std::string_view key, const Figures& figures,
                     std::string_view heading, bool by_user) {
  json.begin_array(key);
  bool inside = false;
  for (const wire::Variable* figure : figures) {
    if (figure->value().empty()) inside = figure->name() == heading;
    if (!inside || !is_request(*figure)) continue;
    const std::string_view name = text::trim(std::string_view(figure->name()));
    json.begin_object();
    json.text(by_user ? "user" : "message_type", text::trim(name.substr(0, name.find('('))));
    json.number(by_user ? "user_id" : "type_id", id_of(*figure));
    json.number("count", number_after(figure->value(), "count:"));
    json.set_number("average_time", number_after(figure->value(), "ave_time:"));
    json.number("total_time", number_after(figure->value(), "total_time:"));
    json.end_object();
  }
  json.end_array();
}

}  // namespace

Result<SdiagOptions> parse_sdiag(std::span<const std::string> words) {
  Result<ReadWords> read = read_options("sdiag", kSdiagOptions, words);
  if (!read) return pass(std::move(read.error()));
  SdiagOptions options;
  for (const GivenOption& given : read->options) {
    const std::string_view name = given.row->name;
    if (name == "help") options.help = true;
    if (name == "usage") options.usage = true;
    if (name == "version") options.version = true;
    if (name == "json") options.json = true;
    if (name == "reset") options.reset = true;
    if (name == "sort-by-id") options.order = SdiagOptions::Order::id;
    if (name == "sort-by-time") options.order = SdiagOptions::Order::average;
    if (name == "sort-by-time2") options.order = SdiagOptions::Order::total;
    if (name == "yaml") return fail(Code::bad_value, "--yaml is not available", "use --json");
  }
  if (!read->operands.empty()) {
    return fail(Code::bad_value, fmt::format("Unrecognized option: {}", read->operands.front()));
  }
  return options;
}

std::string sdiag_text(const SdiagOptions& options, const wire::DiagnoseReply& reply) {
  std::string now;
  std::string since;
  std::string body;
  for (const wire::Variable* figure : ordered(reply, options.order)) {
    if (figure->name() == "now") {
      now = shown_value("@" + figure->value());
    } else if (figure->name() == "since") {
      since = shown_value("@" + figure->value());
    } else {
      body += figure->name() + shown_value(figure->value()) + "\n";
    }
  }
  return fmt::format("{}sdiag output at {}\nData since      {}\n{}{}", kStars, now, since, kStars,
                     body);
}

std::string sdiag_json(const wire::DiagnoseReply& reply, const JsonMeta& meta) {
  const Figures figures = ordered(reply, SdiagOptions::Order::count);
  JsonText json;
  json.begin_object();
  json.begin_object("statistics");
  json.begin_object("parts_packed");
  json.boolean("set", true);
  json.end_object();
  std::string heading;
  for (const wire::Variable* figure : figures) {
    const std::string_view name = figure->name();
    if (figure->value().empty()) {
      if (!name.empty()) heading = name;
      continue;
    }
    const std::int64_t value = std::strtoll(
        figure->value().c_str() + (figure->value().starts_with('@') ? 1 : 0), nullptr, 10);
    if (name == "now") json.set_number("req_time", value);
    if (name == "since") json.set_number("req_time_start", value);
    if (bare(name) == "Job states ts") json.set_number("job_states_ts", value);
    if (bare(name) == "Last cycle when") json.set_number("bf_when_last_cycle", value);
    for (const JsonName& known : kJsonNames) {
      const bool here =
          known.heading.empty() ? heading.empty() : heading.starts_with(known.heading);
      if (here && bare(name) == known.figure) json.number(known.key, value);
    }
  }
  append_requests(json, "rpcs_by_message_type", figures,
                  "Remote Procedure Call statistics by message type", false);
  append_requests(json, "rpcs_by_user", figures, "Remote Procedure Call statistics by user", true);
  json.end_object();
  append_meta(json, meta);
  json.end_object();
  return std::move(json).done();
}

std::string_view sdiag_help() {
  return R"(Usage: sdiag [OPTIONS]
  -a, --all            all figures (the default)
  -h, --help           this text
  -i, --sort-by-id     requests sorted by their number
      --json           the reply as JSON
  -M, --cluster=name   this cluster's name
  -r, --reset          count from zero
  -t, --sort-by-time   requests sorted by average time
  -T, --sort-by-time2  requests sorted by total time
      --usage          brief usage
  -V, --version        version and exit
)";
}

}  // namespace berth::command
