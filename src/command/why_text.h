// Why a job waits, as the controller tells it: for people and as JSON.
#pragma once

#include <string>

#include "command/json_text.h"
#include "command/show_text.h"
#include "wire/info.pb.h"

namespace berth::command {

std::string why_text(wire::JobExplained why, const Shown& shown);
/// As an object of a document.
void why_json(const wire::JobExplained& why, JsonText& json);

}  // namespace berth::command
