// What lies where in an agent's spool, for agent and supervisor alike.
//
//   spool/<node>/job.<id>.<attempt>              BeginJob, then JobBegun, EndJob, JobGone as they
//   come spool/<node>/step.<job>.<attempt>.<step>     Supervised (the spec), StepStarted before the
//   first
//                                                task, StepEnded; locked while the supervisor lives
//   spool/<node>/step.<job>.<attempt>.<step>.d/  where needed: slurm_script of a batch step,
//                                                control.sock of a supervisor without an agent
//   spool/<node>/file.<job>.<attempt>.<number>   Supervised (the ticket's spec); locked while a
//   file
//                                                of sbcast is received for the job
//
// Records are frames in one file, appended: a file system that has to find, name and free an inode
// for each word of a step is most of the cost of starting thousands of them. A frame that was cut
// off was never written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "wire/frame.h"

namespace berth::step {

struct StepKey {
  std::uint32_t job = 0;
  std::uint32_t attempt = 0;
  std::uint32_t step = 0;
  friend auto operator<=>(const StepKey&, const StepKey&) = default;
};

inline constexpr const char* kControlSocket = "control.sock";
inline constexpr const char* kScriptFile = "slurm_script";

/// "step.5.1.0"; special steps keep their numbers.
std::string record_name(const StepKey& key);
std::optional<StepKey> read_record_name(std::string_view name);
/// The directory of a step, beside its record.
std::string directory_of(const std::string& record);
/// "0", "batch", "interactive", "extern".
std::string step_name(std::uint32_t step);

/// The whole file; nullopt when it cannot be read.
std::optional<std::string> read_file(const std::string& path);
/// Written beside and renamed, so that a reader sees all or nothing. errno tells why not.
bool write_file(const std::string& path, std::string_view bytes, unsigned mode = 0600,
                bool synced = false);
/// Adds frames to a record; `fresh`: to a new one, whatever was there.
bool append_record(const std::string& path, std::string_view frames, bool fresh = false);
/// The frames of a record, in order; a last one that was cut off is left out.
std::vector<std::pair<wire::Kind, std::string>> read_record(const std::string& path);

/// A supervisor's descriptor of the record that it holds locked.
inline constexpr int kRecordDescriptor = 5;
/// Whether the process that holds a record lives, whoever is its parent.
bool is_held(const std::string& record);

/// What a step's record tells.
struct StepRecord {
  std::string spec;  // "" = not known
  bool started = false;
  std::optional<wire::StepEnded> result;
};
StepRecord read_step_record(const std::string& path);
/// The record and the directory of a step.
void remove_step(const std::string& record);

using berth::write_all;
/// Removes the directory and the files in it (no directories below).
void remove_directory(const std::string& path);

/// Unix sockets in directories with names longer than a socket address holds.
Fd listen_in(const std::string& directory, const char* name);
Fd connect_in(const std::string& directory, const char* name);

}  // namespace berth::step
