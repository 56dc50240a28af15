// What lies where in an agent's spool, for agent and supervisor alike.
//
//   spool/<node>/job.<id>.<attempt>                 HeldJobRecord-like files of the agent
//   spool/<node>/step.<job>.<attempt>.<step>/spec   StepSpec, written before the supervisor starts
//                                           /alive  locked while the supervisor lives
//                                           /started made before the first task
//                                           /control.sock
//                                           /result StepEnded
//                                           /slurm_script of a batch step
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace berth::step {

struct StepKey {
  std::uint32_t job = 0;
  std::uint32_t attempt = 0;
  std::uint32_t step = 0;
  friend auto operator<=>(const StepKey&, const StepKey&) = default;
};

inline constexpr const char* kSpecFile = "spec";
inline constexpr const char* kAliveFile = "alive";
inline constexpr const char* kStartedFile = "started";
inline constexpr const char* kControlSocket = "control.sock";
inline constexpr const char* kResultFile = "result";
inline constexpr const char* kScriptFile = "slurm_script";

/// "step.5.1.0"; special steps keep their numbers.
std::string directory_name(const StepKey& key);
std::optional<StepKey> read_directory_name(std::string_view name);
/// "0", "batch", "interactive", "extern".
std::string step_name(std::uint32_t step);

/// The whole file; nullopt when it cannot be read.
std::optional<std::string> read_file(const std::string& path);
/// Written beside and renamed, so that a reader sees all or nothing. errno tells why not.
bool write_file(const std::string& path, std::string_view bytes, unsigned mode = 0600,
                bool synced = false);
/// An empty file whose being there says something.
bool touch_file(const std::string& path);
bool write_all(int fd, std::string_view bytes);
/// Removes the directory and the files in it (no directories below).
void remove_directory(const std::string& path);

/// Unix sockets in directories with names longer than a socket address holds.
Fd listen_in(const std::string& directory, const char* name);
Fd connect_in(const std::string& directory, const char* name);

}  // namespace berth::step
