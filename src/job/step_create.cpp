// A step of a running job: read, placed against the steps that run, granted, refused, or it waits.
#include <fmt/format.h>

#include <algorithm>

#include "job/memory.h"
#include "job/step_spec.h"
#include "place/cpu_bind.h"
#include "place/step_het.h"
#include "place/step_request.h"
#include "request/kills_step.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "wire/step_ids.h"

namespace berth::job {
namespace {

using request::Opt;

Error refusal(JobId job, Code code, std::string_view text, std::string hint = {}) {
  return fail(code, fmt::format("Unable to create step for job {}: {}", job, text), std::move(hint))
      .error();
}

/// Which component of the job each part of the srun runs in.
Result<std::vector<std::size_t>> groups_of(const std::vector<request::Request>& requests,
                                           std::size_t components) {
  std::vector<std::size_t> out;
  for (std::size_t part = 0; part < requests.size(); ++part) {
    const auto& named = requests[part].het_groups;
    const std::size_t group = !named.empty() ? named.front() : components > part ? part : 0;
    if (group >= components) {
      return fail(Code::bad_value,
                  fmt::format("Requested het-group offset exceeds highest hetjob index ({} > {})",
                              group, components - 1));
    }
    out.push_back(group);
  }
  return out;
}

/// One task on the first node that has all the job has there, and takes nothing from others.
place::StepPlan interactive_plan(const cluster::Cluster& cluster, const place::JobFacts& job) {
  place::JobFacts first = job;
  first.allocation.nodes.resize(std::min<std::size_t>(first.allocation.nodes.size(), 1));
  place::StepPlan plan = place::place_launcher_step(cluster, first);
  plan.id = wire::kInteractiveStep;
  if (plan.nodes.empty()) return plan;
  plan.nodes.front().share = first.allocation.nodes.front();
  plan.tasks.front().gpus = plan.nodes.front().share.gpus();
  return plan;
}

/// What placement sees of the job's nodes as long as this lives. A job's steps run also on a node
/// that takes no new jobs, as when it is drained; only one that is DOWN or silent is out of reach.
class NodesForSteps {
 public:
  NodesForSteps(State::Memory& m, const std::vector<Job*>& components) : m_(m) {
    for (const Job* job : components) {
      for (const cluster::NodeShare& share : job->allocation.nodes) {
        const NodeState& state = m.nodes[share.node];
        cluster::Node& node = m.cluster.nodes[share.node];
        before_.emplace_back(share.node, node.usable);
        node.usable = state.registered && state.responding && !state.down;
        if (!node.usable && !state.down) silent_.push_back(node.name);
      }
    }
  }
  ~NodesForSteps() {
    for (const auto& [index, usable] : before_) m_.cluster.nodes[index].usable = usable;
  }
  NodesForSteps(const NodesForSteps&) = delete;
  NodesForSteps& operator=(const NodesForSteps&) = delete;
  /// Their agents are away, perhaps for a moment.
  [[nodiscard]] const std::vector<std::string>& silent() const { return silent_; }

 private:
  State::Memory& m_;
  std::vector<std::pair<cluster::NodeIndex, bool>> before_;
  std::vector<std::string> silent_;
};

std::string step_name(const request::Request& request, std::string_view kind) {
  if (kind == "interactive") return "interactive";
  if (request.given.on_command_line(Opt::job_name)) return request.job_name.value_or("");
  if (request.argv.empty()) return "";
  const std::string& program = request.argv.front();
  return program.substr(program.rfind('/') + 1);
}

/// --resv-ports=N; every step has at least one.
std::uint32_t ports_asked(const request::Request& request) {
  const request::Given* given = request.given.find(Opt::resv_ports);
  if (given == nullptr) return 1;
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(text::parse_number(given->text, UINT16_MAX).value_or(1), 1));
}

Error no_ports(std::uint32_t asked, const PortRange& range) {
  const std::uint32_t there = range.last - range.first + 1;
  const std::string what =
      fmt::format("--resv-ports={}: steps have the {} ports {}-{} of the node of their first task",
                  asked, there, range.first, range.last);
  if (asked > there) {
    return fail(Code::bad_value, what,
                fmt::format("ask for at most {}, or let the administrator widen "
                            "MpiParams=ports=FIRST-LAST in slurm.conf",
                            there))
        .error();
  }
  return fail(Code::nodes_busy,
              fmt::format("{}, of which no {} in a row are free now", what, asked),
              "ask for fewer, or try again when other steps on that node have ended")
      .error();
}

}  // namespace

/// Tells all nodes of the step where rank 0 is, and the ports that are the step's own there.
std::shared_ptr<const PortLease> State::Memory::meeting_place(std::vector<wire::StepSpec>& specs,
                                                              std::uint32_t count) {
  std::string master;
  for (const wire::StepSpec& spec : specs) {
    for (const wire::TaskSpec& task : spec.tasks()) {
      if (task.rank() == 0) master = spec.node();
    }
  }
  if (master.empty()) return nullptr;
  // Pretended nodes are one machine.
  const auto lease = ports.take(policy.emulated ? "" : master, count);
  for (wire::StepSpec& spec : specs) {
    spec.set_master(master);
    if (!lease) continue;
    spec.set_port(lease->first);
    spec.set_ports(lease->count);
  }
  return lease;
}

