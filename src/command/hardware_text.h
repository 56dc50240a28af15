// A machine as a picture for people, and as JSON.
#pragma once

#include <string>

#include "device/machine.h"

namespace berth::command {

std::string hardware_picture(const device::Machine& machine);
std::string hardware_json(const device::Machine& machine);

}  // namespace berth::command
