// Reservations as scontrol and sinfo show them.
#pragma once

#include <string>

#include "command/json_text.h"
#include "command/scontrol_values.h"
#include "wire/info.pb.h"

namespace berth::command::scontrol {

std::string reservation_text(const wire::ReservationInfo& reservation, const Style& style);
void append_reservation(JsonText& json, const wire::ReservationInfo& reservation);

}  // namespace berth::command::scontrol

namespace berth::command {

/// sinfo -T.
std::string reservation_table(const wire::ReservationsReply& reply, bool header,
                              const TimeFormat& times);

}  // namespace berth::command
