// Reservations in words: what one that waits is told about them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/reserved.h"

namespace berth::schedule {

/// "2026-11-16T18:00:00"
std::string moment_words(Time at);
/// "gpu[1-2] are reserved (maint) from … until …"
std::string reserved_words(const cluster::Cluster& cluster, const Reservation& reservation,
                           Time now);

/// Why a job cannot start now in any of the reservations it asked for.
struct OwnWait {
  std::string words;
  bool comes = true;  // there is a time at which it can
};
/// nullopt: time is not the reason.
std::optional<OwnWait> own_reservation_wait(const std::vector<const Reservation*>& asked,
                                            Time seconds, Time now);

/// The reservation in which it would start first; nullptr = in none.
const Reservation* first_place(const job::State& state, const job::Job& job);

/// squeue's word for a job that these keep from starting.
std::string_view reserved_reason(const std::vector<const Reservation*>& in_the_way);
/// True for such a word, and for that of a job whose own reservation has not begun.
bool is_reserved_reason(std::string_view reason);

/// Those that have one of these nodes in that time, each once.
std::vector<const Reservation*> reservations_meeting(const Reserved& reserved,
                                                     const std::vector<NodeIndex>& nodes,
                                                     const Span& span, Time now);

}  // namespace berth::schedule
