// A copy of everything that a controller needs to go on elsewhere, in one file (0600): the store as
// it is at one moment, while the controller works, and the small files beside it (keys).
//
//   store::make_backup(state_directory, "/backups/monday", {"cluster.key", …});
//   auto restored = store::restore_backup(state_directory, "/backups/monday", {.beside = run});
//
// After restore nothing is handed out twice: the numbers of jobs, starts and commits go on behind
// everything that could have been told to somebody.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace berth::store {

struct BackedUp {
  std::uint64_t jobs = 0;
  std::uint64_t commits = 0;
  std::uint64_t bytes = 0;
};
/// `names`: of files in the directory. `file` must not be there yet.
Result<BackedUp> make_backup(const std::string& directory, const std::string& file,
                             const std::vector<std::string>& names);

struct Restored {
  std::int64_t made = 0;           // when the backup was
  std::uint64_t jobs = 0;          // that it has
  std::uint64_t held = 0;          // of them: waited, and are held now
  std::uint64_t commits = 0;       // of the backup
  std::uint64_t acknowledged = 0;  // known to have been made; 0 = nobody knows
  std::uint32_t next_job_id = 0;   // from now on
  std::uint32_t next_job_id_then = 0;
  bool compared = false;            // the replaced store could be read:
  std::vector<std::uint32_t> lost;  // jobs that only it has
  std::uint64_t changed = 0;        // jobs that are further there
  std::string replaced;             // directory with what it replaced; "" = nothing
  std::vector<std::string> files;   // that came from the backup; the others of the same cluster
                                    // were there, and stay
};
/// `names_cluster`: the file beside the store that differs from cluster to cluster.
Result<Restored> restore_backup(const std::string& directory, const std::string& file,
                                const std::string& names_cluster, const Opening& opening);

}  // namespace berth::store
