// The command line and the environment of squeue.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "command/show_states.h"
#include "request/request.h"
#include "wire/info.pb.h"

namespace berth::command {

struct SqueueOptions {
  bool help = false;
  bool usage = false;
  bool version = false;
  bool helpstate = false;
  bool json = false;
  bool header = true;
  bool long_format = false;     // -l
  bool start = false;           // --start
  bool why = false;             // --why
  bool steps = false;           // -s
  bool only_state = false;      // --only-job-state
  bool each_element = false;    // -r
  bool each_partition = false;  // -P
  bool hidden_too = false;      // -a
  bool me = false;              // --me
  bool not_me = false;          // --notme
  bool convert = true;
  bool expand_patterns = false;
  bool verbose = false;
  std::uint32_t iterate_seconds = 0;  // -i; 0 = once
  std::optional<std::string> format;
  std::optional<std::string> long_fields;  // -O
  std::optional<std::string> sort;
  std::optional<std::string> clusters;
  StateFilter states;
  std::vector<wire::JobName> jobs;
  std::vector<wire::JobName> step_names;  // of -s
  std::vector<std::string> accounts, users, names, partitions, qos, reservations, licenses, nodes;
  std::optional<std::int64_t> running_over;   // seconds
  std::optional<std::int64_t> running_under;  // seconds
};

Result<SqueueOptions> parse_squeue(std::span<const std::string> words,
                                   const request::Environment& environment);
/// What the controller has to send for these options.
wire::ListJobs squeue_request(const SqueueOptions& options);

std::string_view squeue_help();
std::string_view squeue_usage();

}  // namespace berth::command
