// The clock of a script: chains of commands, running steps, waiting steps.
#include "explain/timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace berth::explain {
namespace {

using script::Event;
using script::Launcher;

struct Chain {
  std::vector<const Event*> events;
  std::size_t next = 0;
  bool started = false;
  std::vector<std::size_t> children;
  std::optional<std::size_t> busy;  // the run it stands at
  std::size_t ended_children = 0;   // when a `wait -n` began
  bool in_wait_any = false;

  [[nodiscard]] bool ended() const { return started && next >= events.size(); }
};

class Clock {
 public:
  Clock(const Input& input, const std::vector<place::JobFacts>& facts, const script::Script& script,
        const Environment& environment)
      : input_(input),
        steps_(*input.cluster, facts, input.command == request::Command::salloc),
        script_(script),
        environment_(environment) {
    for (const Event& event : script.events) chains_[event.chain].events.push_back(&event);
  }

  Timeline run() {
    chains_[0].started = true;
    advance(0);
    while (end_first()) {
    }
    for (const std::size_t index : waiting_) out_.runs[index].start = StepStart::never;
    return std::move(out_);
  }

 private:
  /// Goes on with a chain until it has to wait.
  void advance(std::size_t id) {
    Chain& chain = chains_[id];
    while (!chain.busy && chain.next < chain.events.size()) {
      const Event& event = *chain.events[chain.next];
      switch (event.kind) {
        case Event::Kind::run:
          if (script_.commands[event.command].launcher == Launcher::none) {
            ++chain.next;
          } else {
            launch(script_.commands[event.command], id);
          }
          break;
        case Event::Kind::start:
          ++chain.next;
          for (const std::size_t child : event.chains) {
            chain.children.push_back(child);
            chains_[child].started = true;
            advance(child);
          }
          break;
        case Event::Kind::wait_all:
          if (!std::ranges::all_of(chain.children,
                                   [&](std::size_t c) { return chains_[c].ended(); })) {
            return;
          }
          ++chain.next;
          break;
        case Event::Kind::wait_for:
          if (!waited(chain, event)) return;
          ++chain.next;
          break;
      }
    }
  }

  /// Whether what `wait PID…` or `wait -n` waits for has happened.
  bool waited(Chain& chain, const Event& event) {
    if (!event.chains.empty()) {
      return std::ranges::all_of(event.chains, [&](std::size_t c) { return chains_[c].ended(); });
    }
    const auto ended = static_cast<std::size_t>(
        std::ranges::count_if(chain.children, [&](std::size_t c) { return chains_[c].ended(); }));
    if (ended == chain.children.size()) return true;
    if (!chain.in_wait_any) {
      chain.in_wait_any = true;
      chain.ended_children = ended;
    }
    if (ended == chain.ended_children) return false;
    chain.in_wait_any = false;
    return true;
  }

  void launch(const script::Command& command, std::size_t chain) {
    if (out_.runs.size() >= kMaxSteps) {
      // What is here is followed to its end; nothing more begins.
      out_.truncated = true;
      chains_[chain].next = chains_[chain].events.size();
      return;
    }
    const std::size_t index = out_.runs.size();
    Run& run = out_.runs.emplace_back();
    chain_of_.push_back(chain);
    run.command = &command;
    run.inherited = environment_;
    for (const auto& [name, value] : *command.environment) {
      if (value) {
        run.inherited[name] = *value;
      } else {
        run.inherited.erase(name);
      }
    }
    for (const auto& [name, value] : command.assignments) run.inherited[name] = value;
    chains_[chain].busy = index;
    steps_.prepare(run, input_.around);
    const bool places = command.launcher == Launcher::srun || command.launcher == Launcher::mpirun;
    if (!places || !steps_.makes_step(run)) {
      complete(index);
    } else if (!try_start(index)) {
      waiting_.push_back(index);
    }
  }

  /// The chain that stands at a run goes on behind it.
  void complete(std::size_t index) {
    Chain& chain = chains_[chain_of_[index]];
    chain.busy.reset();
    ++chain.next;
  }

  /// Places the step; true when it needs no more waiting (it runs, or is refused).
  bool try_start(std::size_t index) {
    Run& run = out_.runs[index];
    place::StepPlan plan = steps_.place(run);
    if (plan.verdict == place::StepVerdict::waits) {
      if (!run.plan) run.waits_why = plan.waits_for;
      run.start = StepStart::waits;
      run.plan = std::move(plan);
      return false;
    }
    for (const std::size_t other : running_) run.beside.push_back(out_.runs[other].plan->id);
    plan.waits_for_steps = run.waits_for;
    run.plan = std::move(plan);
    if (run.plan->verdict == place::StepVerdict::refused) {
      run.start = StepStart::refused;
      complete(index);
    } else {
      running_.push_back(index);
    }
    return true;
  }

  /// Ends the step that started first, and lets everything that waited for it go on.
  bool end_first() {
    if (running_.empty()) return false;
    const std::size_t index = running_.front();
    running_.erase(running_.begin());
    const std::uint32_t id = out_.runs[index].plan->id;
    steps_.finish(out_.runs[index]);
    complete(index);
    retry(id);
    bool progress = true;
    while (progress) {  // waits may end one another
      progress = false;
      for (auto& [chain_id, chain] : chains_) {
        const std::size_t before = chain.next;
        if (chain.started && !chain.busy) advance(chain_id);
        progress = progress || chain.next != before;
      }
    }
    return true;
  }

  /// Tries the waiting steps again after step `ended`, in order of arrival. A request that has just
  /// failed is not tried twice.
  void retry(std::uint32_t ended) {
    std::set<std::string_view> failed;  // keys; runs stay where they are
    std::vector<std::size_t> left;
    bool any_started = false;
    for (const std::size_t index : waiting_) {
      std::vector<std::uint32_t>& waits_for = out_.runs[index].waits_for;
      waits_for.push_back(ended);
      const std::string& key = out_.runs[index].key;
      if (!failed.contains(key) && try_start(index)) {
        any_started = true;
        continue;
      }
      failed.insert(key);
      waits_for.pop_back();
      left.push_back(index);
    }
    // What another waiting step took did not help those behind it.
    if (!any_started) {
      for (const std::size_t index : left) out_.runs[index].waits_for.push_back(ended);
    }
    waiting_ = std::move(left);
  }

  const Input& input_;
  JobSteps steps_;
  const script::Script& script_;
  const Environment& environment_;
  std::map<std::size_t, Chain> chains_;
  std::vector<std::size_t> chain_of_;  // of each run
  std::vector<std::size_t> running_;   // in order of start
  std::vector<std::size_t> waiting_;   // in order of arrival
  Timeline out_;
};

}  // namespace

Timeline follow(const Input& input, const std::vector<place::JobFacts>& facts,
                const script::Script& script, const Environment& environment) {
  return Clock(input, facts, script, environment).run();
}

}  // namespace berth::explain