void State::create_step(const wire::CreateStep& ask, std::uint64_t key, const Caller& caller,
                        Time now) {
  Memory& m = *m_;
  Job* job = m.find(ask.job_id());
  const auto refuse = [&](Error error) { m.effect(RefuseStep{key, std::move(error)}); };
  if (job == nullptr) {
    return refuse(refusal(ask.job_id(), Code::bad_value, fault_text(JobFault::no_such_job)));
  }
  if (!caller.privileged && caller.uid != job->uid) {
    return refuse(refusal(ask.job_id(), Code::bad_value, fault_text(JobFault::not_yours)));
  }
  if (job->het && job->het->offset > 0) {
    if (Job* leader = m.find(job->het->leader)) job = leader;
  }
  if (ended(job->base) || job->flags.completing) {
    return refuse(refusal(ask.job_id(), Code::job_completed, slurm_text(Code::job_completed)));
  }
  if (!job->running) {
    return refuse(refusal(ask.job_id(), Code::bad_value, "Job is pending execution"));
  }
  if (job->running->steps.next_id() >= m.policy.max_step_count) {
    return refuse(refusal(ask.job_id(), Code::limit, "Step limit reached for this job",
                          fmt::format("MaxStepCount={}", m.policy.max_step_count)));
  }
  WaitingStep waiting;
  waiting.key = key;
  waiting.ask = ask;
  waiting.caller = caller;
  if (!ask.own_job()) {
    const std::vector<std::string> words(ask.asked().words().begin(), ask.asked().words().end());
    auto parsed = request::parse(request::Command::srun, words, "",
                                 surroundings_of(ask.asked(), m, caller, true));
    if (!parsed) return refuse(std::move(parsed.error()));
    waiting.parsed = std::make_shared<const request::Parsed>(std::move(*parsed));
  }
  if (!m.try_step(*job, waiting, now)) job->running->waiting.push_back(std::move(waiting));
}

