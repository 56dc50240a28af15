// How often what was asked and by whom, and how long it took: counted by the state thread and the
// readers, shown by sdiag. Thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "wire/frame.h"

namespace berth::controller {

struct RequestFigures {
  std::uint64_t count = 0;
  std::uint64_t microseconds = 0;
};

class RequestCounts {
 public:
  /// Users beyond so many are not counted one by one.
  static constexpr std::size_t kMostUsers = 1000;
  struct Counts {
    std::map<wire::Kind, RequestFigures> kinds;
    std::map<std::uint32_t, RequestFigures> users;  // by uid
  };

  void count(wire::Kind kind, std::uint32_t uid, std::uint64_t microseconds);
  [[nodiscard]] Counts counts() const;
  void reset();

 private:
  mutable std::mutex mutex_;
  Counts counts_;  // guarded by mutex_
};

}  // namespace berth::controller
