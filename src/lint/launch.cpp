// Reads the few options of foreign launchers that decide how many processes there will be.
#include "lint/launch.h"

#include <algorithm>
#include <array>

#include "script/launcher.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::lint {
namespace {

constexpr std::uint64_t kMaxProcesses = 1'000'000;

std::optional<std::uint32_t> number(std::string_view text) {
  const auto value = text::parse_number(text, kMaxProcesses);
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

/// The value of `name` at position `at` ("--name=value" or "--name value"), with - and _ alike.
std::optional<std::string> value_at(std::span<const std::string> words, std::size_t at,
                                    std::string_view name) {
  std::string word = words[at];
  const std::size_t equals = word.find('=');
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  word.resize(std::min(equals, word.size()));
  std::ranges::replace(word, '_', '-');
  if (word != name) return std::nullopt;
  if (equals != std::string::npos) return value;
  return at + 1 < words.size() ? std::optional(words[at + 1]) : std::nullopt;
}

void read_torch_options(std::span<const std::string> words, TorchLaunch& launch) {
  std::size_t at = 0;
  while (at < words.size() && words[at].starts_with('-')) {
    if (const auto value = value_at(words, at, "--nproc-per-node")) {
      launch.per_node = number(*value);
      launch.per_node_is_gpus = *value == "gpu" || *value == "auto";
    } else if (const auto range = value_at(words, at, "--nnodes")) {
      launch.nodes = number(std::string_view(*range).substr(range->rfind(':') + 1));
    } else if (value_at(words, at, "--node-rank")) {
      launch.node_rank_given = true;
    }
    const bool attached = words[at].find('=') != std::string::npos;
    constexpr std::array<std::string_view, 5> kFlags = {"--standalone", "--no-python",
                                                        "--no_python", "--use-env", "--use_env"};
    const bool flag = std::ranges::find(kFlags, words[at]) != kFlags.end() || words[at] == "-m" ||
                      words[at] == "--module";
    at += attached || flag ? 1 : 2;
  }
  if (at < words.size())
    launch.program.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
}

/// A program that runs another one: a container, an environment, a profiler.
struct Wrapper {
  std::string_view name;
  std::string_view command;     // its subcommand
  std::string_view with_value;  // short options that take the next word
  std::size_t operands;         // words before the program: the image
};

constexpr std::array<Wrapper, 6> kWrappers = {{
    {"singularity", "exec", "BHSWo", 1},
    {"singularity", "run", "BHSWo", 1},
    {"apptainer", "exec", "BHSWo", 1},
    {"apptainer", "run", "BHSWo", 1},
    {"conda", "run", "np", 0},
    {"nsys", "profile", "bcdefgostwxy", 0},
}};

/// Where the program begins that a wrapper at the start of `words` runs; 0: there is none.
std::size_t wrapped_at(std::span<const std::string> words) {
  constexpr std::array<std::string_view, 14> kWithValue = {
      "--bind",    "--env",  "--env-file", "--home", "--pwd",    "--workdir", "--overlay",
      "--scratch", "--name", "--prefix",   "--cwd",  "--output", "--trace",   "--sample"};
  if (words.size() < 3) return 0;
  const auto* wrapper = std::ranges::find_if(kWrappers, [&](const Wrapper& each) {
    return each.name == script::base_name(words[0]) && each.command == words[1];
  });
  if (wrapper == kWrappers.end()) return 0;
  std::size_t at = 2;
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    const std::string& word = words[at];
    const bool is_short =
        word.size() == 2 && wrapper->with_value.find(word[1]) != std::string::npos;
    if (is_short || std::ranges::find(kWithValue, word) != kWithValue.end()) ++at;
  }
  at += wrapper->operands;
  return at < words.size() ? at : 0;
}

bool is_shell(std::string_view program) {
  const std::string_view name = script::base_name(program);
  return name == "bash" || name == "sh" || name == "zsh";
}

std::optional<Result<place::BindWords>> bind_in(std::span<const std::string> words) {
  for (std::size_t at = 0; at + 1 < words.size(); ++at) {
    if (script::base_name(words[at]) == "berth" && words[at + 1] == "bind") {
      return place::read_bind_words(words.subspan(at + 2));
    }
  }
  return std::nullopt;
}

}  // namespace

bool is_python(std::string_view program) {
  const std::string_view name = script::base_name(program);
  return name == "python" || name == "python3" || name.starts_with("python3.");
}

