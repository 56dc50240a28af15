#include "controller/info_history.h"

#include <fmt/format.h>

#include <algorithm>

#include "controller/info_job.h"
#include "job/ranges.h"
#include "job/record.h"
#include "request/parse.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"
#include "wire/job_list.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::controller {
namespace {

using request::Opt;

constexpr std::size_t kPage = 500;

std::optional<request::Command> command_of(std::string_view name) {
  if (name == "sbatch") return request::Command::sbatch;
  if (name == "srun") return request::Command::srun;
  if (name == "salloc") return request::Command::salloc;
  return std::nullopt;
}

void read_texts(job::Submission& out) {
  out.qos = out.text(Opt::qos);
  out.reservation = out.text(Opt::reservation);
  out.licenses = out.text(Opt::licenses);
  out.wckey = out.text(Opt::wckey);
  out.comment = out.text(Opt::comment);
  out.extra = out.text(Opt::extra);
}

wire::HistoryStep step_of(const wire::JobInfo& job, const wire::StepRecord& record) {
  wire::HistoryStep out;
  wire::StepInfo& step = *out.mutable_step();
  step.set_job_id(record.job_id());
  step.set_step_id(record.step_id());
  step.set_name(record.name());
  step.set_uid(job.uid());
  step.set_user(job.user());
  step.set_state(record.state());
  step.set_partition(job.partition());
  step.set_start_time(record.start_time());
  step.set_nodes(record.nodes());
  step.set_node_count(record.node_count());
  step.set_cpus(record.cpus());
  step.set_tasks(record.tasks());
  step.set_tres(record.tres());
  step.set_submit_line(record.submit_line());
  if (job.has_array_job_id() && job.has_array_task_id()) {
    step.set_array_job_id(job.array_job_id());
    step.set_array_task_id(job.array_task_id());
  }
  out.set_end_time(record.end_time());
  out.set_exit_status(record.exit_status());
  out.set_state(record.state());
  out.set_user_microseconds(record.use().user_microseconds());
  out.set_system_microseconds(record.use().system_microseconds());
  out.set_max_rss_kb(record.use().max_rss_kb());
  out.set_max_rss_rank(record.use().max_rss_rank());
  out.set_total_rss_kb(record.use().total_rss_kb());
  if (record.use().has_figures()) *out.mutable_figures() = record.use().figures();
  return out;
}

/// batch, interactive and extern come before the numbered ones.
bool step_before(const wire::HistoryStep& a, const wire::HistoryStep& b) {
  const auto rank = [](std::uint32_t id) {
    return id == wire::kBatchStep         ? 0
           : id == wire::kInteractiveStep ? 1
           : id == wire::kExternStep      ? 2
                                          : 3;
  };
  const int first = rank(a.step().step_id());
  const int second = rank(b.step().step_id());
  return first != second ? first < second : a.step().step_id() < b.step().step_id();
}

bool ran_on(const wire::JobRecord& record, const wire::ListHistory& ask) {
  if (ask.nodes_size() == 0) return true;
  return std::ranges::any_of(record.allocation().nodes(), [&](const wire::NodeShare& share) {
    return std::ranges::find(ask.nodes(), share.node()) != ask.nodes().end();
  });
}

/// Does a name mean this row? The store knows ids and single tasks; sets and the indices of a
/// pending rest are looked at here. `task` is set when one index of a rest is meant.
bool named(const wire::JobRecord& record, const wire::ListHistory& ask,
           std::optional<std::uint32_t>& task) {
  if (ask.ids_size() == 0) return true;
  for (const wire::JobName& name : ask.ids()) {
    const bool of_array = record.has_array_job_id() && record.array_job_id() == name.id();
    if (!name.array_set().empty()) {
      std::string_view set = name.array_set();
      if (set.starts_with('[')) set.remove_prefix(1);
      if (set.ends_with(']')) set.remove_suffix(1);
      const std::optional<Bits> wanted = job::parse_ranges(set.substr(0, set.find('%')));
      if (!of_array || !wanted) continue;
      if (record.has_array_task_id() ? wanted->test(record.array_task_id())
                                     : !record.array_rest().empty()) {
        return true;
      }
      continue;
    }
    if (!name.has_array_task()) {
      if (record.id() == name.id() || of_array ||
          (record.has_het_job_id() && record.het_job_id() == name.id())) {
        return true;
      }
      continue;
    }
    if (!of_array) continue;
    if (record.has_array_task_id()) {
      if (record.array_task_id() == name.array_task()) return true;
      continue;
    }
    const std::optional<Bits> rest = job::parse_ranges(record.array_rest());
    if (rest && rest->test(name.array_task())) {
      task = name.array_task();
      return true;
    }
  }
  return false;
}

}  // namespace

