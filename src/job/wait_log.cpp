#include "job/wait_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace berth::job {
namespace {

/// The words that a job of this cluster can wait with. The last one stands for all others.
constexpr auto kWords = std::to_array<std::string_view>({
    "None",
    "Priority",
    "Resources",
    "Dependency",
    "DependencyNeverSatisfied",
    "BeginTime",
    "JobHeldUser",
    "JobHeldAdmin",
    "JobHoldMaxRequeue",
    "job_requeued_in_held_state",
    "launch_failed_requeued_held",
    "JobArrayTaskLimit",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "PartitionDown",
    "PartitionInactive",
    "PartitionConfig",
    "AccountNotAllowed",
    "QOSNotAllowed",
    "InvalidAccount",
    "InvalidQOS",
    "Licenses",
    "Reservation",
    "ReservationDeleted",
    "ReqNodeNotAvail",
    "NodeDown",
    "BadConstraints",
    "Constraints",
    "Cleaning",
    "Prolog",
    "JobLaunchFailure",
    "SystemFailure",
    "DeadLine",
    "MaxMemPerLimit",
    "WaitingForScheduling",
    "Other",
});

std::uint8_t code_of(std::string_view reason) {
  reason = reason.substr(0, reason.find_first_of(", "));
  const auto at = std::ranges::find(kWords, reason);
  return static_cast<std::uint8_t>(
      std::min<std::ptrdiff_t>(at - kWords.begin(), std::ssize(kWords) - 1));
}

std::string shown(std::uint8_t reason, std::int64_t seconds) {
  const std::int64_t days = seconds / 86400;
  return fmt::format("{}:{}{:02}:{:02}:{:02}", kWords[reason],
                     days == 0 ? std::string() : fmt::format("{}-", days), seconds / 3600 % 24,
                     seconds / 60 % 60, seconds % 60);
}

}  // namespace

WaitLog::WaitLog(const WaitLog& other)
    : since_(other.since_),
      reason_(other.reason_),
      more_(other.more_),
      past_(other.past_ ? std::make_unique<std::vector<Past>>(*other.past_) : nullptr) {}

WaitLog& WaitLog::operator=(const WaitLog& other) {
  if (this != &other) *this = WaitLog(other);
  return *this;
}

void WaitLog::add(std::uint8_t reason, std::int64_t seconds) {
  if (seconds <= 0) return;
  if (!past_) past_ = std::make_unique<std::vector<Past>>();
  const auto count = static_cast<std::uint32_t>(std::min<std::int64_t>(seconds, INT32_MAX));
  // Once changes are only counted, the last entry need not be what came before.
  if (more_ == 0 && !past_->empty() && past_->back().reason == reason) {
    past_->back().seconds += count;
    return;
  }
  if (past_->size() < kMost) {
    past_->push_back({count, reason});
    return;
  }
  const auto same = std::ranges::find(*past_, reason, &Past::reason);
  (same == past_->end() ? past_->back() : *same).seconds += count;
  if (more_ < UINT16_MAX) ++more_;
}

void WaitLog::waits_for(std::string_view reason, std::int64_t now) {
  const std::uint8_t code = code_of(reason);
  if (since_ != 0 && code == reason_) return;
  close(now);
  since_ = now;
  reason_ = code;
}

void WaitLog::close(std::int64_t now) {
  if (since_ != 0) add(reason_, now - since_);
  since_ = 0;
}

std::string WaitLog::text(std::int64_t now) const {
  if (since_ != 0 && now > since_) {
    WaitLog closed = *this;
    closed.close(now);
    return closed.text(now);
  }
  std::string out;
  if (!past_) return out;
  for (const Past& past : *past_) {
    if (!out.empty()) out += ',';
    out += shown(past.reason, past.seconds);
  }
  if (more_ > 0) out += fmt::format(",+{}", more_);
  return out;
}

void WaitLog::store(wire::JobRecord& record) const {
  if (past_) {
    for (const Past& past : *past_) {
      wire::PastReason& one = *record.add_past_reasons();
      one.set_reason(std::string(kWords[past.reason]));
      one.set_seconds(past.seconds);
    }
  }
  record.set_past_reasons_more(more_);
  if (since_ == 0) return;
  record.set_waits_since(since_);
  record.set_waits_for(std::string(kWords[reason_]));
}

WaitLog WaitLog::from(const wire::JobRecord& record) {
  WaitLog log;
  for (const wire::PastReason& past : record.past_reasons()) {
    log.add(code_of(past.reason()), past.seconds());
  }
  log.more_ =
      static_cast<std::uint16_t>(std::min<std::uint32_t>(record.past_reasons_more(), UINT16_MAX));
  log.since_ = record.waits_since();
  if (log.since_ != 0) log.reason_ = code_of(record.waits_for());
  return log;
}

}  // namespace berth::job
