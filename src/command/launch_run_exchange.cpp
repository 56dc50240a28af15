// What tasks of a step tell each other passes here, the root of the tree; and what srun says when
// one of them ends it for all.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "command/launch_run.h"
#include "launch/errands.h"

namespace berth::command {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t kMostOfALine = 300;

/// The last line with something in it, as far as it is worth repeating.
std::string last_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find_last_not_of(" \t\r\n");
    if (end == std::string_view::npos) return {};
    text = text.substr(0, end + 1);
    const std::size_t before = text.rfind('\n');
    const std::string_view line = before == text.npos ? text : text.substr(before + 1);
    if (!line.empty()) return std::string(line.substr(0, kMostOfALine));
    text = text.substr(0, before);
  }
  return {};
}

}  // namespace

void StepRun::send_to_all(const std::string& frame) {
  for (Link& link : links_) {
    if (link.over()) continue;
    link.wire.send_kept(frame);  // also to those that are not there yet
    flush(link);
  }
}

void StepRun::tell_layout() {
  if (std::exchange(layout_told_, true)) return;
  wire::StepLayout layout;
  for (const Node& node : nodes_) {
    wire::NodeRanks& one = *layout.add_nodes();
    one.set_name(node.what.name);
    for (const std::uint32_t rank : node.what.ranks) one.add_ranks(rank);
  }
  layout.set_universe(options_.ntasks);
  if (options_.spawned) {
    *layout.mutable_given() = options_.spawned->tasks.given();
    layout.set_spawner(options_.spawned->tasks.spawner());
  }
  send_to_all(wire::framed(layout));
}

void StepRun::take_exchange(wire::Exchange part) {
  const auto whole = exchanges_.add(std::move(part));
  if (whole) {
    if (*whole) send_to_all(wire::framed(**whole));
    return;
  }
  if (ending_ != Ending::no) return;
  error(std::string(whole.error().what()));
  say({Severity::plain, whole.error().hint}, "berth");
  failed_to_run_ = true;
  failure_ended_it_ = true;
  end_step(SIGTERM);
}

void StepRun::take_errand(const wire::Errand& errand) {
  if (!errand.to().empty()) {
    if (!deliver(errand) && !errand.answer()) deliver(launch::unanswered(errand));
    return;
  }
  if (errand.answer()) return;
  if (errand.channel() == launch::kPauseChannel) return take_pause(errand);
  if (errand.channel() == launch::kSpawnChannel) return spawn(errand);
  if (errand.channel() != launch::kNameChannel) {
    deliver(launch::unanswered(errand));
    return;
  }
  const auto question = launch::read_question(errand.data());
  answer_errand(errand, question ? names_.answer(*question) : pass(question.error()));
}

bool StepRun::deliver(const wire::Errand& errand) {
  for (const Node& node : nodes_) {
    if (node.what.name != errand.to() || node.over()) continue;
    Link& link = links_[node.link];
    link.wire.send_kept(wire::framed(errand));  // also to one that is late
    flush(link);
    return true;
  }
  return false;
}

void StepRun::take_pause(const wire::Errand& news) {
  const auto now = steady_clock::now();
  const bool paused = news.data() == launch::kPaused;
  if (paused) {
    grace_.pause(news.from(), now);
  } else {
    grace_.go_on(news.from(), now);
  }
}

void StepRun::take_abort(const wire::AbortStep& abort) {
  if (abort_code_ || options_.attached) return;
  abort_code_ = (abort.code() & 0xff) == 0 ? 1 : abort.code() & 0xff;
  error(fmt::format("task {} on {} aborted the step with code {}{}{}", abort.rank(),
                    node_of(abort.rank()), abort.code(), abort.text().empty() ? "" : ": ",
                    last_line(abort.text())));
  if (ending_ != Ending::no) return;
  failure_ended_it_ = true;
  tell_cancelled("TO TASK FAILURE");
  end_step(SIGTERM);
}

void StepRun::remember_error_line(std::uint32_t rank, std::string_view text) {
  if (std::string line = last_line(text); !line.empty()) last_error_[rank] = std::move(line);
}

void StepRun::note_failure(std::uint32_t rank, int status) {
  if (status == 0 || first_failed_ || spawned_failed_first_) return;
  first_failed_ = {rank, status};
  if (options_.failure_grace && !options_.kill_on_bad_exit) {
    grace_.begin(steady_clock::now(), *options_.failure_grace);
  }
}

/// Who failed first, and what it said last: what somebody who finds the step gone wants to know.
void StepRun::tell_first_failure() {
  if (!first_failed_) return;
  const auto [rank, status] = *first_failed_;
  std::string text =
      fmt::format("task {} on {} failed first: {}", rank, node_of(rank), end_of_task(status));
  if (const auto said = last_error_.find(rank); said != last_error_.end()) {
    text += fmt::format("; its last line on standard error: {}", said->second);
  }
  say({Severity::plain, text}, "berth");
}

void StepRun::grace_is_over() {
  grace_.forget();
  if (left_ == 0 || ending_ != Ending::no || options_.attached ||
      exits_.count() >= options_.ntasks) {
    return;
  }
  tell_exits();
  info(fmt::format("Terminating StepId={}", step_name_));
  tell_first_failure();
  say({Severity::plain,
       fmt::format("the other tasks were still there {} s later and are ended; srun "
                   "--kill-on-bad-exit=0 lets them go on",
                   options_.failure_grace->count())},
      "berth");
  failure_ended_it_ = true;
  grace_ended_it_ = true;
  tell_cancelled("TO TASK FAILURE");
  end_step(SIGTERM);
}

}  // namespace berth::command
