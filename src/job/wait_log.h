// What a job has waited for, and how long for each: small, because 100,000 of them wait.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wire/record.pb.h"

namespace berth::job {

class WaitLog {
 public:
  /// Kept one by one; of what comes then only the seconds are added to one of these.
  static constexpr std::size_t kMost = 16;

  WaitLog() = default;
  WaitLog(const WaitLog& other);
  WaitLog& operator=(const WaitLog& other);
  WaitLog(WaitLog&&) = default;
  WaitLog& operator=(WaitLog&&) = default;
  ~WaitLog() = default;

  /// It waits for this since now (squeue's word; what follows a comma is not kept).
  void waits_for(std::string_view reason, std::int64_t now);
  /// It waits no more.
  void close(std::int64_t now);
  /// "Priority:00:10:00,Resources:00:05:00", and "+3" where it changed so often more; "" = did not
  /// wait a second. `now` counts for what it waits for still.
  [[nodiscard]] std::string text(std::int64_t now) const;

  /// When it began to wait for what it waits for; 0 = it does not wait.
  [[nodiscard]] std::int64_t& since() { return since_; }

  void store(wire::JobRecord& record) const;
  static WaitLog from(const wire::JobRecord& record);

 private:
  struct Past {
    std::uint32_t seconds = 0;
    std::uint8_t reason = 0;
  };
  void add(std::uint8_t reason, std::int64_t seconds);

  std::int64_t since_ = 0;   // 0 = does not wait
  std::uint8_t reason_ = 0;  // position in the table of words
  std::uint16_t more_ = 0;   // changes that have no entry of their own
  std::unique_ptr<std::vector<Past>> past_;
};

}  // namespace berth::job
