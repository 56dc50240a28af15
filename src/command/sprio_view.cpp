#include "command/sprio_view.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "command/columns.h"
#include "command/option_words.h"
#include "wire/job_names.h"

namespace berth::command {
namespace {

constexpr OptionRow kSprioOptions[] = {
    {"clusters", 'M', Takes::value},
    {"cluster", 0, Takes::value},
    {"federation", 0},
    {"format", 'o', Takes::value},
    {"help", 0},
    {"jobs", 'j', Takes::follows},
    {"local", 0},
    {"long", 'l'},
    {"noheader", 'h'},
    {"norm", 'n'},
    {"partition", 'p', Takes::value},
    {"sibling", 0},
    {"sort", 'S', Takes::value},
    {"usage", 0},
    {"user", 'u', Takes::value},
    {"users", 0, Takes::value},
    {"verbose", 'v'},
    {"version", 'V'},
    {"weights", 'w'},
};

/// A job in a partition, or (job unset) the line of the weights.
struct SprioRow {
  const wire::PrioritiesReply* reply = nullptr;
  const wire::JobPriority* job = nullptr;
};

using Part = double (wire::PriorityParts::*)() const;

void put_factor(const SprioRow& row, Part part, bool weighted, std::string& out) {
  const double weight = (row.reply->weights().*part)();
  if (row.job == nullptr) {
    out += fmt::format("{:.0f}", weight);
    return;
  }
  const double factor = (row.job->factors().*part)();
  out += weighted ? fmt::format("{:.0f}", std::floor(factor * weight + 1e-6))
                  : fmt::format("{:.7f}", factor);
}

template <Part part, bool weighted>
void show_factor(const SprioRow& row, const Shown&, std::string& out) {
  put_factor(row, part, weighted, out);
}

template <Part part>
std::int64_t number_of(const SprioRow& row) {
  // Sorted as the factor is: its weight is the same for all.
  return row.job == nullptr ? 0 : std::llround((row.job->factors().*part)() * 1e9);
}

void show_tres(const SprioRow& row, bool weighted, std::string& out) {
  const wire::PriorityParts& weights = row.reply->weights();
  bool first = true;
  for (int i = 0; i < row.reply->tres_size(); ++i) {
    const double weight = weights.tres(i);
    std::string value;
    if (row.job == nullptr) {
      value = fmt::format("{:.0f}", weight);
    } else {
      const double factor = row.job->factors().tres(i);
      if (factor == 0) continue;
      value = weighted ? fmt::format("{:.0f}", std::floor(factor * weight + 1e-6))
                       : fmt::format("{:.7f}", factor);
    }
    out += fmt::format("{}{}={}", first ? "" : ",", row.reply->tres(i), value);
    first = false;
  }
}

using Parts = wire::PriorityParts;
#define JOB_TEXT(expression)                                \
  [](const SprioRow& row, const Shown&, std::string& out) { \
    if (row.job == nullptr) return;                         \
    const wire::JobPriority& j = *row.job;                  \
    out += (expression);                                    \
  }

constexpr std::array kSprioFields = {
    Field<SprioRow>{
        'i', "", "JOBID",
        [](const SprioRow& row, const Shown&, std::string& out) {
          out += row.job == nullptr ? std::string("Weights") : std::to_string(row.job->id());
        },
        [](const SprioRow& row) -> std::int64_t { return row.job == nullptr ? 0 : row.job->id(); }},
    Field<SprioRow>{'r', "", "PARTITION", JOB_TEXT(j.partition())},
    Field<SprioRow>{'u', "", "USER", JOB_TEXT(j.user())},
    Field<SprioRow>{'o', "", "ACCOUNT", JOB_TEXT(j.account().empty() ? "(null)" : j.account())},
    Field<SprioRow>{'n', "", "QOS_NAME", JOB_TEXT(j.qos().empty() ? "(null)" : j.qos())},
    Field<SprioRow>{'c', "", "CLUSTER",
                    [](const SprioRow& row, const Shown&, std::string& out) {
                      out += row.reply->cluster_name();
                    }},
    Field<SprioRow>{'Y', "", "PRIORITY", JOB_TEXT(std::to_string(j.priority())),
                    [](const SprioRow& row) -> std::int64_t {
                      return row.job == nullptr ? 0 : row.job->priority();
                    }},
    Field<SprioRow>{
        'y', "", "PRIORITY",
        JOB_TEXT(fmt::format("{:.14f}", static_cast<double>(j.priority()) / 4294967295.0)),
        [](const SprioRow& row) -> std::int64_t {
          return row.job == nullptr ? 0 : row.job->priority();
        }},
    Field<SprioRow>{'N', "", "NICE", JOB_TEXT(std::to_string(j.nice())),
                    [](const SprioRow& row) -> std::int64_t {
                      return row.job == nullptr ? 0 : row.job->nice();
                    }},
    Field<SprioRow>{'s', "", "SITE", show_factor<&Parts::site, false>, number_of<&Parts::site>},
    Field<SprioRow>{'S', "", "SITE", show_factor<&Parts::site, true>, number_of<&Parts::site>},
    Field<SprioRow>{'a', "", "AGE", show_factor<&Parts::age, false>, number_of<&Parts::age>},
    Field<SprioRow>{'A', "", "AGE", show_factor<&Parts::age, true>, number_of<&Parts::age>},
    Field<SprioRow>{'b', "", "ASSOC", show_factor<&Parts::assoc, false>, number_of<&Parts::assoc>},
    Field<SprioRow>{'B', "", "ASSOC", show_factor<&Parts::assoc, true>, number_of<&Parts::assoc>},
    Field<SprioRow>{'f', "", "FAIRSHARE", show_factor<&Parts::fair_share, false>,
                    number_of<&Parts::fair_share>},
    Field<SprioRow>{'F', "", "FAIRSHARE", show_factor<&Parts::fair_share, true>,
                    number_of<&Parts::fair_share>},
    Field<SprioRow>{'j', "", "JOBSIZE", show_factor<&Parts::size, false>, number_of<&Parts::size>},
    Field<SprioRow>{'J', "", "JOBSIZE", show_factor<&Parts::size, true>, number_of<&Parts::size>},
    Field<SprioRow>{'p', "", "PARTITION", show_factor<&Parts::partition, false>,
                    number_of<&Parts::partition>},
    Field<SprioRow>{'P', "", "PARTITION", show_factor<&Parts::partition, true>,
                    number_of<&Parts::partition>},
    Field<SprioRow>{'q', "", "QOS", show_factor<&Parts::qos, false>, number_of<&Parts::qos>},
    Field<SprioRow>{'Q', "", "QOS", show_factor<&Parts::qos, true>, number_of<&Parts::qos>},
    Field<SprioRow>{
        't', "", "TRES",
        [](const SprioRow& row, const Shown&, std::string& out) { show_tres(row, false, out); }},
    Field<SprioRow>{
        'T', "", "TRES",
        [](const SprioRow& row, const Shown&, std::string& out) { show_tres(row, true, out); }},
};
#undef JOB_TEXT

/// The columns that have a weight, or all of them.
std::string default_format(const SprioOptions& options, const wire::PrioritiesReply& reply) {
  const bool small = options.normalized;
  const bool all = options.long_format;
  const wire::PriorityParts& weights = reply.weights();
  std::string out = "%.15i %9r";
  if (all) out += " %.8u";
  out += small ? " %.16y %.10s" : " %.10Y %.10S";
  const auto add = [&](double weight, std::string_view normalized, std::string_view weighted) {
    if (weight > 0 || all) out += fmt::format(" {}", small ? normalized : weighted);
  };
  add(weights.age(), "%.10a", "%.10A");
  add(weights.assoc(), "%.10b", "%.10B");
  add(weights.fair_share(), "%.10f", "%.10F");
  add(weights.size(), "%.10j", "%.10J");
  add(weights.partition(), "%.10p", "%.10P");
  add(weights.qos(), "%.10q", "%.10Q");
  if (all) out += " %.11N";
  add(reply.tres_size(), "%20t", "%20T");
  return out;
}

Result<void> set(SprioOptions& to, const GivenOption& given) {
  const std::string_view name = given.row->name;
  const std::string value = given.value.value_or("");
  if (name == "clusters" || name == "cluster") to.clusters = value;
  if (name == "format") to.format = value;
  if (name == "help") to.help = true;
  if (name == "usage") to.usage = true;
  if (name == "version") to.version = true;
  if (name == "long") to.long_format = true;
  if (name == "noheader") to.header = false;
  if (name == "norm") to.normalized = true;
  if (name == "weights") to.weights = true;
  if (name == "sort") to.sort = value;
  if (name == "partition") to.partitions = list_of(value);
  if (name == "user" || name == "users") to.users = list_of(value);
  if (name == "federation" || name == "sibling") {
    return fail(Code::unsupported, fmt::format("--{}: there is no federation of clusters", name));
  }
  if (name == "jobs") {
    for (const std::string_view word : wire::split_job_list(value)) {
      if (word.empty()) continue;
      const auto job = wire::parse_job_name(word);
      if (!job) return fail(Code::bad_value, fmt::format("Invalid job id: {}", word));
      to.jobs.push_back(*job);
    }
  }
  return {};
}

}  // namespace

Result<SprioOptions> parse_sprio(std::span<const std::string> words) {
  Result<ReadWords> read = read_options("sprio", kSprioOptions, words);
  if (!read) return pass(std::move(read.error()));
  SprioOptions options;
  for (const GivenOption& given : read->options) {
    if (Result<void> done = set(options, given); !done) return pass(std::move(done.error()));
  }
  if (!read->operands.empty()) {
    return fail(Code::bad_value, fmt::format("Unrecognized option: {}", read->operands.front()));
  }
  return options;
}

wire::ListPriorities sprio_request(const SprioOptions& options) {
  wire::ListPriorities ask;
  for (const wire::JobName& job : options.jobs) *ask.add_ids() = job;
  for (const std::string& user : options.users) ask.add_users(user);
  for (const std::string& partition : options.partitions) ask.add_partitions(partition);
  return ask;
}

Result<std::string> sprio_text(const SprioOptions& options, const wire::PrioritiesReply& reply) {
  const std::span<const Field<SprioRow>> table = kSprioFields;
  FieldNames names = names_of(table, "Invalid job format specification");
  const Result<Format> format =
      parse_format(options.format.value_or(default_format(options, reply)), names);
  if (!format) return pass(format.error());
  const Result<std::vector<SortKey>> keys = parse_sort(options.sort.value_or("i"), names);
  if (!keys) return pass(keys.error());
  const Shown shown;
  std::string out;
  if (options.clusters) out += fmt::format("CLUSTER: {}\n", reply.cluster_name());
  if (options.header) append_header(table, *format, out);
  if (options.weights) {
    append_row(table, *format, SprioRow{&reply, nullptr}, shown, out);
    return out;
  }
  std::vector<SprioRow> rows;
  for (const wire::JobPriority& job : reply.jobs()) rows.push_back({&reply, &job});
  sort_rows<SprioRow>(table, *keys, shown, rows, false);
  for (const SprioRow& row : rows) append_row(table, *format, row, shown, out);
  return out;
}

std::string_view sprio_help() {
  return R"(Usage: sprio [OPTIONS]
  -h, --noheader           no line of column names
      --help               this text
  -j, --jobs=list          these jobs
  -l, --long               all factors, also those without a weight
  -M, --clusters=name      this cluster's name
  -n, --norm               factors from 0 to 1 instead of their part of the priority
  -o, --format=format      columns:
        %a %A age                   %p %P partition      %i job id
        %b %B association           %q %Q QOS            %r partition's name
        %f %F fair share            %s %S site           %u user    %o account
        %j %J size                  %t %T TRES           %n QOS's name
        %y %Y priority              %N nice              %c cluster
        (small letters: from 0 to 1; capital letters: weighted)
  -p, --partition=list     these partitions
  -S, --sort=fields        sorted by these letters, with - the largest first
  -u, --user=list          these users
      --usage              brief usage
  -V, --version            version and exit
  -w, --weights            the weight of each factor
)";
}

}  // namespace berth::command
