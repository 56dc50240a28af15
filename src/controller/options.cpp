#include "controller/options.h"

#include <fmt/format.h>

#include <optional>

namespace berth::controller {

const std::string_view kUsage = R"(usage: berthctld [options]

The controller of a cluster: takes jobs, decides where and when they run, remembers them.

  -f FILE            the slurm.conf to use; default: SLURM_CONF, else /etc/slurm/slurm.conf
  --state DIR        where jobs are stored; default: StateSaveLocation
  --run DIR          where its socket and pid file are; default: by the path of slurm.conf
  --log FILE         append the log to FILE; default: SlurmctldLogFile, in the foreground stderr
  -D, --foreground   stay in the foreground
  --emulate          the nodes are pretended ones, all of them on this machine
  --check            read all that is stored, say what is wrong with it, and stop
  --backup FILE      copy all that is stored into FILE, also while a controller runs, and stop
  --restore FILE     put a backup in the place of what is stored, and stop
  --accept-loss      take what is stored as it is although more was acknowledged, and stop
  -V, --version      print the version and stop
  -h, --help         this text
)";

Result<Options> read_options(std::span<const std::string> words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    std::optional<std::string> attached;
    if (word.starts_with("--")) {
      if (const std::size_t eq = word.find('='); eq != std::string::npos) {
        attached = word.substr(eq + 1);
        word.resize(eq);
      }
    }
    std::string* text = nullptr;
    if (word == "-f" || word == "--conf") text = &options.conf;
    if (word == "--state") text = &options.state;
    if (word == "--run") text = &options.run;
    if (word == "--log" || word == "-L") text = &options.log;
    if (word == "--backup") text = &options.backup;
    if (word == "--restore") text = &options.restore;
    if (text != nullptr) {
      if (!attached && i + 1 < words.size()) attached = words[++i];
      if (!attached || attached->empty()) {
        return fail(Code::option_syntax, fmt::format("{} needs a value", word));
      }
      *text = *attached;
      continue;
    }
    if (attached) return fail(Code::option_syntax, fmt::format("unknown option {}", words[i]));
    if (word == "-D" || word == "--foreground") {
      options.foreground = true;
    } else if (word == "--check") {
      options.check = true;
    } else if (word == "--accept-loss") {
      options.accept_loss = true;
    } else if (word == "--emulate") {
      options.emulate = true;
    } else if (word == "-V" || word == "--version") {
      options.version = true;
    } else if (word == "-h" || word == "--help") {
      options.help = true;
    } else {
      return fail(Code::option_syntax, fmt::format("unknown option {}", words[i]),
                  "berthctld --help lists them");
    }
  }
  return options;
}

}  // namespace berth::controller
