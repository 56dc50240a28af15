// scontrol update, create and delete: from words to a Change.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "wire/info.pb.h"

namespace berth::command::scontrol {

/// `action` is "update", "create" or "delete". "TimeLimit+=5" becomes the key TimeLimit with the
/// value "+5". What the keys mean is the controller's matter.
Result<wire::Change> parse_change(std::string_view action, std::span<const std::string> words);

}  // namespace berth::command::scontrol
