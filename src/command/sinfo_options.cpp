#include "command/sinfo_options.h"

#include <fmt/format.h>

#include "command/option_words.h"
#include "command/show_text.h"
#include "text/hostlist.h"
#include "text/number.h"

namespace berth::command {
namespace {

constexpr OptionRow kSinfoOptions[] = {
    {"all", 'a'},
    {"cluster", 0, Takes::value},
    {"clusters", 'M', Takes::value},
    {"dead", 'd'},
    {"exact", 'e'},
    {"federation", 0},
    {"Format", 'O', Takes::value},
    {"format", 'o', Takes::value},
    {"future", 'F'},
    {"help", 0},
    {"hide", 0},
    {"iterate", 'i', Takes::value},
    {"json", 0, Takes::attached},
    {"list-reasons", 'R'},
    {"local", 0},
    {"long", 'l'},
    {"Node", 'N'},
    {"noconvert", 0},
    {"nodes", 'n', Takes::value},
    {"noheader", 'h'},
    {"partition", 'p', Takes::value},
    {"reservation", 'T'},
    {"responding", 'r'},
    {"sort", 'S', Takes::value},
    {"states", 't', Takes::value},
    {"summarize", 's'},
    {"usage", 0},
    {"verbose", 'v'},
    {"version", 'V'},
    {"yaml", 0, Takes::attached},
};

Result<void> set(SinfoOptions& to, const GivenOption& given) {
  const std::string_view name = given.row->name;
  const std::string value = given.value.value_or("");
  if (name == "all") to.hidden_too = true;
  if (name == "hide") to.hidden_too = false;
  if (name == "clusters" || name == "cluster") to.clusters = value;
  if (name == "dead") to.dead = true;
  if (name == "exact") to.exact = true;
  if (name == "future") to.future_too = true;
  if (name == "help") to.help = true;
  if (name == "usage") to.usage = true;
  if (name == "version") to.version = true;
  if (name == "verbose") to.verbose = true;
  if (name == "json") to.json = true;
  if (name == "list-reasons") to.reasons = true;
  if (name == "long") to.long_format = true;
  if (name == "Node") to.by_node = true;
  if (name == "noheader") to.header = false;
  if (name == "partition") to.partitions = list_of(value);
  if (name == "reservation") to.reservations = true;
  if (name == "responding") to.responding = true;
  if (name == "sort") to.sort = value;
  if (name == "summarize") to.summary = true;
  if (name == "format") {
    to.format = value;
    to.long_fields.reset();
  }
  if (name == "Format") {
    to.long_fields = value;
    to.format.reset();
  }
  if (name == "iterate") {
    const auto pause = text::parse_number(value, 86400);
    if (!pause || *pause == 0) {
      return fail(Code::bad_value, fmt::format("--iterate={}", value));
    }
    to.iterate_seconds = static_cast<std::uint32_t>(*pause);
  }
  if (name == "nodes") {
    Result<std::vector<std::string>> nodes = text::expand_hostlist(value);
    if (!nodes) return fail(Code::bad_value, fmt::format("'{}' invalid entry for --nodes", value));
    to.nodes = std::move(*nodes);
    to.filters_nodes = true;
  }
  if (name == "states") {
    Result<NodeStateFilter> states = parse_node_states(value);
    if (!states) return pass(std::move(states.error()));
    to.states = std::move(*states);
  }
  if (name == "yaml") return fail(Code::bad_value, "--yaml is not available", "use --json");
  return {};
}

}  // namespace

Result<SinfoOptions> parse_sinfo(std::span<const std::string> words,
                                 const request::Environment& environment) {
  Result<ReadWords> read = read_options("sinfo", kSinfoOptions, words);
  if (!read) return pass(std::move(read.error()));
  SinfoOptions options;
  const auto variable = [&](const char* name) -> const std::string* {
    const auto at = environment.find(name);
    return at == environment.end() ? nullptr : &at->second;
  };
  if (variable("SINFO_ALL") != nullptr) options.hidden_too = true;
  if (const auto* v = variable("SINFO_FORMAT")) options.format = *v;
  if (const auto* v = variable("SINFO_PARTITION")) options.partitions = list_of(*v);
  if (const auto* v = variable("SINFO_SORT")) options.sort = *v;
  if (const auto* v = variable("SLURM_CLUSTERS")) options.clusters = *v;
  for (const GivenOption& given : read->options) {
    if (Result<void> done = set(options, given); !done) return pass(std::move(done.error()));
  }
  if (!read->operands.empty()) {
    return fail(Code::bad_value, fmt::format("Unrecognized option: {}", read->operands.front()),
                "sinfo -n LIST shows nodes by name");
  }
  return options;
}

std::string_view sinfo_usage() {
  return R"(Usage: sinfo [-abdelNRrsTv] [-i seconds] [-t states] [-p partition] [-n nodes]
             [-S fields] [-o format] [-O fields] [--json]
)";
}

std::string_view sinfo_help() {
  return R"(Usage: sinfo [OPTIONS]
  -a, --all                  show all partitions (including hidden)
  -d, --dead                 show only non-responding nodes
  -e, --exact                group nodes only on exact match of configuration
      --federation           report federated information; here: this cluster
  -F, --future               report information about nodes in FUTURE state
  -h, --noheader             no headers on output
      --hide                 do not show hidden partitions
  -i, --iterate=seconds      repeat every so many seconds
      --json                 the reply as JSON
      --local                this cluster only
  -l, --long                 long output
  -M, --clusters=names       this cluster's name, or all
  -n, --nodes=NODES          report on specific nodes
      --noconvert            do not convert sizes to larger units
  -N, --Node                 one line for each node
  -o, --format=format        format specification
  -O, --Format=format        format specification by field names
  -p, --partition=PARTITION  report on specific partitions
  -r, --responding           report only responding nodes
  -R, --list-reasons         reasons why nodes are down or drained
  -s, --summarize            partition state summary
  -S, --sort=fields          comma separated list of fields to sort on
  -t, --states=node_state    comma separated list of node states to view
  -T, --reservation          show reservations
  -v, --verbose              say what is asked
  -V, --version              version and exit
Help options:
      --help                 show this help message
      --usage                brief usage
)";
}

}  // namespace berth::command
