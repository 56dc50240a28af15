// berthctld's command line.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::controller {

struct Options {
  std::string conf;   // slurm.conf
  std::string state;  // "" = StateSaveLocation
  std::string run;    // "" = by net/paths.h
  std::string log;    // "" = SlurmctldLogFile, else standard error
  bool foreground = false;
  bool emulate = false;
  bool version = false;
  bool help = false;
  // On a store that no controller uses, instead of starting (offline.h):
  bool check = false;
  bool accept_loss = false;
  std::string restore;  // a backup
  // Also while one does:
  std::string backup;  // a file to make
  [[nodiscard]] bool offline() const {
    return check || accept_loss || !restore.empty() || !backup.empty();
  }
};

Result<Options> read_options(std::span<const std::string> words);

extern const std::string_view kUsage;

}  // namespace berth::controller
