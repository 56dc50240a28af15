#include "command/submit_environment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/fd.h"
#include "command/files.h"
#include "text/number.h"

namespace berth::command {
namespace {

using request::Environment;

constexpr std::size_t kMaxExportFile = std::size_t{4} << 20;
constexpr std::size_t kMaxLoginOutput = std::size_t{4} << 20;
constexpr auto kLoginPatience = std::chrono::seconds(10);
constexpr std::string_view kPlainPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool always_passes(std::string_view name) {
  return name.starts_with("SLURM_") || name.starts_with("SPANK_");
}

bool only_for_the_request(std::string_view name) {
  return name.starts_with("SBATCH_");
}

/// Entries that end with a zero byte; what is no NAME=value is left out.
Environment zero_separated(std::string_view text) {
  Environment environment;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    const std::string_view entry = text.substr(0, end);
    const std::size_t eq = entry.find('=');
    if (eq != std::string_view::npos && eq > 0) {
      environment[std::string(entry.substr(0, eq))] = std::string(entry.substr(eq + 1));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return environment;
}

Environment base_of_login(const Environment& mine) {
  Environment base;
  for (const char* name : {"HOME", "USER", "LOGNAME", "SHELL"}) {
    if (const auto at = mine.find(name); at != mine.end()) base.insert(*at);
  }
  if (!base.contains("LOGNAME") && base.contains("USER")) base["LOGNAME"] = base["USER"];
  base["PATH"] = kPlainPath;
  return base;
}

/// What the program wrote before it ended; "" when it took too long.
std::string output_of(const std::vector<std::string>& argv, const Environment& environment) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::vector<char*> variables;
  for (const std::string& entry : entries) variables.push_back(const_cast<char*>(entry.c_str()));
  variables.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int problem =
      ::posix_spawn(&pid, words[0], &actions, nullptr, words.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return {};
  writer.reset();

  std::string text;
  bool whole = false;
  const auto deadline = std::chrono::steady_clock::now() + kLoginPatience;
  std::array<char, 16384> buffer{};
  while (text.size() < kMaxLoginOutput) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd wait{reader.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t n = ::read(reader.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      whole = n == 0;
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  if (!whole) ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return whole ? text : std::string();
}

}  // namespace

ExportChoice read_export(std::string_view text) {
  ExportChoice choice;
  if (text.empty() || text == "ALL") {
    choice.all = true;
    return choice;
  }
  if (text == "NONE") return choice;
  if (text == "NIL") {
    choice.nothing = true;
    return choice;
  }
  std::vector<std::string> items(1);
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        items.back() += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ',') {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  for (std::string& item : items) {
    const std::size_t eq = item.find('=');
    if (item == "ALL") {
      choice.all = true;
    } else if (eq != std::string::npos && eq > 0) {
      choice.set.emplace_back(item.substr(0, eq), item.substr(eq + 1));
    } else if (eq == std::string::npos && !item.empty()) {
      choice.named.push_back(std::move(item));
    }
  }
  return choice;
}

Environment exported(const Environment& mine, const ExportChoice& choice) {
  Environment out;
  if (choice.all) {
    out = mine;
  } else {
    for (const auto& entry : mine) {
      if (always_passes(entry.first)) out.insert(entry);
    }
    for (const std::string& name : choice.named) {
      if (const auto at = mine.find(name); at != mine.end()) out.insert(*at);
    }
  }
  for (const auto& [name, value] : choice.set) out[name] = value;
  return out;
}

Result<Environment> read_export_file(const std::string& path) {
  std::string name = path;
  // A number is a descriptor that the caller left open.
  if (const auto number = text::parse_number(path, 1 << 20)) {
    name = fmt::format("/dev/fd/{}", *number);
  }
  auto text = read_file(name, kMaxExportFile);
  if (!text) {
    return fail(Code::io, fmt::format("Could not open user environment file {}", path),
                std::string(text.error().what()));
  }
  if (!text->empty() && text->back() != '\0') {
    return fail(Code::bad_value,
                fmt::format("User environment file {} is not zero-terminated", path),
                "every NAME=value of it ends with a zero byte, as `env -0` writes them");
  }
  return zero_separated(*text);
}

Environment login_environment(const Environment& mine) {
  Environment base = base_of_login(mine);
  const auto shell = base.find("SHELL");
  const std::string program =
      shell == base.end() || !shell->second.starts_with('/') ? "/bin/sh" : shell->second;
  // A mark before the variables: profiles may print what they like.
  constexpr std::string_view kMark = "berth-environment-begins";
  const std::string text =
      output_of({program, "-l", "-c", fmt::format("printf '%s\\0' {}; exec env -0", kMark)}, base);
  const std::size_t at = text.rfind(std::string(kMark) + '\0');
  if (at == std::string::npos) return base;
  Environment login = zero_separated(std::string_view(text).substr(at));
  for (const char* name : {"_", "SHLVL", "OLDPWD"}) login.erase(name);
  for (const auto& entry : base) login.insert(entry);
  return login;
}

Result<JobEnvironment> job_environment(const Environment& mine, const request::Request& request) {
  const ExportChoice choice = read_export(request.export_env.value_or("ALL"));
  JobEnvironment out;
  out.variables = exported(mine, choice);
  const bool login =
      (!choice.all && !choice.nothing) || request.given.has(request::Opt::get_user_env);
  if (login) {
    Environment under = login_environment(mine);
    for (auto& [name, value] : under) out.variables.insert({name, value});
    if (!choice.all) out.variables["SLURM_GET_USER_ENV"] = "1";
  }
  if (const request::Given* file = request.given.find(request::Opt::export_file)) {
    auto variables = read_export_file(file->text);
    if (!variables) return pass(std::move(variables.error()));
    for (auto& [name, value] : *variables) out.variables[name] = value;
  }
  if (choice.all && !login) return out;
  for (const auto& entry : mine) {
    if (!only_for_the_request(entry.first) || out.variables.contains(entry.first)) continue;
    out.variables.insert(entry);
    out.hidden.push_back(entry.first);
  }
  // The controller sees by this list that the choice has been made.
  if (out.hidden.empty()) out.hidden.emplace_back("SBATCH_EXPORT");
  return out;
}

Environment step_environment(const Environment& mine, const request::Request& request) {
  return exported(mine, read_export(request.export_env.value_or("ALL")));
}

std::string advice_without_path(const Environment& tasks, const request::Request& request) {
  if (tasks.contains("PATH") || request.multi_prog || request.argv.empty()) return {};
  const std::string& program = request.argv.front();
  if (program.find('/') != std::string::npos) return {};
  const std::string choice = request.export_env.value_or("ALL");
  if (choice == "ALL") return {};
  return fmt::format(
      "--export={} leaves the tasks without PATH, so '{}' will not be found: give its whole path, "
      "or "
      "srun --export=ALL",
      choice, program);
}

}  // namespace berth::command
