// What --version prints.
#pragma once

#include "base/version.h"

namespace berth::command {

using berth::kBerthVersion;
using berth::kSlurmVersion;

}  // namespace berth::command
