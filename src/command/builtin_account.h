// The one account that there is, as sacctmgr and sshare show it: every user belongs to it, nothing
// is limited, no usage is counted. What a job says with --account is kept and shown, not looked up
// here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "request/request.h"

namespace berth::command {

inline constexpr std::string_view kAccount = "default";
inline constexpr std::string_view kQos = "normal";

/// The one who asks: the name that the machine has for it, else USER (a static program looks
/// nothing up but /etc/passwd), else the number.
std::string own_user_name(const request::Environment& environment);
/// Who belongs to the account, sorted by name: root, the people in /etc/passwd, and `self`.
std::vector<std::string> account_members(const std::string& self);

}  // namespace berth::command
