// What lint says about a submission: errors and warnings, as lines that begin "berth: ". It never
// blocks a submission. The same script is submitted many times, so answers are kept.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "wire/submit.pb.h"

namespace berth::controller {

class Advice {
 public:
  /// Lines without newline. Any thread. Kept until forget(), which another cluster asks for.
  std::vector<std::string> lines(const cluster::Cluster& cluster, const wire::Asked& asked);
  /// The lines when they need not be worked out.
  std::optional<std::vector<std::string>> known(const wire::Asked& asked);
  void forget();

 private:
  static constexpr std::size_t kMost = 1'000;
  struct Entry {
    std::vector<std::string> lines;
    std::list<std::uint64_t>::iterator used;
  };
  std::mutex mutex_;
  std::map<std::uint64_t, Entry> kept_;
  std::list<std::uint64_t> order_;  // least recently used last
};

}  // namespace berth::controller
