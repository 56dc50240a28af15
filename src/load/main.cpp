// berth-load: many agents, or many submissions, out of one process; for bench/controller.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "load/agents.h"
#include "load/joins.h"
#include "load/submissions.h"
#include "net/paths.h"

namespace {

using namespace berth;

constexpr std::string_view kUsage =
    "usage: berth-load agents SLURM_CONF COUNT [MS [tls]]   nodes n1 … nCOUNT, one connection "
    "each; jobs run\n"
    "                                                   for up to MS milliseconds. tls: each joins "
    "first, and comes\n"
    "                                                   over TCP with its certificate\n"
    "       berth-load submit SLURM_CONF COUNT WORD…    sbatch with these options, COUNT times\n"
    "       berth-load time SLURM_CONF COUNT WORD…      the same one by one: how long an answer "
    "takes\n";

int complain(const Error& error) {
  fmt::print(stderr, "berth-load: {}\n", error.what());
  return 1;
}

std::optional<std::size_t> number(const std::string& text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int run_agents(net::Address controller, std::size_t count, std::size_t longest_run, bool tls) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<std::string> nodes;
  for (std::size_t i = 1; i <= count; ++i) nodes.push_back(fmt::format("n{}", i));
  net::Loop loop;
  loop.on_signal(SIGTERM, [&loop] { loop.stop(); });
  load::Inventory inventory;
  inventory.longest_run = std::chrono::milliseconds(longest_run);
  std::vector<tls::Context> identities;
  if (tls) {
    const auto begin = std::chrono::steady_clock::now();
    auto joined = load::join_all(controller, count);
    if (!joined) return complain(joined.error());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("joined {} nodes in {:.2f} s\n", count, took.count());
    std::fflush(stdout);
    controller = joined->controller;
    identities = std::move(joined->identities);
  }
  load::Agents agents(loop, std::move(controller), inventory, std::move(nodes),
                      std::move(identities));
  agents.start();
  loop.run();
  return 0;
}

int run_submissions(const net::Address& controller, std::size_t count,
                    std::vector<std::string> words) {
  const auto begin = std::chrono::steady_clock::now();
  if (auto done = load::submit_all(controller, {.count = count, .words = std::move(words)});
      !done) {
    return complain(done.error());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("submitted {} jobs in {:.2f} s\n", count, took.count());
  return 0;
}

int run_timed(const net::Address& controller, std::size_t count, std::vector<std::string> words) {
  const auto took = load::time_each(controller, {.count = count, .words = std::move(words)});
  if (!took) return complain(took.error());
  const auto at = [&](double share) {
    return (*took)[static_cast<std::size_t>(share * static_cast<double>(took->size() - 1))];
  };
  fmt::print("{:.2f} {:.2f} {:.2f} {:.2f}\n", at(0.5), at(0.9), at(0.99), took->back());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::size_t count = words.size() < 3 ? 0 : number(words[2]).value_or(0);
  if (count == 0) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  const auto sockets = net::controller_sockets(words[1]);
  if (sockets.empty()) {
    fmt::print(stderr, "berth-load: no controller runs with {}\n", words[1]);
    return 1;
  }
  const net::Address controller = net::Address::unix_socket(sockets.front());
  if (words[0] == "agents") {
    const bool tls = words.size() > 4 && words[4] == "tls";
    if (words.size() > (tls ? 5U : 4U)) {
      fmt::print(stderr, "{}", kUsage);
      return 2;
    }
    return run_agents(controller, count, words.size() > 3 ? number(words[3]).value_or(0) : 0, tls);
  }
  if (words[0] == "time") return run_timed(controller, count, {words.begin() + 3, words.end()});
  if (words[0] == "submit") {
    return run_submissions(controller, count, {words.begin() + 3, words.end()});
  }
  fmt::print(stderr, "{}", kUsage);
  return 2;
}
