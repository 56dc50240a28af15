// The table of launchers and of commands that only run another command.
#include "script/launcher.h"

#include <algorithm>
#include <array>

namespace berth::script {
namespace {

/// A command that runs the rest of its line.
struct Prefix {
  std::string_view name;
  std::string_view with_value;  // short options that take the next word
  int operands;                 // words of its own before the command
};

constexpr std::array<Prefix, 16> kPrefixes = {{
    {"time", "fo", 0},
    {"nohup", "", 0},
    {"exec", "a", 0},
    {"command", "", 0},
    {"builtin", "", 0},
    {"nice", "n", 0},
    {"ionice", "cn", 0},
    {"stdbuf", "ioe", 0},
    {"setsid", "", 0},
    {"unbuffer", "", 0},
    {"env", "uCS", 0},
    {"timeout", "sk", 1},
    {"numactl", "ipNmCPST", 0},
    {"taskset", "", 1},
    {"chrt", "", 1},
    {"catchsegv", "", 0},
}};

/// Long options of prefixes that take the next word when they have no '='.
bool long_takes_value(std::string_view option) {
  constexpr std::array<std::string_view, 13> known = {
      "--signal",    "--kill-after",  "--cpunodebind", "--membind", "--interleave",
      "--preferred", "--physcpubind", "--unset",       "--chdir",   "--adjustment",
      "--output",    "--format",      "--class"};
  return std::find(known.begin(), known.end(), option) != known.end();
}

bool is_assignment(std::string_view word) {
  const std::size_t eq = word.find('=');
  if (eq == std::string_view::npos || eq == 0) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(eq),
                     [](char c) {
                       return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z');
                     }) &&
         !(word[0] >= '0' && word[0] <= '9');
}

/// Index of the first word after the prefix at `at` and its own options.
std::size_t skip_prefix(std::span<const std::string> words, std::size_t at, const Prefix& prefix,
                        Launch& launch) {
  std::size_t i = at + 1;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (prefix.name == "env" && is_assignment(word)) {
      const std::size_t eq = word.find('=');
      launch.assignments[word.substr(0, eq)] = word.substr(eq + 1);
      continue;
    }
    if (word.size() < 2 || word[0] != '-') break;
    if (word.starts_with("--")) {
      if (long_takes_value(word)) ++i;
    } else if (word.size() == 2 && prefix.with_value.find(word[1]) != std::string_view::npos) {
      ++i;
    }
  }
  return std::min(words.size(), i + static_cast<std::size_t>(prefix.operands));
}

bool is_python(std::string_view name) {
  if (!name.starts_with("python")) return false;
  return name.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

Launcher launcher_of_module(std::string_view module) {
  if (module.starts_with("torch.distributed.")) return Launcher::torch_distributed;
  if (module == "deepspeed" || module.starts_with("deepspeed.launcher")) return Launcher::deepspeed;
  if (module.starts_with("accelerate.commands.launch")) return Launcher::accelerate;
  return Launcher::none;
}

/// python [options] -m MODULE …
void recognise_python(std::span<const std::string> words, Launch& launch) {
  for (std::size_t i = launch.at + 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-') return;
    if (word == "-c") return;
    std::string_view module;
    std::size_t next = i + 1;
    if (word == "-m") {
      if (next >= words.size()) return;
      module = words[next++];
    } else if (word.starts_with("-m")) {
      module = std::string_view(word).substr(2);
    } else if (word == "-W" || word == "-X") {
      ++i;
      continue;
    } else {
      continue;
    }
    launch.launcher = launcher_of_module(module);
    launch.arguments = next;
    return;
  }
}

Launcher launcher_of_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Launcher>, 15> table = {{
      {"srun", Launcher::srun},
      {"mpirun", Launcher::mpirun},
      {"mpiexec", Launcher::mpirun},
      {"mpiexec.hydra", Launcher::mpirun},
      {"mpirun.openmpi", Launcher::mpirun},
      {"mpiexec.openmpi", Launcher::mpirun},
      {"mpirun.mpich", Launcher::mpirun},
      {"mpiexec.mpich", Launcher::mpirun},
      {"orterun", Launcher::mpirun},
      {"prterun", Launcher::mpirun},
      {"torchrun", Launcher::torchrun},
      {"torch.distributed.run", Launcher::torch_distributed},
      {"deepspeed", Launcher::deepspeed},
      {"salloc", Launcher::salloc},
      {"sbatch", Launcher::sbatch},
  }};
  for (const auto& [known, launcher] : table) {
    if (known == name) return launcher;
  }
  return Launcher::none;
}

}  // namespace

std::string_view launcher_name(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "";
    case Launcher::srun:
      return "srun";
    case Launcher::mpirun:
      return "mpirun";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::torch_distributed:
      return "torch.distributed";
    case Launcher::deepspeed:
      return "deepspeed";
    case Launcher::accelerate:
      return "accelerate";
    case Launcher::salloc:
      return "salloc";
    case Launcher::sbatch:
      return "sbatch";
  }
  return "";
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Launch recognise(std::span<const std::string> words) {
  Launch launch;
  while (launch.at < words.size()) {
    const std::string_view name = base_name(words[launch.at]);
    const auto* prefix = std::find_if(kPrefixes.begin(), kPrefixes.end(),
                                      [&](const Prefix& p) { return p.name == name; });
    if (prefix == kPrefixes.end()) break;
    const std::size_t next = skip_prefix(words, launch.at, *prefix, launch);
    if (next >= words.size()) break;  // `time` alone: the prefix is the command
    launch.at = next;
  }
  launch.arguments = std::min(words.size(), launch.at + 1);
  if (launch.at >= words.size()) return launch;
  const std::string_view name = base_name(words[launch.at]);
  launch.launcher = launcher_of_name(name);
  if (is_python(name)) recognise_python(words, launch);
  if (name == "accelerate" && launch.arguments < words.size() &&
      words[launch.arguments] == "launch") {
    launch.launcher = Launcher::accelerate;
    ++launch.arguments;
  }
  return launch;
}

}  // namespace berth::script
