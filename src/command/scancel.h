// scancel: which jobs, one request, what to say.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "request/request.h"
#include "wire/info.pb.h"

namespace berth::command {

struct CancelWords {
  wire::CancelJobs ask;
  std::vector<std::string> names;  // the jobs as written, for messages
  bool quiet = false;
  int verbose = 0;
  bool interactive = false;
  bool help = false;
  bool version = false;
};

/// Options, the SCANCEL_ variables, and the jobs.
Result<CancelWords> parse_scancel(std::span<const std::string> words,
                                  const request::Environment& environment);

/// "USR1", "SIGUSR1", "10"; nullopt = no such signal.
std::optional<int> parse_signal(std::string_view text);

/// The exit code of what was reported: 210 when a job is another user's, else 0 (a job that is not
/// there or has ended already is no failure).
int cancel_exit_code(const wire::Results& results);

int run_scancel(std::span<const std::string> words, const request::Environment& environment);

}  // namespace berth::command
