// A list of jobs as a controller would send it, and names of jobs as users write them: what is
// split is what a whole reading finds, and what is read as a name is written so that it reads the
// same.
#include "wire/job_list.h"

#include <cstdint>
#include <cstdlib>

#include "wire/frame.h"
#include "wire/job_names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::wire;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto whole = decode<JobsReply>(input);
  if (const auto list = split_jobs(input); list && whole) {
    if (list->jobs.size() != static_cast<std::size_t>(whole->jobs_size())) std::abort();
    for (const std::string_view job : list->jobs) {
      if (!decode<JobInfo>(job)) std::abort();
    }
  }
  if (whole) {
    for (JobInfo job : whole->jobs()) {
      JobInfo rest = job;
      JobInfo both = take_brief(rest);
      both.MergeFrom(rest);
      if (both.SerializeAsString().size() != job.SerializeAsString().size()) std::abort();
    }
  }
  for (const std::string_view word : split_job_list(input)) {
    const auto name = parse_job_name(word);
    if (!name) continue;
    const auto again = parse_job_name(shown(*name));
    if (!again || shown(*again) != shown(*name)) std::abort();
  }
  return 0;
}
