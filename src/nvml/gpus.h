// What NVML knows, as a survey's lines. Answers like "not supported" leave a value out; only a GPU
// that does not answer at all is lost.
#pragma once

#include <vector>

#include "nvml/library.h"
#include "survey/survey.h"

namespace berth::nvml {

struct Handle {
  std::uint32_t index = 0;
  Device device = nullptr;  // null: lost, `why` says how
  std::string why;
};

/// One for each GPU that the driver counts.
Result<std::vector<Handle>> handles(const Functions& nvml);

/// All that stays as it is while the machine runs.
Result<survey::Survey> take_survey(const Functions& nvml);

/// How a GPU fares: a Sample, or Lost.
survey::Line sample(const Functions& nvml, const Handle& gpu);
std::vector<survey::Process> processes(const Functions& nvml, const Handle& gpu);

}  // namespace berth::nvml
