// The Standard Workload Format of the Parallel Workloads Archive: 18 columns of numbers, -1 = not
// known, comments after ";".
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulate/fields.h"
#include "simulate/trace.h"
#include "text/words.h"

namespace berth::simulate {
namespace {

constexpr std::size_t kColumns = 18;
enum Column : std::size_t {
  kSubmit = 1,
  kRuntime = 3,
  kProcessors = 4,
  kAskedProcessors = 7,
  kAskedSeconds = 8,
  kAskedMemory = 9,  // KB a processor
  kStatus = 10,
  kUser = 11,
  kQueue = 14,
};

}  // namespace

Result<Trace> read_swf(std::string_view text, std::string_view name) {
  Trace trace;
  trace.name = name;
  std::vector<std::string_view> fields;
  std::array<std::int64_t, kColumns> value{};
  Lines lines(text);
  std::string_view line;
  while (lines.next(line)) {
    line = text::trim(line);
    if (line.empty() || line.starts_with(';')) continue;
    ++trace.lines;
    if (trace.jobs.size() >= kMostJobs) {
      return fail(Code::limit, fmt::format("{}: more than {} jobs", name, kMostJobs));
    }
    if (line.size() > kMostLineBytes) {
      trace.skip(lines.number(), "longer than a line of a trace is");
      continue;
    }
    split_blanks(line, fields);
    if (fields.size() != kColumns) {
      trace.skip(lines.number(), fmt::format("{} columns, SWF has {}", fields.size(), kColumns));
      continue;
    }
    bool numbers = true;
    for (std::size_t i = 0; i < kColumns; ++i) {
      const auto number = whole_of(fields[i]);
      numbers = numbers && number.has_value();
      value[i] = number.value_or(-1);
    }
    if (!numbers) {
      trace.skip(lines.number(), "not all of it is numbers");
      continue;
    }
    const std::int64_t processors =
        value[kAskedProcessors] > 0 ? value[kAskedProcessors] : value[kProcessors];
    if (value[kSubmit] < 0 || value[kSubmit] > kMostSeconds) {
      trace.skip(lines.number(), "no time of submission");
    } else if (value[kRuntime] < 0 || value[kRuntime] > kMostSeconds) {
      trace.skip(lines.number(), "no run time: it never started");
    } else if (processors <= 0 || static_cast<std::uint64_t>(processors) > kMostCount) {
      trace.skip(lines.number(), "no number of processors");
    } else if (value[kStatus] >= 2 && value[kStatus] <= 4) {
      trace.skip(lines.number(), "a part of a job that has a line of its own");
    } else {
      TraceJob job;
      job.submit = value[kSubmit];
      job.runtime = value[kRuntime];
      if (value[kAskedSeconds] > 0) {
        job.limit_minutes = static_cast<std::uint32_t>(
            std::min<std::int64_t>((value[kAskedSeconds] + 59) / 60, 60L * 24 * 3650));
      }
      job.user = static_cast<std::uint32_t>(std::clamp<std::int64_t>(value[kUser], 0, 1 << 30));
      job.line = lines.number();
      Ask ask;
      ask.tasks = static_cast<std::uint32_t>(processors);
      if (value[kAskedMemory] > 0) {
        ask.memory_per_cpu_mb = static_cast<std::uint64_t>((value[kAskedMemory] + 1023) / 1024);
      }
      if (value[kQueue] >= 0) ask.partition = std::to_string(value[kQueue]);
      job.ask = trace.intern(std::move(ask));
      trace.jobs.push_back(job);
    }
  }
  return trace;
}

}  // namespace berth::simulate
