// How many lines one source (a user, a peer, a node) may write into a log: who sends what is
// refused a thousand times a second writes a few lines a minute, and how many were left out. Pure:
// time comes in as an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

class LineLimit {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    std::uint64_t lines = 30;  // of one source in one window, which begins with its first line
    std::chrono::seconds window{60};
    std::size_t sources = 1024;  // told apart; those beyond share the lines of one
  };
  LineLimit() = default;
  explicit LineLimit(Limits limits) : limits_(limits) {}

  /// A line that says how many others there were, for a source whose window is over.
  using Told = std::vector<std::string>;

  struct Verdict {
    bool write = true;
    bool first_left_out = false;  // of its window
    Told before;                  // to be written first
  };
  /// A line of `source` ("uid 1000", "10.0.0.7", "node n1") is there to be written.
  Verdict line(std::string_view source, Time now);
  /// What is to be told of windows that are over. Ask at next_end(), and again before the end with
  /// Time::max().
  Told ended(Time now);
  /// When a window ends of which something is to be told; Time::max() = there is none.
  [[nodiscard]] Time next_end() const;

 private:
  struct Window {
    Time end;
    std::uint64_t lines = 0;
    std::uint64_t left_out = 0;
  };
  Told forget_ended(Time now);

  Limits limits_;
  std::map<std::string, Window, std::less<>> windows_;
};

/// A LineLimit for the threads of a daemon, at the time it is.
class LineGate {
 public:
  LineGate() = default;
  explicit LineGate(LineLimit::Limits limits) : limit_(limits) {}

  /// May be called by any thread, when lines of a source begin to be left out: somebody has to
  /// call ended() at next_end().
  void on_left_out(std::function<void()> call);

  LineLimit::Verdict line(std::string_view source);
  /// At the daemon's end: those of windows that are not over too.
  LineLimit::Told ended(bool all = false);
  [[nodiscard]] LineLimit::Time next_end() const;

 private:
  mutable std::mutex mutex_;  // guards both
  LineLimit limit_;
  std::function<void()> left_out_;
};

}  // namespace berth
