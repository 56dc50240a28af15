// berth simulate: files in, a report out; what is simulated is in src/simulate.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "command/files.h"
#include "command/messages.h"
#include "command/simulate_options.h"
#include "command/simulate_progress.h"
#include "command/up_conf.h"
#include "command/up_home.h"
#include "request/request.h"
#include "simulate/openb.h"
#include "simulate/render.h"
#include "simulate/world.h"
#include "site/site.h"

namespace berth::command {
namespace {

constexpr std::size_t kMostTrace = std::size_t{4} << 30;
constexpr std::size_t kMostNodesFile = std::size_t{64} << 20;
constexpr std::string_view kSimulateName = "berth simulate";

Result<std::unique_ptr<conf::FileSource>> source_of(const SimulatedCluster& cluster) {
  if (!cluster.conf.empty()) {
    std::filesystem::path directory = cluster.conf;
    if (!is_directory(cluster.conf)) directory = directory.parent_path();
    if (auto why = why_unreadable((directory / "slurm.conf").string())) {
      return pass(std::move(*why));
    }
    return std::make_unique<conf::DirectorySource>(directory);
  }
  if (!cluster.nodes.empty()) {
    const auto text = read_file(cluster.nodes, kMostNodesFile);
    if (!text) return pass(text.error());
    auto files = simulate::read_openb_nodes(*text, cluster.nodes);
    if (!files) return pass(std::move(files.error()));
    return std::make_unique<conf::MemorySource>(std::move(*files));
  }
  auto site = site::from_emulate_spec(cluster.emulate);
  if (!site) return pass(std::move(site.error()));
  // The same files that berth up would write.
  ConfTexts texts = write_conf(site->cluster, cluster.emulate, "root", "localhost", true);
  conf::MemorySource::Files files{{"slurm.conf", std::move(texts.slurm)}};
  if (!texts.gres.empty()) files["gres.conf"] = std::move(texts.gres);
  return std::make_unique<conf::MemorySource>(std::move(files));
}

std::string label_of(const SimulatedCluster& cluster, const SimulatedCluster* than) {
  std::string out;
  if (than != nullptr && cluster.conf.empty()) {
    for (const simulate::Override& one : cluster.overrides) {
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", one.key, one.value);
    }
    return out;
  }
  out = !cluster.conf.empty()      ? cluster.conf
        : !cluster.emulate.empty() ? cluster.emulate
                                   : cluster.nodes;
  for (const simulate::Override& one : cluster.overrides) {
    out += fmt::format(" {}={}", one.key, one.value);
  }
  return out;
}

Result<simulate::Setup> setup_of(const SimulatedCluster& cluster, const std::string& label) {
  auto source = source_of(cluster);
  if (!source) return pass(std::move(source.error()));
  return simulate::read_setup(**source, cluster.overrides, label);
}

Result<std::vector<simulate::Setup>> setups_of(const SimulateOptions& options) {
  std::vector<simulate::Setup> out;
  auto first = setup_of(options.cluster, label_of(options.cluster, nullptr));
  if (!first) return pass(std::move(first.error()));
  out.push_back(std::move(*first));
  if (options.against) {
    SimulatedCluster other = options.cluster;
    if (options.against->named()) {
      other = *options.against;
    } else {
      other.overrides.insert(other.overrides.end(), options.against->overrides.begin(),
                             options.against->overrides.end());
    }
    auto second = setup_of(other, label_of(*options.against, &options.cluster));
    if (!second) return pass(std::move(second.error()));
    out.push_back(std::move(*second));
  }
  return out;
}

Result<simulate::Trace> trace_of(const SimulateOptions& options, const cluster::Cluster& cluster) {
  Result<simulate::Trace> trace = simulate::Trace{};
  if (options.synthetic) {
    trace = simulate::synthesize(*options.synthetic, cluster, options.seed);
  } else {
    const auto text = read_file(options.trace, kMostTrace);
    if (!text) return pass(text.error());
    trace = simulate::read_trace(*text, options.trace == "-" ? "standard input" : options.trace,
                                 options.format);
  }
  if (trace && options.most_jobs > 0 && trace->jobs.size() > options.most_jobs) {
    trace->notes.push_back(
        fmt::format("only the first {} of {} jobs", options.most_jobs, trace->jobs.size()));
    trace->jobs.resize(options.most_jobs);
  }
  return trace;
}

Result<simulate::Report> report_of(const SimulateOptions& options) {
  auto setups = setups_of(options);
  if (!setups) return pass(std::move(setups.error()));
  auto trace = trace_of(options, setups->front().cluster);
  if (!trace) return pass(std::move(trace.error()));
  simulate::Report report;
  report.trace = trace->name;
  report.format = trace->format;
  report.lines = trace->lines;
  report.skipped = trace->skipped;
  report.skipped_first = trace->skipped_first;
  report.notes = trace->notes;
  for (const simulate::Setup& setup : *setups) {
    ProgressLine line(setup.label);
    simulate::HowToRun how;
    how.keep_priorities = options.priorities;
    how.limit_factor = options.limit_factor;
    how.tell = [&](const simulate::Progress& progress) { line.show(progress); };
    report.runs.push_back(simulate::run(setup, *trace, how));
    line.clear();
    std::vector<std::string>& notes = report.runs.back().notes;
    notes.insert(notes.begin(), setup.notes.begin(), setup.notes.end());
  }
  return report;
}

Result<void> put(const std::string& path, const std::string& text) {
  if (path != "-") return replace_file(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return fail(Code::io, "cannot write the answer");
  }
  return {};
}

}  // namespace

int run_simulate(std::span<const std::string> words, const request::Environment& /*environment*/) {
  const auto options = read_simulate_options(words);
  if (!options) return print_error(options.error(), kSimulateName);
  if (options->help) {
    fmt::print("{}", simulate_usage());
    return 0;
  }
  const auto report = report_of(*options);
  if (!report) return print_error(report.error(), kSimulateName);
  if (options->json != "-") {
    if (auto done = put("-", simulate::render_text(*report)); !done) {
      return print_error(done.error(), kSimulateName);
    }
  }
  if (!options->json.empty()) {
    if (auto done = put(options->json, simulate::render_json(*report)); !done) {
      return print_error(done.error(), kSimulateName);
    }
  }
  if (!options->html.empty()) {
    if (auto done = put(options->html, simulate::render_html(*report)); !done) {
      return print_error(done.error(), kSimulateName);
    }
  }
  return 0;
}

}  // namespace berth::command
