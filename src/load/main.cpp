// berth-load: many agents, or many submissions, out of one process; for bench/controller.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "load/agents.h"
#include "load/submissions.h"
#include "net/paths.h"

namespace {

using namespace berth;

constexpr std::string_view kUsage =
    "usage: berth-load agents SLURM_CONF COUNT          nodes n1 … nCOUNT, one connection each\n"
    "       berth-load submit SLURM_CONF COUNT WORD…    sbatch with these options, COUNT times\n";

int complain(const Error& error) {
  fmt::print(stderr, "berth-load: {}\n", error.what());
  return 1;
}

int run_agents(const net::Address& controller, std::size_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<std::string> nodes;
  for (std::size_t i = 1; i <= count; ++i) nodes.push_back(fmt::format("n{}", i));
  net::Loop loop;
  loop.on_signal(SIGTERM, [&loop] { loop.stop(); });
  load::Agents agents(loop, controller, {}, std::move(nodes));
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

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  std::size_t count = 0;
  if (words.size() < 3 ||
      std::from_chars(words[2].data(), words[2].data() + words[2].size(), count).ec !=
          std::errc() ||
      count == 0) {
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
  if (words[0] == "agents") return run_agents(controller, count);
  if (words[0] == "submit") {
    return run_submissions(controller, count, {words.begin() + 3, words.end()});
  }
  fmt::print(stderr, "{}", kUsage);
  return 2;
}
