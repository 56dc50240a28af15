// What the changes of jobs have in common: names as users write them, and results by job.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "job/state.h"
#include "wire/info.pb.h"

namespace berth::controller {

/// The code of a refusal, with another user's job told apart.
std::string_view code_of(const Error& error);
bool is_fault(const Error& error, job::JobFault fault);

void add_failure(wire::Results& results, std::string name, const Error& error);
void add_done(wire::Results& results);

/// Does something to each record that a name means. An array has records of all ages: those for
/// which it is too late are passed over as long as it was done to one of them.
template <class Act>
void for_each_record(wire::Results& results, const job::State& state,
                     const std::vector<job::JobId>& records, Act act) {
  std::vector<std::pair<std::string, Error>> failures;
  bool any = false;
  for (const job::JobId id : records) {
    const job::Job* job = state.find(id);
    const std::string name = job == nullptr ? std::to_string(id) : job->shown();
    if (Result<void> done = act(id); !done) {
      failures.emplace_back(name, std::move(done.error()));
      continue;
    }
    add_done(results);
    any = true;
  }
  const bool several = records.size() > 1;
  for (const auto& [name, error] : failures) {
    const bool too_late = is_fault(error, job::JobFault::already_done) ||
                          is_fault(error, job::JobFault::not_pending) ||
                          is_fault(error, job::JobFault::not_running);
    if (several && any && too_late) continue;
    add_failure(results, name, error);
    if (several && too_late) return;  // all of them: once is enough
  }
}

}  // namespace berth::controller