Result<store::Filter> HistoryAnswer::filter_of(const wire::ListHistory& ask, const Caller& caller) {
  store::Filter filter;
  for (const wire::JobName& name : ask.ids()) {
    store::FilterId id;
    id.id = name.id();
    if (name.has_array_task()) id.array_task = name.array_task();
    if (name.has_het_offset()) id.het_offset = name.het_offset();
    filter.ids.push_back(id);
  }
  for (const std::string& user : ask.users()) {
    const auto number = text::parse_number(user, UINT32_MAX);
    const auto uid =
        number ? std::optional(static_cast<std::uint32_t>(*number)) : users_.uid_of(user);
    if (!uid) return fail(Code::bad_value, fmt::format("Invalid user id: {}", user));
    filter.uids.push_back(*uid);
  }
  if (filter.uids.empty() && !ask.all_users()) filter.uids.push_back(caller.uid);
  if (!site_->disclosure.jobs && !caller.privileged) filter.uids = {caller.uid};
  // Flags are no states of rows: the command filters by them.
  const bool bases = std::ranges::all_of(
      ask.states(), [](const std::string& state) { return job::base_of(state).has_value(); });
  if (bases) filter.states = {ask.states().begin(), ask.states().end()};
  filter.partitions = {ask.partitions().begin(), ask.partitions().end()};
  filter.accounts = {ask.accounts().begin(), ask.accounts().end()};
  filter.names = {ask.names().begin(), ask.names().end()};
  filter.from = ask.from();
  filter.until = ask.until();
  filter.earlier_runs = ask.duplicates();
  filter.most = kPage;
  return filter;
}

std::shared_ptr<const job::Submission> HistoryAnswer::submission_of(
    const store::JobRow& row, const wire::Asked* asked) const {
  auto out = std::make_shared<job::Submission>();
  out->job_name = row.name;
  out->account = row.account;
  if (asked == nullptr) return out;
  out->submit_line = asked->submit_line();
  out->directory = asked->directory();
  out->host = asked->host();
  out->session = asked->session();
  const auto command = command_of(asked->command());
  if (!command) return out;
  request::Surroundings around;
  for (const wire::Variable& variable : asked->environment()) {
    around.environment[variable.name()] = variable.value();
  }
  for (const wire::NamedFile& file : asked->files()) around.files[file.name()] = file.content();
  around.is_root = around.stored = true;  // it was allowed once
  around.multiple_sharing_gres = site_->cluster.settings.multiple_sharing_gres;
  around.cluster_name = site_->cluster_name;
  around.mpi_types = site_->mpi_types;
  std::vector<std::string> words(asked->words().begin(), asked->words().end());
  const auto program = static_cast<std::ptrdiff_t>(request::first_argument(*command, words));
  words.insert(words.begin() + program, row.record.overrides().begin(),
               row.record.overrides().end());
  Result<request::Parsed> parsed = request::parse(*command, words, asked->script(), around);
  if (!parsed || row.record.component() >= parsed->components.size()) return out;
  out->request = std::move(parsed->components[row.record.component()]);
  out->directory =
      text::absolute(out->request.chdir.value_or(asked->directory()), asked->directory());
  if (!out->request.argv.empty() && !out->request.wrap) {
    out->command_path = *command == request::Command::sbatch
                            ? text::absolute(out->request.argv.front(), asked->directory())
                            : out->request.argv.front();
  }
  read_texts(*out);
  return out;
}