bool deepspeed_reaches_hosts(std::span<const std::string> words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    return name == "--hostfile" || name == "-H" || name == "--num_nodes";
  });
}

std::vector<std::string> bare_program(std::span<const std::string> words) {
  words = words.subspan(std::min(script::recognise(words).at, words.size()));
  for (std::size_t inner = 0; (inner = wrapped_at(words)) > 0;) {
    words = words.subspan(inner);
    words = words.subspan(std::min(script::recognise(words).at, words.size()));
  }
  if (words.empty()) return {};
  if (!is_shell(words.front()) || words.size() < 3 || !words[1].starts_with('-') ||
      !words[1].ends_with('c')) {
    return {words.begin(), words.end()};
  }
  std::string line = words[2];
  std::ranges::replace_if(line, [](char c) { return c == '\t' || c == '\n' || c == '\\'; }, ' ');
  std::vector<std::string> inner;
  for (const std::string_view word : text::split(line, ' ')) {
    if (!word.empty()) inner.emplace_back(word);
  }
  const std::size_t at = std::min(script::recognise(inner).at, inner.size());
  inner.erase(inner.begin(), inner.begin() + static_cast<std::ptrdiff_t>(at));
  return inner;
}

std::optional<TorchLaunch> read_torch(std::span<const std::string> words) {
  const std::vector<std::string> program = bare_program(words);
  const script::Launch found = script::recognise(program);
  TorchLaunch launch;
  if (found.launcher == script::Launcher::torchrun) {
    launch.name = "torchrun";
  } else if (found.launcher == script::Launcher::torch_distributed) {
    launch.name = is_python(program[0]) && found.arguments > 0
                      ? "python -m " + program[found.arguments - 1]
                      : program[0];
  } else {
    return std::nullopt;
  }
  read_torch_options(std::span(program).subspan(found.arguments), launch);
  return launch;
}

std::optional<Result<place::BindWords>> read_berth_bind(std::span<const std::string> words) {
  if (auto found = bind_in(words)) return found;
  const auto shell = std::ranges::find_if(words, is_shell);
  if (shell == words.end()) return std::nullopt;
  return bind_in(bare_program({shell, words.end()}));
}

std::uint32_t TorchLaunch::processes(std::size_t gpus_seen) const {
  if (per_node_is_gpus) return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(gpus_seen));
  return per_node.value_or(1);
}

std::optional<std::uint32_t> mpirun_processes(std::span<const std::string> words) {
  for (std::size_t at = 1; at < words.size(); ++at) {
    for (const std::string_view name : {"-n", "-np", "--np", "--n", "-c"}) {
      if (const auto value = value_at(words, at, name)) return number(*value);
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> mpirun_per_node(std::span<const std::string> words) {
  for (std::size_t at = 1; at < words.size(); ++at) {
    for (const std::string_view name : {"-N", "-npernode", "--npernode", "-ppn", "--ppn"}) {
      if (const auto value = value_at(words, at, name)) return number(*value);
    }
    const auto map = value_at(words, at, "--map-by");
    if (map && map->starts_with("ppr:") && map->ends_with(":node")) {
      return number(std::string_view(*map).substr(4, map->size() - 9));
    }
  }
  return std::nullopt;
}

std::vector<std::string> mpirun_program(std::span<const std::string> words) {
  // Options of Open MPI, PRRTE and Hydra that take two values, and those that take none.
  constexpr std::array<std::string_view, 6> kTwo = {"-mca",  "--mca", "--prtemca",
                                                    "-genv", "-env",  "--gmca"};
  constexpr std::array<std::string_view, 11> kNone = {
      "--oversubscribe", "--allow-run-as-root", "--report-bindings", "--display-map", "-v", "-q",
      "--tag-output",    "--use-hwthread-cpus", "-bynode",           "--bynode",      "-l"};
  std::size_t at = 1;
  while (at < words.size() && words[at].starts_with('-')) {
    const auto is = [&](const auto& list) {
      return std::ranges::find(list, words[at]) != list.end();
    };
    const bool attached = words[at].starts_with("--") && words[at].find('=') != std::string::npos;
    at += is(kTwo) ? 3 : is(kNone) || attached ? 1 : 2;
  }
  if (at >= words.size()) return {};
  return {words.begin() + static_cast<std::ptrdiff_t>(at), words.end()};
}

}  // namespace berth::lint
