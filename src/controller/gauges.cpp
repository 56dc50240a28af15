#include "controller/gauges.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "controller/reader.h"
#include "text/hostlist.h"
#include "wire/job_list.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::controller {
namespace {

/// In one question.
constexpr std::size_t kMostSteps = 1000;

/// extern, batch and interactive before the numbered ones, as sstat -a lists them.
bool in_listed_order(const wire::StepInfo& a, const wire::StepInfo& b) {
  const bool first = a.step_id() >= wire::kInteractiveStep;
  const bool second = b.step_id() >= wire::kInteractiveStep;
  if (first != second) return first;
  return first ? a.step_id() > b.step_id() : a.step_id() < b.step_id();
}

/// The steps of a job that run, in that order.
std::vector<wire::StepInfo> steps_of(const JobView& job) {
  std::vector<wire::StepInfo> steps;
  for (const StepView& view : job.steps) {
    wire::StepInfo step;
    if (step.ParseFromString(*view.info)) steps.push_back(std::move(step));
  }
  std::ranges::sort(steps, in_listed_order);
  return steps;
}

/// Those that a name without a step means: all, or the lowest numbered one.
void choose(const wire::JobName& name, bool all, std::vector<wire::StepInfo>& steps) {
  if (name.has_step()) {
    std::erase_if(steps, [&](const auto& step) { return step.step_id() != name.step(); });
  } else if (!all) {
    std::erase_if(steps, [](const auto& step) { return step.step_id() >= wire::kInteractiveStep; });
    if (steps.size() > 1) steps.resize(1);
  }
}

std::vector<StepReadings::Node> nodes_of(const Picture& picture, const wire::StepInfo& step) {
  std::vector<StepReadings::Node> nodes;
  const auto names = text::expand_hostlist(step.nodes());
  if (!names) return nodes;
  std::set<std::string> ended;
  if (const auto over = text::expand_hostlist(step.ended_nodes()); over) {
    ended.insert(over->begin(), over->end());
  }
  for (const std::string& name : *names) {
    const auto agent = picture.agents.find(name);
    nodes.push_back({name,
                     agent == picture.agents.end() ? std::nullopt : std::optional(agent->second),
                     ended.contains(name)});
  }
  return nodes;
}

}  // namespace

void add_steps(const Picture& picture, const wire::JobName& name, bool all, const Caller& caller,
               StepReadings::Question& out) {
  wire::AskedSteps& asked = *out.answer.add_asked();
  wire::ListJobs choice;
  *choice.add_ids() = name;
  choice.add_states("all");
  bool found = false;
  bool runs = false;
  for (const auto& job : chosen_jobs(picture, choice, caller, {})) {
    // The components of a heterogeneous job are numbered from its own number on.
    if (name.has_het_offset() && job->id != name.id() + name.het_offset()) continue;
    found = true;
    std::vector<wire::StepInfo> steps = steps_of(*job);
    runs = runs || !steps.empty();
    choose(name, all, steps);
    for (wire::StepInfo& step : steps) {
      wire::MeasuredStep& measured = *asked.add_steps();
      measured.set_denied(!may_touch(caller, job->uid));
      if (!measured.denied()) {
        out.steps.push_back({.attempt = job->attempt,
                             .nodes = nodes_of(picture, step),
                             .ended = std::move(*step.mutable_ended_figures())});
      }
      step.clear_ended_figures();
      if (!picture.disclosure.shows_command_line(caller, job->uid)) wire::take_private(step);
      *measured.mutable_step() = std::move(step);
    }
  }
  if (asked.steps_size() > 0) return;
  asked.set_only_special(runs && !name.has_step());
  if (!asked.only_special()) {
    asked.set_fault(!found ? "no job" : name.has_step() ? "no step" : "no steps");
  }
}

Gauges::Gauges(Front& front, const Published& published, RequestCounts& counts, Refresh refresh)
    : front_(front),
      published_(published),
      counts_(counts),
      refresh_(std::move(refresh)),
      thread_([this] { work(); }) {}

Gauges::~Gauges() {
  stop();
}

void Gauges::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Gauges::take(Request request) {
  {
    const std::lock_guard lock(mutex_);
    events_.emplace_back(std::move(request));
  }
  arrived_.notify_one();
}

void Gauges::closed(Peer peer) {
  {
    const std::lock_guard lock(mutex_);
    if (!busy_ && events_.empty()) return;  // every command closes one, and nobody waits for it
    events_.emplace_back(peer);
  }
  arrived_.notify_one();
}

void Gauges::work() {
  for (;;) {
    std::deque<std::variant<Request, Peer>> events;
    {
      std::unique_lock lock(mutex_);
      busy_ = readings_.awaited() > 0;
      const auto ready = [&] { return stopping_ || !events_.empty(); };
      if (const auto next = readings_.next_deadline()) {
        arrived_.wait_until(lock, *next, ready);
      } else {
        arrived_.wait(lock, ready);
      }
      if (stopping_) return;
      events.swap(events_);
      busy_ = true;
    }
    const bool asked = std::ranges::any_of(events, [](const auto& event) {
      const Request* request = std::get_if<Request>(&event);
      return request != nullptr && request->kind == wire::Kind::MeasureSteps;
    });
    if (asked) refresh_(true);  // once for all that came in the meantime
    for (const auto& event : events) {
      if (const Peer* peer = std::get_if<Peer>(&event)) {
        readings_.lost(*peer);
        continue;
      }
      const Request& request = std::get<Request>(event);
      const auto start = std::chrono::steady_clock::now();
      if (request.kind == wire::Kind::MeasureSteps) {
        question(request);
      } else if (const auto m = wire::decode<wire::MeasuredOnNode>(request.payload)) {
        readings_.answered(request.peer, *m);
      }
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - start);
      counts_.count(request.kind, request.caller.uid, static_cast<std::uint64_t>(took.count()));
    }
    readings_.pass_time(std::chrono::steady_clock::now());
    front_.act(readings_.take_acts());
  }
}

void Gauges::question(const Request& request) {
  const auto ask = wire::decode<wire::MeasureSteps>(request.payload);
  if (!ask) return front_.act({.peer = request.peer, .close = true});
  const auto refuse = [&](std::string what, std::string hint) {
    wire::StepsMeasured refused;
    *refused.mutable_refusal() =
        wire::to_refusal(fail(Code::limit, std::move(what), std::move(hint)).error());
    front_.act({.peer = request.peer, .bytes = wire::framed(refused), .answered = true});
  };
  StepReadings::Question question;
  question.peer = request.peer;
  question.with_pids = ask->with_pids();
  for (const wire::JobName& name : ask->steps()) {
    // The lock is taken for each: the state thread needs it to publish.
    published_.read([&](const Picture& picture) {
      add_steps(picture, name, ask->all_steps(), request.caller, question);
    });
    if (question.steps.size() > kMostSteps ||
        static_cast<std::size_t>(question.answer.asked_size()) > kMostSteps) {
      return refuse(fmt::format("More than {} steps are asked for at once", kMostSteps),
                    "ask for fewer at a time");
    }
  }
  if (!readings_.ask(std::move(question), std::chrono::steady_clock::now())) {
    refuse("Too many steps are being looked at", "try again in a few seconds");
  }
}

}  // namespace berth::controller
