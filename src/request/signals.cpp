// Signal names of Linux.
#include "request/signals.h"

#include <algorithm>
#include <csignal>
#include <string>

#include "text/number.h"
#include "text/words.h"

namespace berth::request {
namespace {

struct Signal {
  std::string_view name;
  int number;
};

constexpr Signal kSignals[] = {
    {"hup", SIGHUP},   {"int", SIGINT},       {"quit", SIGQUIT},  {"abrt", SIGABRT},
    {"kill", SIGKILL}, {"alrm", SIGALRM},     {"term", SIGTERM},  {"usr1", SIGUSR1},
    {"usr2", SIGUSR2}, {"urg", SIGURG},       {"cont", SIGCONT},  {"stop", SIGSTOP},
    {"tstp", SIGTSTP}, {"ttin", SIGTTIN},     {"ttou", SIGTTOU},  {"segv", SIGSEGV},
    {"pipe", SIGPIPE}, {"xcpu", SIGXCPU},     {"xfsz", SIGXFSZ},  {"chld", SIGCHLD},
    {"bus", SIGBUS},   {"fpe", SIGFPE},       {"ill", SIGILL},    {"trap", SIGTRAP},
    {"prof", SIGPROF}, {"vtalrm", SIGVTALRM}, {"winch", SIGWINCH}};

constexpr int kHighest = 64;

}  // namespace

std::optional<int> parse_signal(std::string_view written) {
  if (const auto number = text::parse_number(written, kHighest)) {
    return *number == 0 ? std::nullopt : std::optional(static_cast<int>(*number));
  }
  std::string name = text::to_lower(written);
  if (name.starts_with("sig")) name.erase(0, 3);
  const auto* at = std::ranges::find(kSignals, name, &Signal::name);
  return at == std::end(kSignals) ? std::nullopt : std::optional(at->number);
}

}  // namespace berth::request
