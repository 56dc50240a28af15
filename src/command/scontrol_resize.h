// After `scontrol update JobId= NumNodes=` of a running job: the files that bring a shell's
// variables up to date.
#pragma once

#include <string>

#include "wire/info.pb.h"

namespace berth::command::scontrol {

/// True when the keys change which nodes a running job has.
bool changes_size(const wire::Change& change);

struct ResizeScripts {
  std::string sh;
  std::string csh;
};
/// `job` as it is after the change, with its detail.
ResizeScripts resize_scripts(const wire::JobInfo& job);

}  // namespace berth::command::scontrol
