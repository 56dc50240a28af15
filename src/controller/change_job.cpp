// scontrol update JobId= and StepId=.
#include <fmt/format.h>

#include <algorithm>

#include "controller/change_job_keys.h"
#include "controller/change_results.h"
#include "controller/change_update.h"
#include "text/duration.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::controller {
namespace {

/// The records that JobId= (or JobName= alone) means.
Result<std::vector<job::JobId>> records_meant(job::State& state, const Caller& caller,
                                              const wire::Change& ask, bool& by_name,
                                              job::Time now) {
  const std::string ids = selected(ask, "JobId", 3);
  std::vector<job::JobId> records;
  by_name = ids.empty();
  if (by_name) {
    const std::string name = selected(ask, "JobName", 7);
    for (const auto& [id, job] : state.jobs()) {
      if (job.what->job_name == name && may_touch(caller, job.uid) && !job::ended(job.base)) {
        records.push_back(id);
      }
    }
    if (records.empty()) return pass(job::job_error(job::JobFault::no_such_job));
    return records;
  }
  for (const std::string_view word : wire::split_job_list(ids)) {
    const auto name = wire::parse_job_name(word);
    if (!name || name->has_step()) return pass(job::job_error(job::JobFault::no_such_job));
    const std::vector<job::JobId> known = state.named(*name);
    if (known.empty()) return pass(job::job_error(job::JobFault::no_such_job));
    // Elements are split off only for who may act on them.
    if (const job::Job* first = state.find(known.front());
        first != nullptr && !may_touch(caller, first->uid)) {
      return pass(job::job_error(job::JobFault::not_yours));
    }
    auto picked = state.pick(*name, now);
    if (!picked) return pass(std::move(picked.error()));
    records.insert(records.end(), picked->begin(), picked->end());
  }
  return records;
}

/// NumNodes= and NodeList= of a running job: what it keeps; empty = all. The words are taken out.
Result<std::vector<std::string>> nodes_kept(const job::Job& job, JobUpdate& update) {
  constexpr std::string_view kCount = "--nodes=";
  constexpr std::string_view kList = "--nodelist=";
  std::vector<std::string> keep;
  std::vector<std::string> rest;
  for (std::string& word : update.words) {
    if (word.starts_with(kList)) {
      auto names = text::expand_hostlist(std::string_view(word).substr(kList.size()));
      if (!names || names->empty()) {
        return fail(Code::invalid_node_name, std::string(slurm_text(Code::invalid_node_name)));
      }
      keep = std::move(*names);
    } else if (word.starts_with(kCount)) {
      const auto count = text::parse_number(std::string_view(word).substr(kCount.size()), 65536);
      if (!count || *count == 0 || *count > job.nodes.size()) {
        return fail(Code::bad_value, "Job is no longer pending execution",
                    "a running job can only get smaller");
      }
      if (keep.empty())
        keep.assign(job.nodes.begin(), job.nodes.begin() + static_cast<long>(*count));
    } else {
      rest.push_back(std::move(word));
    }
  }
  update.words = std::move(rest);
  return keep;
}

Result<void> update_record(job::State& state, job::JobId id, const Caller& caller,
                           const wire::Change& ask, bool by_name, const ChangeContext& context,
                           job::Time now) {
  const job::Job* job = state.find(id);
  if (job == nullptr) return pass(job::job_error(job::JobFault::no_such_job));
  if (!may_touch(caller, job->uid)) return pass(job::job_error(job::JobFault::not_yours));
  JobUpdate update;
  for (const wire::Variable& key : ask.keys()) {
    if (is_key(key.name(), "JobId", 3)) continue;
    if (by_name && text::equal_ignoring_case(key.name(), "JobName")) continue;
    if (auto added = add_job_key(update, key.name(), key.value(), *job, now); !added) return added;
  }
  if (job->running && !job->flags.completing) {
    const auto keep = nodes_kept(*job, update);
    if (!keep) return pass(keep.error());
    if (!keep->empty()) {
      if (auto done = state.shrink(id, *keep, caller, now); !done) return done;
    }
  }
  if (!update.words.empty()) {
    const auto asked = context.fetch(job->asked_blob);
    if (!asked) return fail(Code::io, "what the job was submitted with cannot be read");
    if (auto done = state.update_words(id, update.words, *asked, caller, now); !done) {
      if (is_fault(done.error(), job::JobFault::not_pending)) {
        done.error().hint = "what a running job holds cannot be changed; its TimeLimit can";
      }
      return done;
    }
  }
  if (!update.changes_state()) return {};
  return state.change(id, update.change, caller, now);
}

}  // namespace

Result<void> change_job(job::State& state, const Caller& caller, const wire::Change& ask,
                        const ChangeContext& context, job::Time now) {
  bool by_name = false;
  const auto records = records_meant(state, caller, ask, by_name, now);
  if (!records) return pass(records.error());
  if (records->size() == 1) {
    return update_record(state, records->front(), caller, ask, by_name, context, now);
  }
  wire::Results results;
  for_each_record(results, state, *records, [&](job::JobId id) {
    return update_record(state, id, caller, ask, by_name, context, now);
  });
  if (results.jobs().empty()) return {};
  // One line for each job it could not be done to, as Slurm writes them.
  Error error;
  error.code = Code::bad_value;
  for (const wire::JobResult& job : results.jobs()) {
    error.messages.push_back({Severity::bare, fmt::format("{}: {}", job.name(), job.text())});
    if (error.hint.empty()) error.hint = job.hint();
  }
  return std::unexpected(std::move(error));
}

Result<void> change_step(job::State& state, const Caller& caller, const wire::Change& ask,
                         job::Time now) {
  const auto name = wire::parse_job_name(selected(ask, "StepId", 4));
  if (!name) return pass(job::job_error(job::JobFault::no_such_job));
  std::optional<text::TimeLimit> limit;
  for (const wire::Variable& key : ask.keys()) {
    if (is_key(key.name(), "StepId", 4)) continue;
    if (!is_key(key.name(), "TimeLimit", 4)) {
      return fail(
          Code::unsupported,
          fmt::format("Update of this parameter is not supported: {}={}", key.name(), key.value()),
          "of a step only TimeLimit= can be changed");
    }
    limit = text::parse_time_limit(key.value());
    if (!limit) {
      return fail(Code::invalid_time_limit, std::string(slurm_text(Code::invalid_time_limit)));
    }
  }
  if (!limit) return fail(Code::bad_value, "No changes specified", "give TimeLimit=");
  const std::vector<job::JobId> records = state.named(*name);
  if (records.empty()) return pass(job::job_error(job::JobFault::no_such_job));
  const auto minutes =
      limit->unlimited ? std::optional<std::uint32_t>() : std::optional(limit->minutes);
  for (const job::JobId id : records) {
    const job::Job* job = state.find(id);
    if (job == nullptr || !job->running) continue;
    std::vector<std::uint32_t> steps;
    for (const auto& [step, open] : job->running->open_steps) {
      if (!name->has_step() || name->step() == step) steps.push_back(step);
    }
    if (steps.empty()) return pass(job::job_error(job::JobFault::no_such_job));
    for (const std::uint32_t step : steps) {
      if (auto done = state.change_step(id, step, minutes, caller, now); !done) return done;
    }
    return {};
  }
  return pass(job::job_error(job::JobFault::not_running));
}

}  // namespace berth::controller