bool State::Memory::try_step(Job& job, WaitingStep& waiting, Time now) {
  const std::vector<Job*> components = components_of(job);
  std::vector<request::Request> requests;
  if (waiting.ask.own_job()) {
    for (const Job* part : components) requests.push_back(part->what->request);
  } else {
    requests = waiting.parsed->components;
  }
  const auto refuse = [&](Error error) {
    effect(RefuseStep{waiting.key, std::move(error)});
    return true;
  };
  if (job.base == Base::suspended) return false;
  auto component_of = groups_of(requests, components.size());
  if (!component_of) return refuse(std::move(component_of.error()));
  const auto wait = [&](const std::string& text, const std::vector<std::uint32_t>& steps) {
    if (waiting.last_text != text || waiting.last_text.empty()) {
      waiting.last_text = text;
      wire::StepWaits message;
      message.set_text(text);
      for (const std::uint32_t id : steps) message.add_for_steps(id);
      effect(StepMustWait{waiting.key, std::move(message)});
    }
    return false;
  };
  const NodesForSteps view(*this, components);
  const std::uint32_t next = job.running->steps.next_id();
  std::vector<place::StepPlan> parts;
  if (waiting.ask.kind() == "interactive") {
    parts.push_back(interactive_plan(cluster, job.running->facts));
  } else if (!waiting.ask.own_job() && components.size() == 1 && requests.size() > 1) {
    parts = place::place_step_components(cluster, job.running->facts, requests, job.running->steps);
  } else {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Job& part = *components[(*component_of)[i]];
      if (!part.running) return refuse(place::step_error(job.running->facts, Code::job_completed));
      part.running->steps.number_from(next);
      if (waiting.ask.kind() == "launcher") requests[i].external_launcher = true;
      place::StepPlan plan =
          waiting.ask.own_job()
              ? place::place_own_step(cluster, part.running->facts, requests[i])
              : place::place_step(cluster, part.running->facts, requests[i], part.running->steps);
      plan.id = next;
      parts.push_back(std::move(plan));
    }
  }
  const place::StepPlan whole = place::join_components(parts);
  if (whole.verdict == place::StepVerdict::refused) {
    // What the job cannot do without them is not known to be impossible.
    if (!view.silent().empty() && !requests.front().immediate) {
      return wait(fmt::format("{}, which does not respond", text::compress_hostlist(view.silent())),
                  {});
    }
    job.running->steps.start(whole);  // a refused launch may use up its number
    Error error = whole.error;
    error.messages.insert(error.messages.begin(), whole.warnings.begin(), whole.warnings.end());
    return refuse(std::move(error));
  }
  if (whole.verdict == place::StepVerdict::waits) {
    return wait(whole.waits_for, whole.waits_for_steps);
  }
  SpecInput input;
  input.cluster = &cluster;
  input.policy = &policy;
  input.own_job = waiting.ask.own_job();
  input.ask = &waiting.ask.asked();
  input.name = step_name(requests.front(), waiting.ask.kind());
  input.now = now;
  input.adopted = adopted;
  if (requests.front().time_limit && !waiting.ask.own_job() &&
      requests.front().given.on_command_line(Opt::time)) {
    input.time_limit_minutes = *requests.front().time_limit;
  }
  // Parts of a step in an ordinary job all run in it.
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t group = components.size() == 1 ? 0 : (*component_of)[i];
    input.parts.push_back({components[group], &parts[i]});
  }
  std::vector<wire::StepSpec> specs = step_specs(input);
  for (wire::StepSpec& spec : specs) {
    spec.set_oom_kill_step(request::out_of_memory_kills_step(requests.front()));
  }
  const std::shared_ptr<const PortLease> lease =
      whole.launcher || waiting.ask.kind() == "interactive"
          ? nullptr
          : meeting_place(specs, ports_asked(requests.front()));
  if (!lease && requests.front().given.has(Opt::resv_ports) && !whole.launcher &&
      waiting.ask.kind() != "interactive") {
    return refuse(no_ports(ports_asked(requests.front()), policy.ports));
  }
  GrantStep grant;
  grant.key = waiting.key;
  grant.grant.set_job_id(job.id);
  grant.grant.set_step_id(whole.id);
  grant.grant.set_ntasks(whole.ntasks);
  if (input.time_limit_minutes) grant.grant.set_time_limit_minutes(*input.time_limit_minutes);
  for (const Message& message : whole.warnings) {
    wire::Line* line = grant.grant.add_lines();
    line->set_severity(static_cast<std::uint32_t>(message.severity));
    line->set_text(message.text);
  }
  std::vector<std::string> names;
  for (const wire::StepSpec& spec : specs) names.push_back(spec.node());
  grant.grant.set_node_list(text::compress_hostlist(names));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Job& part = *find(input.parts[i].job->id);
    Step& step = part.running->open_steps[whole.id];
    open_step(step, input, parts[i], i, specs);
    step.ports = lease;
    if (components.size() > 1) {
      for (const auto& other : input.parts) step.het_jobs.push_back(other.job->id);
    }
    if (waiting.ask.kind() != "interactive") part.running->steps.start(parts[i]);
    arm(part);
  }
  // All components number their steps together.
  if (whole.id == next) {
    for (Job* part : components) {
      if (part->running) part->running->steps.number_from(next + 1);
    }
  }
  grant.specs = std::move(specs);
  effect(std::move(grant));
  dirty_jobs.insert(job.id);  // its next step id; not worth waiting for the disk
  ++version;
  return true;
}

void State::Memory::retry_waiting(Job& job, Time now) {
  if (!job.running) return;
  if (job.het && job.het->offset > 0) {
    if (Job* leader = find(job.het->leader); leader != nullptr && leader->id != job.id) {
      retry_waiting(*leader, now);
    }
    return;
  }
  std::vector<WaitingStep> before = std::exchange(job.running->waiting, {});
  for (WaitingStep& waiting : before) {
    if (!try_step(job, waiting, now)) job.running->waiting.push_back(std::move(waiting));
  }
}

void State::drop_waiting_step(std::uint64_t key) {
  for (auto& [id, job] : m_->jobs) {
    if (job.running)
      std::erase_if(job.running->waiting, [&](const auto& w) { return w.key == key; });
  }
}

Result<void> State::end_step(JobId id, std::uint32_t step, const Caller& caller, std::string cause,
                             Time now) {
  Memory& m = *m_;
  auto found = own_job(m.find(id), caller);
  if (!found) return pass(std::move(found.error()));
  Job& job = **found;
  if (!job.running || !job.running->open_steps.contains(step)) {
    return pass(job_error(JobFault::already_done));
  }
  m.end_open_step(job, step, cause);
  (void)now;
  return {};
}

void State::Memory::end_open_step(Job& job, std::uint32_t step, const std::string& cause) {
  std::vector<JobId> where = job.running->open_steps.at(step).het_jobs;
  if (where.empty()) where.push_back(job.id);
  for (const JobId one : where) {
    Job* part = find(one);
    if (part == nullptr || !part->running) continue;
    const auto at = part->running->open_steps.find(step);
    if (at == part->running->open_steps.end()) continue;
    Step& open = at->second;
    const bool again = open.ending;
    open.ending = true;
    if (open.cause.empty()) open.cause = cause;
    const std::vector<std::string> there(open.open_nodes.begin(), open.open_nodes.end());
    // scancel of a step kills it at once.
    if (!there.empty()) {
      effect(EndStep{one, part->attempt, step, there, cause, again || cause == "SIGNAL"});
    }
    arm(*part);
  }
}

}  // namespace berth::job
