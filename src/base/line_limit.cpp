#include "base/line_limit.h"

#include <algorithm>

namespace berth {
namespace {

constexpr std::string_view kOthers = "other sources";

}  // namespace

LineLimit::Verdict LineLimit::line(std::string_view source, Time now) {
  Verdict verdict;
  auto found = windows_.find(source);
  if (found != windows_.end() && found->second.end <= now) {
    verdict.before = forget_ended(now);
    found = windows_.end();
  }
  if (found == windows_.end() && windows_.size() >= limits_.sources) {
    Told told = forget_ended(now);
    std::ranges::move(told, std::back_inserter(verdict.before));
    if (windows_.size() >= limits_.sources) source = kOthers;
    found = windows_.find(source);
  }
  if (found == windows_.end()) {
    found = windows_.emplace(source, Window{.end = now + limits_.window}).first;
  }
  Window& window = found->second;
  verdict.write = window.lines < limits_.lines;
  ++(verdict.write ? window.lines : window.left_out);
  verdict.first_left_out = window.left_out == 1 && !verdict.write;
  return verdict;
}

LineLimit::Told LineLimit::forget_ended(Time now) {
  Told told;
  for (auto at = windows_.begin(); at != windows_.end();) {
    const auto& [source, window] = *at;
    if (window.end > now) {
      ++at;
      continue;
    }
    if (window.left_out > 0) {
      told.push_back(std::to_string(window.left_out) + " more lines of " + source +
                     " left out within " + std::to_string(limits_.window.count()) + " s");
    }
    at = windows_.erase(at);
  }
  return told;
}

LineLimit::Told LineLimit::ended(Time now) {
  return forget_ended(now);
}

LineLimit::Time LineLimit::next_end() const {
  Time next = Time::max();
  for (const auto& [source, window] : windows_) {
    if (window.left_out > 0) next = std::min(next, window.end);
  }
  return next;
}

void LineGate::on_left_out(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  left_out_ = std::move(call);
}

LineLimit::Verdict LineGate::line(std::string_view source) {
  const std::lock_guard lock(mutex_);
  LineLimit::Verdict verdict = limit_.line(source, std::chrono::steady_clock::now());
  if (verdict.first_left_out && left_out_) left_out_();
  return verdict;
}

LineLimit::Told LineGate::ended(bool all) {
  const std::lock_guard lock(mutex_);
  return limit_.ended(all ? LineLimit::Time::max() : std::chrono::steady_clock::now());
}

LineLimit::Time LineGate::next_end() const {
  const std::lock_guard lock(mutex_);
  return limit_.next_end();
}

}  // namespace berth
