// Times as --begin, --deadline and scontrol write them.
#pragma once

#include "text/when.h"

namespace berth::job {

using text::parse_when;

}  // namespace berth::job
