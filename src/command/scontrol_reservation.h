// Reservations as scontrol and sinfo show them.
#pragma once

#include <string>

#include "command/json_text.h"
#include "command/scontrol_values.h"
#include "wire/info.pb.h"

namespace berth::command::scontrol {

std::string reservation_text(const wire::ReservationInfo& reservation, const Style& style);
/// All of them, or the one of that name.
std::string reservations_json(const wire::ReservationsReply& reply, std::string_view name,
                              const JsonMeta& meta);

}  // namespace berth::command::scontrol

namespace berth::command {

/// sinfo -T.
std::string reservation_table(const wire::ReservationsReply& reply, bool header,
                              const TimeFormat& times);

}  // namespace berth::command
