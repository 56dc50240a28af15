#include "schedule/reserved_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "text/duration.h"
#include "text/hostlist.h"

namespace berth::schedule {
namespace {

constexpr std::string_view kReservation = "Reservation";
constexpr std::string_view kForMaintenance = "ReqNodeNotAvail, Reserved for maintenance";

}  // namespace

using reservation::Flag;
using reservation::Window;

std::string moment_words(Time at) {
  const auto clock = static_cast<std::time_t>(at);
  std::tm local{};
  localtime_r(&clock, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
  return text;
}

std::string reserved_words(const cluster::Cluster& cluster, const Reservation& one, Time now) {
  std::vector<std::string> names;
  for (const cluster::NodeShare& share : one.allocation.nodes) {
    names.push_back(cluster.nodes[share.node].name);
  }
  const Window at = one.window(now);
  return fmt::format("{}{} reserved{} ({}) from {} until {}",
                     one.allocation.whole_nodes ? "" : "a part of ",
                     text::compress_hostlist(names) + (names.size() == 1 ? " is" : " are"),
                     one.flags.has(Flag::maint) ? " for maintenance" : "", one.name,
                     moment_words(at.from), moment_words(at.until));
}

std::optional<OwnWait> own_reservation_wait(const std::vector<const Reservation*>& asked,
                                            Time seconds, Time now) {
  std::optional<OwnWait> out;
  for (const Reservation* one : asked) {
    if (one == nullptr || one->flags.has(Flag::flex)) return std::nullopt;
    const Window at = one->window(now);
    if (one->active(now) && now + seconds <= at.until) return std::nullopt;
    OwnWait wait;
    const Time length = at.until - at.from;
    if (seconds > length) {
      wait.comes = false;
      wait.words =
          fmt::format("its time limit is longer than reservation {}: --time={} is the most",
                      one->name, text::format_minutes(static_cast<std::uint32_t>(length / 60)));
    } else if (one->flags.has(Flag::time_float)) {
      wait.comes = false;
      wait.words = fmt::format("reservation {} never begins (TIME_FLOAT)", one->name);
    } else if (now < at.from) {
      wait.words = fmt::format("reservation {} begins at {}", one->name, moment_words(at.from));
    } else {
      wait.comes = one->recurs();
      wait.words = fmt::format(
          "reservation {} ends at {}: --time={} is the most", one->name, moment_words(at.until),
          text::format_minutes(static_cast<std::uint32_t>(std::max<Time>(at.until - now, 0) / 60)));
    }
    if (!out || (wait.comes && !out->comes)) out = std::move(wait);
  }
  return out;
}

const Reservation* first_place(const job::State& state, const job::Job& job) {
  for (const std::string& name : state.view(job.view).names) {
    if (const Reservation* one = state.find_reservation(name)) return one;
  }
  return nullptr;
}

std::vector<const Reservation*> reservations_meeting(const Reserved& reserved,
                                                     const std::vector<NodeIndex>& nodes,
                                                     const Span& span, Time now) {
  std::vector<const Reservation*> out;
  for (const NodeIndex node : nodes) {
    for (const Reservation* one : reserved.on(node)) {
      if (std::ranges::find(out, one) != out.end()) continue;
      if (one->first_meeting({span.from, span.until}, now)) out.push_back(one);
    }
  }
  return out;
}

std::string_view reserved_reason(const std::vector<const Reservation*>& in_the_way) {
  const bool maintenance = std::ranges::any_of(
      in_the_way, [](const Reservation* one) { return one->flags.has(reservation::Flag::maint); });
  return maintenance ? kForMaintenance : kReservation;
}

bool is_reserved_reason(std::string_view reason) {
  return reason == kForMaintenance || reason == kReservation;
}

}  // namespace berth::schedule
