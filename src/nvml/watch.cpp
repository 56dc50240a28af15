#include "nvml/watch.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "nvml/gpus.h"

namespace berth::nvml {
namespace {

using Clock = std::chrono::steady_clock;

/// Errors of the driver, where it tells of them.
class Events {
 public:
  Events(const Functions& nvml, const std::vector<Handle>& gpus) : nvml_(nvml) {
    if (call(nvml.nvmlEventSetCreate, &set_) != kSuccess) {
      set_ = nullptr;
      return;
    }
    for (const Handle& gpu : gpus) {
      if (gpu.device == nullptr) continue;
      heard_ |= call(nvml.nvmlDeviceRegisterEvents, gpu.device, kXidEvent, set_) == kSuccess;
    }
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    if (set_ != nullptr) call(nvml_.nvmlEventSetFree, set_);
  }

  /// Sleeps until then, or until one comes.
  std::optional<EventData> wait_until(Clock::time_point end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    if (heard_) {
      EventData data{};
      const auto time = static_cast<unsigned int>(left.count());
      Return answer = call(nvml_.nvmlEventSetWait_v2, set_, &data, time);
      if (ask_older(answer)) answer = call(nvml_.nvmlEventSetWait, set_, &data, time);
      if (answer == kSuccess) return data;
      if (answer == kTimeout) return std::nullopt;
      // A GPU fell off the bus, or the driver has no such function: the rounds go on without.
    }
    std::this_thread::sleep_until(end);
    return std::nullopt;
  }

 private:
  const Functions& nvml_;
  EventSet set_ = nullptr;
  bool heard_ = false;
};

}  // namespace

Result<void> watch(const Functions& nvml, std::chrono::milliseconds every,
                   const std::function<bool(const std::string& lines)>& say) {
  auto gpus = handles(nvml);
  if (!gpus) return pass(std::move(gpus.error()));
  auto events = std::make_unique<Events>(nvml, *gpus);
  std::string lines = survey::write_line(survey::Header{});
  Clock::time_point next = Clock::now();
  while (true) {
    for (const Handle& gpu : *gpus) {
      lines += survey::write_line(sample(nvml, gpu));
      for (const survey::Process& one : processes(nvml, gpu)) lines += survey::write_line(one);
    }
    lines += survey::write_line(survey::End{});
    if (!say(lines)) return {};
    lines.clear();
    next = std::max(next + every, Clock::now());
    while (Clock::now() < next) {
      const auto event = events->wait_until(next);
      if (!event || (event->type & kXidEvent) == 0) continue;
      const auto gpu = std::ranges::find(*gpus, event->device, &Handle::device);
      if (gpu == gpus->end()) continue;
      if (!say(survey::write_line(survey::Xid{gpu->index, event->data}))) return {};
    }
    // A GPU that was lost may be back under its old number.
    auto again = handles(nvml);
    if (!again || again->size() != gpus->size()) continue;
    bool back = false;
    for (std::size_t i = 0; i < gpus->size(); ++i) {
      const bool was_there = (*gpus)[i].device != nullptr;
      const bool is_there = (*again)[i].device != nullptr;
      if (!was_there || !is_there) (*gpus)[i] = (*again)[i];
      back = back || (!was_there && is_there);
    }
    if (back) events = std::make_unique<Events>(nvml, *gpus);
  }
}

}  // namespace berth::nvml
