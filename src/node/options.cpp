// What options.h promises.
#include "node/options.h"

#include <fmt/format.h>

#include <array>

namespace berth::node {
namespace {

struct Valued {
  std::string_view brief;
  std::string_view name;
  std::string Options::* where;
};
constexpr std::array kValued = {
    Valued{"-f", "--conf", &Options::conf}, Valued{"", "--spool", &Options::spool},
    Valued{"", "--run", &Options::run},     Valued{"", "--log", &Options::log},
    Valued{"-N", "--name", &Options::name}, Valued{"", "--nodes", &Options::nodes},
    Valued{"", "--join", &Options::join},   Valued{"", "--home", &Options::home},
};
struct Flag {
  std::string_view brief;
  std::string_view name;
  bool Options::* where;
};
constexpr std::array kFlags = {
    Flag{"-D", "--foreground", &Options::foreground}, Flag{"", "--emulate", &Options::emulate},
    Flag{"-C", "", &Options::print_hardware},         Flag{"-G", "", &Options::print_gres},
    Flag{"-V", "--version", &Options::version},       Flag{"-h", "--help", &Options::help},
};

}  // namespace

Result<Options> read_options(std::span<const std::string> words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string_view name = std::string_view(word).substr(0, equals);
    bool known = false;
    for (const Flag& flag : kFlags) {
      if (equals != std::string::npos || name.empty()) continue;
      if (name != flag.name && name != flag.brief) continue;
      options.*flag.where = known = true;
    }
    for (const Valued& valued : kValued) {
      if (name.empty() || (name != valued.name && name != valued.brief)) continue;
      known = true;
      if (equals != std::string::npos) {
        options.*valued.where = word.substr(equals + 1);
      } else if (i + 1 < words.size()) {
        options.*valued.where = words[++i];
      } else {
        return fail(Code::option_syntax, fmt::format("{} needs a value", word));
      }
    }
    if (!known) {
      return fail(Code::option_syntax, fmt::format("unknown option {}", word), "try berthd --help");
    }
  }
  if (!options.nodes.empty() && !options.emulate) {
    return fail(Code::conflict, "--nodes needs --emulate");
  }
  if (!options.home.empty() && (options.join.empty() || !options.conf.empty())) {
    return fail(Code::conflict, "--home goes with --join, and without -f");
  }
  if (options.emulate && (options.print_hardware || options.print_gres)) {
    return fail(Code::conflict, "-C and -G print what this machine has; --emulate pretends others");
  }
  if (!options.name.empty() && options.emulate) {
    return fail(Code::conflict, "-N names a real node; with --emulate use --nodes");
  }
  return options;
}

}  // namespace berth::node
