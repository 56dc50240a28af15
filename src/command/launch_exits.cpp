#include "command/launch_exits.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace berth::command {

std::string end_of_task(int status) {
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == kOutOfMemorySignal) return "Out Of Memory";
    const char* const name = ::strsignal(WTERMSIG(status));
    return fmt::format("{}{}", name == nullptr ? "Unknown signal" : name,
                       WCOREDUMP(status) ? " (core dumped)" : "");
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? std::string() : fmt::format("Exited with exit code {}", code);
}

int exit_code_of(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == kOutOfMemorySignal) return 1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string tasks_text(const std::set<std::uint32_t>& ranks) {
  std::string list;
  for (auto at = ranks.begin(); at != ranks.end();) {
    const std::uint32_t first = *at;
    std::uint32_t last = first;
    while (++at != ranks.end() && *at == last + 1) last = *at;
    if (!list.empty()) list += ',';
    list += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
  }
  return fmt::format("{} {}", ranks.size() == 1 ? "task" : "tasks", list);
}

void TaskExits::add(const std::string& node, std::uint32_t rank, int status) {
  if (!ended_.insert(rank).second) return;
  ++count_;
  if (status == 0) return;
  failed_ = true;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == kOutOfMemorySignal) {
      out_of_memory_ = true;
    } else {
      highest_signal_ = std::max(highest_signal_, signal);
    }
    terminated_ = terminated_ || signal == SIGKILL || signal == SIGTERM;
  } else {
    highest_code_ = std::max(highest_code_, WEXITSTATUS(status));
  }
  untold_[{node, status}].insert(rank);
}

std::vector<std::string> TaskExits::lines(bool reduce) {
  std::vector<std::string> lines;
  for (const auto& [key, ranks] : untold_) {
    const auto& [node, status] = key;
    const std::string end = end_of_task(status);
    if (reduce && !told_.insert(end).second) continue;
    lines.push_back(fmt::format("{}: {}: {}", node, tasks_text(ranks), end));
  }
  untold_.clear();
  return lines;
}

int TaskExits::exit_code() const {
  if (out_of_memory_) return 1;
  return highest_signal_ > 0 ? 128 + highest_signal_ : highest_code_;
}

int TaskExits::wait_status() const {
  if (out_of_memory_) return kOutOfMemorySignal;
  return highest_signal_ > 0 ? highest_signal_ : highest_code_ << 8;
}

}  // namespace berth::command
