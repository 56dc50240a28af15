// A file to all nodes of a job: sbcast and srun --bcast.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "request/request.h"

namespace berth::command {

struct FileCopy {
  std::string source;
  std::string destination;
  bool force = false;     // replace a file that is there
  bool preserve = false;  // mode and times
  std::uint32_t job_id = 0;
  std::optional<std::uint32_t> step_id;  // unset: the whole job
  std::size_t block = std::size_t{256} << 10;
  std::optional<std::chrono::seconds> patience;  // without progress
};

/// The error names every node that did not take it.
Result<void> send_file(const FileCopy& copy, const request::Environment& environment,
                       std::string_view program);

/// The path of a program by its name, as a shell finds it; the name itself when it is not found.
std::string find_program(const std::string& name, const request::Environment& environment);

}  // namespace berth::command
