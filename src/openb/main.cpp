// bench-openb: how well a placement policy fills the openb cluster (docs/packing.md).
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <expected>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "openb/experiment.h"

namespace berth::openb {
namespace {

constexpr std::string_view kUsage =
    "usage: bench-openb --nodes FILE --pods FILE [--seeds 42-51] [--policy "
    "keep-whole|best-fit|fgd]\n"
    "                   [--summary]\n"
    "Prints seed,arrived_percent,allocated_percent as CSV; with --summary the means over all "
    "seeds.\n";
constexpr std::uint64_t kMostSeeds = 10'000;

struct Options {
  std::string nodes;
  std::string pods;
  std::uint64_t first_seed = 42;
  std::uint64_t last_seed = 51;
  Policy policy = Policy::keep_whole;
  bool summary = false;
};

std::unexpected<std::string> bad(std::string text) {
  return std::unexpected(std::move(text));
}

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::expected<void, std::string> read_seeds(std::string_view text, Options& out) {
  const std::size_t dash = text.find('-');
  const auto first = whole(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole(text.substr(dash + 1));
  if (!first || !last || *last < *first || *last - *first >= kMostSeeds) {
    return bad(fmt::format("--seeds {}: a seed or a range such as 42-51 is expected", text));
  }
  out.first_seed = *first;
  out.last_seed = *last;
  return {};
}

std::expected<void, std::string> read_policy(std::string_view text, Options& out) {
  if (text == "keep-whole") {
    out.policy = Policy::keep_whole;
  } else if (text == "best-fit") {
    out.policy = Policy::best_fit;
  } else if (text == "fgd") {
    out.policy = Policy::fgd;
  } else {
    return bad(fmt::format("--policy {}: keep-whole, best-fit or fgd is expected", text));
  }
  return {};
}

std::expected<Options, std::string> read_options(const std::vector<std::string_view>& words) {
  Options out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view name = words[i];
    if (name == "--summary") {
      out.summary = true;
      continue;
    }
    std::optional<std::string_view> value;
    if (const std::size_t sign = name.find('='); sign != std::string_view::npos) {
      value = name.substr(sign + 1);
      name = name.substr(0, sign);
    }
    if (name != "--nodes" && name != "--pods" && name != "--seeds" && name != "--policy") {
      return bad(fmt::format("{}: unknown option", words[i]));
    }
    if (!value) {
      if (i + 1 >= words.size()) return bad(fmt::format("{} needs a value", name));
      value = words[++i];
    }
    std::expected<void, std::string> read;
    if (name == "--nodes") out.nodes = *value;
    if (name == "--pods") out.pods = *value;
    if (name == "--seeds") read = read_seeds(*value, out);
    if (name == "--policy") read = read_policy(*value, out);
    if (!read) return bad(read.error());
  }
  if (out.nodes.empty() || out.pods.empty()) return bad("--nodes and --pods are needed");
  return out;
}

std::expected<std::string, std::string> contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) return bad(fmt::format("{}: cannot be read", path));
  if (text.empty()) return bad(fmt::format("{}: cannot be read, or is empty", path));
  return text;
}

int complain(std::string_view text) {
  fmt::print(stderr, "bench-openb: error: {}\n", text);
  return 1;
}

void print_curve(std::uint64_t seed, const Curve& curve) {
  std::string lines;
  for (std::size_t p = 1; p <= kLastPercent; ++p) {
    lines += fmt::format("{},{},{:.4f}\n", seed, p, curve.allocated[p]);
  }
  fmt::print("{}", lines);
  std::fflush(stdout);
}

int run(const Options& options) {
  const auto nodes = contents(options.nodes);
  if (!nodes) return complain(nodes.error());
  const auto pods = contents(options.pods);
  if (!pods) return complain(pods.error());
  const auto workload = read_workload(*nodes, *pods, options.nodes, options.pods);
  if (!workload) return complain(workload.error().what());
  Experiment experiment(*workload, options.policy);
  Curve sum;
  if (!options.summary) fmt::print("seed,arrived_percent,allocated_percent\n");
  for (std::uint64_t seed = options.first_seed; seed <= options.last_seed; ++seed) {
    const Curve curve = experiment.run(seed);
    if (!options.summary) print_curve(seed, curve);
    for (std::size_t p = 1; p <= kLastPercent; ++p) sum.allocated[p] += curve.allocated[p];
  }
  if (!options.summary) return 0;
  const auto seeds = static_cast<double>(options.last_seed - options.first_seed + 1);
  fmt::print("arrived_percent,mean_allocated_percent\n");
  for (std::size_t p : {80U, 90U, 95U, 100U, 105U, 110U, 120U, 130U}) {
    fmt::print("{},{:.2f}\n", p, sum.allocated[p] / seeds);
  }
  return 0;
}

}  // namespace
}  // namespace berth::openb

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  for (std::string_view word : words) {
    if (word != "--help" && word != "-h") continue;
    fmt::print("{}", berth::openb::kUsage);
    return 0;
  }
  const auto options = berth::openb::read_options(words);
  if (!options) {
    berth::openb::complain(options.error());
    fmt::print(stderr, "{}", berth::openb::kUsage);
    return 2;
  }
  return berth::openb::run(*options);
}
