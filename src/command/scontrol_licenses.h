// scontrol show licenses: what is configured, and what running jobs hold of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "command/scontrol_session.h"

namespace berth::command::scontrol {

struct License {
  std::string name;
  std::uint64_t total = 0;
  std::uint64_t used = 0;
};

/// "matlab:10,fluent" → names and counts (1 where none is written).
std::vector<License> parse_licenses(std::string_view text);

Result<std::vector<License>> licenses_of(Session& session);
std::string license_text(const License& license, const Style& style);

}  // namespace berth::command::scontrol
