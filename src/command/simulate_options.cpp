#include "command/simulate_options.h"

#include <fmt/format.h>

#include "command/option_words.h"
#include "simulate/fields.h"
#include "text/number.h"

namespace berth::command {
namespace {

constexpr std::string_view kSimulateUsage =
    R"(usage: berth simulate --conf DIR --trace FILE [options]

Runs the jobs of a trace on a cluster in virtual time, with the scheduler of the controller, and
says how long they waited and how well the cluster was used.

The cluster
  --conf DIR            slurm.conf and the files beside it
  --emulate SPEC        a pretended one: 4x8:a100 is 4 nodes with 8 A100 each
  --nodes FILE          the nodes of the openb trace (CSV)
  --set KEY=VALUE       a key of slurm.conf said otherwise; may be given several times

The jobs
  --trace FILE          SWF, the output of sacct -P, or pods of openb (CSV); - is standard input
  --format NAME         swf, sacct or openb; default: what the file looks like
  --synthetic WHAT      made-up jobs instead: jobs=100000,load=0.9[,users=50][,gpus=64]
  --seed N              of the made-up jobs; default 1
  --jobs N              only the first N
  --limit-factor X      jobs without a time limit get X times their run time
  --priorities          those of the trace (sacct's Priority) instead of the configuration's

What if: a second configuration, side by side
  --against DIR         another configuration
  --against-set KEY=VALUE   the first one with a key of slurm.conf said otherwise

The answer
  --json FILE           all figures; - is standard output instead of the text
  --html FILE           one page with plots
  -h, --help            this text
)";

constexpr auto kSimulateTable = std::to_array<OptionRow>({
    {"conf", 0, Takes::value},
    {"emulate", 0, Takes::value},
    {"nodes", 0, Takes::value},
    {"set", 0, Takes::value},
    {"trace", 0, Takes::value},
    {"format", 0, Takes::value},
    {"synthetic", 0, Takes::value},
    {"seed", 0, Takes::value},
    {"jobs", 0, Takes::value},
    {"limit-factor", 0, Takes::value},
    {"priorities", 0, Takes::nothing},
    {"against", 0, Takes::value},
    {"against-set", 0, Takes::value},
    {"json", 0, Takes::value},
    {"html", 0, Takes::value},
    {"help", 'h', Takes::nothing},
});

std::unexpected<Error> wrong_simulate(std::string text) {
  return fail(Code::option_syntax, std::move(text), "berth simulate --help shows the options");
}

class SimulateReader {
 public:
  Result<void> take(std::string_view name, const std::string& value) {
    if (name == "help") out.help = true;
    if (name == "priorities") out.priorities = true;
    if (name == "conf") out.cluster.conf = value;
    if (name == "emulate") out.cluster.emulate = value;
    if (name == "nodes") out.cluster.nodes = value;
    if (name == "trace") out.trace = value;
    if (name == "json") out.json = value;
    if (name == "html") out.html = value;
    if (name == "against") against().conf = value;
    if (name == "set" || name == "against-set") {
      auto one = simulate::read_override(value);
      if (!one) return pass(std::move(one.error()));
      (name == "set" ? out.cluster : against()).overrides.push_back(std::move(*one));
    }
    if (name == "format") {
      out.format = simulate::format_of(value);
      if (!out.format)
        return wrong_simulate(fmt::format("--format {}: swf, sacct or openb", value));
    }
    if (name == "synthetic") {
      auto what = simulate::read_synthetic(value);
      if (!what) return pass(std::move(what.error()));
      out.synthetic = *what;
    }
    if (name == "limit-factor") {
      const auto factor = simulate::real_of(value);
      if (!factor || *factor < 1 || *factor > 1000) {
        return wrong_simulate(fmt::format("--limit-factor {}: a number from 1 to 1000", value));
      }
      out.limit_factor = *factor;
    }
    if (name == "seed" || name == "jobs") {
      const auto number = text::parse_number(value);
      if (!number) return wrong_simulate(fmt::format("--{} {}: a number", name, value));
      (name == "seed" ? out.seed : out.most_jobs) = *number;
    }
    return {};
  }

  SimulateOptions out;

 private:
  SimulatedCluster& against() {
    if (!out.against) out.against.emplace();
    return *out.against;
  }
};

Result<void> check(const SimulateOptions& options) {
  const SimulatedCluster& cluster = options.cluster;
  const int named = (cluster.conf.empty() ? 0 : 1) + (cluster.emulate.empty() ? 0 : 1) +
                    (cluster.nodes.empty() ? 0 : 1);
  if (named != 1)
    return wrong_simulate("the cluster is one of --conf DIR, --emulate SPEC and --nodes FILE");
  if (options.trace.empty() == !options.synthetic) {
    return wrong_simulate("the jobs are one of --trace FILE and --synthetic WHAT");
  }
  return {};
}

}  // namespace

Result<SimulateOptions> read_simulate_options(std::span<const std::string> words) {
  auto read = read_options("berth simulate", kSimulateTable, words);
  if (!read) return pass(std::move(read.error()));
  if (!read->operands.empty())
    return wrong_simulate(fmt::format("what is {}?", read->operands.front()));
  SimulateReader reader;
  for (const GivenOption& option : read->options) {
    if (option.value && option.value->empty()) {
      return wrong_simulate(fmt::format("--{} needs a value", option.row->name));
    }
    if (auto fine = reader.take(option.row->name, option.value.value_or("")); !fine) {
      return pass(std::move(fine.error()));
    }
  }
  if (reader.out.help) return std::move(reader.out);
  if (auto fine = check(reader.out); !fine) return pass(std::move(fine.error()));
  return std::move(reader.out);
}

std::string_view simulate_usage() {
  return kSimulateUsage;
}

}  // namespace berth::command
