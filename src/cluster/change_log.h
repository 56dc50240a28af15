// Which nodes have changed, in order, for those who keep sums over all nodes and bring them up to
// date: they ask for what came since they looked last.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cluster/cluster.h"

namespace berth::cluster {

class ChangeLog {
 public:
  ChangeLog() = default;
  /// A copy goes its own way: it is another log, and empty.
  ChangeLog(const ChangeLog& other) : most_(other.most_) {}
  ChangeLog& operator=(const ChangeLog& other) {
    most_ = other.most_;
    id_ = fresh();
    before_ = 0;
    nodes_.clear();
    return *this;
  }

  /// Of all logs of this process.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  /// Changes so far.
  [[nodiscard]] std::uint64_t size() const { return before_ + nodes_.size(); }
  /// Those after the first `count`; nullopt: they are not kept any more.
  [[nodiscard]] std::optional<std::span<const NodeIndex>> since(std::uint64_t count) const {
    if (count < before_ || count > size()) return std::nullopt;
    return std::span(nodes_).subspan(static_cast<std::size_t>(count - before_));
  }

  void add(NodeIndex node) {
    if (nodes_.size() >= 2 * most_) {
      const std::size_t old = nodes_.size() - most_;
      before_ += old;
      nodes_.erase(nodes_.begin(), nodes_.begin() + static_cast<std::ptrdiff_t>(old));
    }
    nodes_.push_back(node);
  }
  /// At least so many, the newest. Where there are more changes than nodes, who looks may as well
  /// look at all of them.
  void keep(std::size_t changes) { most_ = changes; }

 private:
  static std::uint64_t fresh() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  std::uint64_t id_ = fresh();
  std::uint64_t before_ = 0;  // changes that are not kept
  std::size_t most_ = 64;
  std::vector<NodeIndex> nodes_;
};

}  // namespace berth::cluster