Result<void> HistoryAnswer::add_job(const store::JobRow& row, wire::HistoryReply& reply) {
  const wire::ListHistory& ask = ask_;
  const std::int64_t now = now_;
  const wire::JobRecord& record = row.record;
  std::optional<std::uint32_t> task;
  if (!ran_on(record, ask) || !named(record, ask, task)) return {};

  const auto key = std::pair(record.asked_blob(), record.component());
  auto known = record.overrides().empty() ? read_.find(key) : read_.end();
  const bool texts = (ask.with_script() || ask.with_environment()) &&
                     Disclosure::shows_script(caller_, record.uid());
  std::optional<wire::Asked> asked;
  if (known == read_.end() || texts) {
    if (Result<wire::Asked> found = history_.asked(record.asked_blob())) asked = *std::move(found);
  }
  job::Job job = job::from_record(site_->cluster, record);
  if (known != read_.end()) {
    job.what = known->second;
  } else {
    job.what = submission_of(row, asked ? &*asked : nullptr);
    if (record.overrides().empty()) read_.emplace(key, job.what);
  }
  job.batch = job.what->request.command == request::Command::sbatch;
  job.requeue = record.has_requeue() ? record.requeue() : site_->job_requeue;

  wire::HistoryJob& out = *reply.add_jobs();
  *out.mutable_job() = job_info({site_->cluster, site_->tracked, users_}, job, now);
  out.mutable_job()->set_name(row.name);
  out.mutable_job()->set_pending_reasons(job.waits.text(now));
  out.mutable_job()->set_account(row.account);
  if (task) {
    out.mutable_job()->set_array_task_id(*task);
    out.mutable_job()->clear_array_tasks();
  }
  out.set_cancelled(record.cancelled());
  out.set_ended_by(record.ended_by());
  if (texts && ask.with_script() && asked) out.set_script(asked->script());
  if (texts && ask.with_environment() && asked) {
    std::string environment;
    for (const wire::Variable& variable : asked->environment()) {
      environment += variable.name() + "=" + variable.value() + "\n";
    }
    out.set_environment(std::move(environment));
  }
  const bool all = site_->disclosure.shows_command_line(caller_, record.uid());
  if (!all) wire::take_private(*out.mutable_job());
  if (!ask.with_steps() || record.attempt() == 0) return {};
  Result<std::vector<wire::StepRecord>> steps = history_.steps(record.id(), record.attempt());
  if (!steps) return pass(std::move(steps.error()));
  for (const wire::StepRecord& step : *steps) *out.add_steps() = step_of(out.job(), step);
  if (!job::ended(job.base) || job.flags.completing) {
    for (wire::StepInfo& step : running_(record.id())) {
      wire::HistoryStep& live = *out.add_steps();
      live.set_state("RUNNING");
      *live.mutable_step() = std::move(step);
    }
  }
  if (!all) {
    for (wire::HistoryStep& step : *out.mutable_steps()) wire::take_private(*step.mutable_step());
  }
  std::ranges::stable_sort(*out.mutable_steps(), step_before);
  return {};
}

Result<void> HistoryAnswer::begin(wire::ListHistory ask, const Caller& caller, std::int64_t now) {
  Result<store::Filter> filter = filter_of(ask, caller);
  if (!filter) return pass(std::move(filter.error()));
  filter_ = std::move(*filter);
  ask_ = std::move(ask);
  caller_ = caller;
  now_ = now;
  return {};
}

wire::HistoryReply HistoryAnswer::next() {
  wire::HistoryReply reply;
  const auto refused = [](const Error& error) {
    wire::HistoryReply why;
    *why.mutable_refusal() = wire::to_refusal(error);
    return why;
  };
  reply.set_now(now_);
  reply.set_cluster_name(site_->cluster_name);
  read_.clear();
  Result<store::Page> page = history_.jobs(filter_);
  if (!page) return refused(page.error());
  filter_.after = page->next;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < page->jobs.size(); ++i) {
    const int before = reply.jobs_size();
    if (Result<void> added = add_job(page->jobs[i], reply); !added) return refused(added.error());
    if (reply.jobs_size() > before) bytes += reply.jobs(before).ByteSizeLong();
    if (bytes >= kPageBytes && i + 1 < page->jobs.size()) {
      filter_.after = page->jobs[i].key;
      break;
    }
  }
  read_.clear();
  reply.set_more(filter_.after != 0);
  return reply;
}

}  // namespace berth::controller
