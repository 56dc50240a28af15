// One who follows a ChangeLog: what has come since it looked last.
#pragma once

#include <optional>
#include <span>

#include "cluster/change_log.h"

namespace berth::cluster {

class ChangeReader {
 public:
  /// Changes since the last call; nullopt: it is another log or too many came, so any node may have
  /// changed.
  std::optional<std::span<const NodeIndex>> read(const ChangeLog& log) {
    const auto news = log.id() == log_ ? log.since(read_) : std::nullopt;
    log_ = log.id();
    read_ = log.size();
    return news;
  }
  /// The next call answers as the first did.
  void forget() { log_ = 0; }

 private:
  std::uint64_t log_ = 0;  // no log has this id
  std::uint64_t read_ = 0;
};

}  // namespace berth::cluster
