// A cluster that `berth up` makes: where its files are and whether it runs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace berth::command {

struct ClusterHome {
  std::string state;  // D, a real path
  std::string run;    // R; depends on the path of slurm.conf only

  [[nodiscard]] std::string conf() const { return state + "/slurm.conf"; }
  [[nodiscard]] std::string gres_conf() const { return state + "/gres.conf"; }
  /// Holds the path of the slurm.conf that was copied: the one jobs are told.
  [[nodiscard]] std::string copied_from_file() const { return state + "/copied-from"; }
  [[nodiscard]] std::string store() const { return state + "/state"; }
  [[nodiscard]] std::string spool() const { return state + "/spool"; }
  [[nodiscard]] std::string controller_log() const { return state + "/log/controller.log"; }
  [[nodiscard]] std::string node_log() const { return state + "/log/node.log"; }

  /// Of the process that holds the pid file, if one does.
  [[nodiscard]] std::optional<pid_t> controller() const;
  [[nodiscard]] std::optional<pid_t> agent() const;
  [[nodiscard]] bool has_conf() const;
};

/// The home in `directory` ("" = the default one); nothing is made.
ClusterHome find_home(const std::string& directory);
/// Makes D and what is in it, and checks that it can be written to.
Result<ClusterHome> make_home(const std::string& directory);

/// One `berth up` or `berth down` at a time works on a home.
Result<Fd> lock_home(const ClusterHome& home);

/// Writes a file as a whole: a reader sees the old text or the new one.
Result<void> replace_file(const std::string& path, std::string_view text);

}  // namespace berth::command
