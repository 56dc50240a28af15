#include "command/submit_wait.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>

#include "command/controller_client.h"
#include "command/messages.h"
#include "text/number.h"

namespace berth::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

/// How long the owner of a job looks for a controller that went away.
constexpr auto kReturnPatience = seconds(90);
constexpr auto kAnswerPatience = seconds(5);
/// A job that starts sooner never was in the queue, to the eye.
constexpr auto kSilence = milliseconds(300);

class Waiting {
 public:
  Waiting(ControllerLink& link, SignalFd& signals, JobWait& wait)
      : link_(link), signals_(signals), wait_(wait), began_(steady_clock::now()) {}

  Result<wire::JobGrant> run() {
    while (true) {
      while (auto frame = link_.next()) {
        auto granted = take(*frame);
        if (!granted) return pass(std::move(granted.error()));
        if (*granted) return std::move(**granted);
      }
      if (auto problem = late()) return pass(std::move(*problem));
      std::array<pollfd, 2> polled = {pollfd{signals_.fd(), POLLIN, 0},
                                      pollfd{link_.fd(), link_.events(), 0}};
      ::poll(polled.data(), polled.size(), timeout());
      while (const auto signal = signals_.take()) {
        if (*signal == SIGCONT || *signal == SIGWINCH || *signal == SIGCHLD) continue;
        give_up();
        return revoked();
      }
      if (link_.connected()) {
        link_.flush();
      } else {
        link_.try_again();
      }
    }
  }

 private:
  /// The job is not wanted any more: the controller is told, or it would stay for a while.
  void give_up() {
    wire::CancelJobs ask;
    ask.add_jobs()->set_id(wait_.job_id);
    link_.send(ask);
    const Moment until = steady_clock::now() + kAnswerPatience;
    while (link_.connected() && steady_clock::now() < until) {
      while (auto frame = link_.next()) {
        if (frame->kind == wire::Kind::Results || frame->kind == wire::Kind::Done) return;
      }
      pollfd polled{link_.fd(), link_.events(), 0};
      ::poll(&polled, 1, 100);
      link_.flush();
    }
  }

  Result<std::optional<wire::JobGrant>> take(const wire::Frame& frame) {
    switch (frame.kind) {
      case wire::Kind::JobGrant: {
        auto grant = net::Client::reply_in<wire::JobGrant>(frame);
        if (!grant) return pass(std::move(grant.error()));
        wait_.waited = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began_);
        if (queued_) say(fmt::format("job {} has been allocated resources", wait_.job_id));
        return std::optional<wire::JobGrant>(std::move(*grant));
      }
      case wire::Kind::JobWaits:
        if (const auto waits = wire::decode<wire::JobWaits>(frame.payload)) queued(*waits);
        break;
      case wire::Kind::Notice:
        if (const auto notice = wire::decode<wire::Notice>(frame.payload)) {
          print_message(wire::from_line(notice->line()), wait_.program);
        }
        break;
      case wire::Kind::JobEnded: {
        return ended(wire::decode<wire::JobEnded>(frame.payload).value_or(wire::JobEnded()));
      }
      case wire::Kind::Done:
        if (const auto done = wire::decode<wire::Done>(frame.payload);
            done && done->has_refusal()) {
          return pass(wire::from_refusal(done->refusal()));
        }
        break;
      default:
        return net::Client::unexpected_frame(frame);
    }
    return std::nullopt;
  }

  void tell_queued() {
    if (queued_) return;
    queued_ = true;
    if (wait_.program == "salloc") say(fmt::format("Pending job allocation {}", wait_.job_id));
    say(fmt::format("job {} queued and waiting for resources", wait_.job_id));
  }

  void queued(const wire::JobWaits& waits) {
    const bool size = waits.reason().starts_with("Partition") &&
                      waits.reason() != "PartitionDown" && waits.reason() != "PartitionInactive";
    if (size && !size_told_) say("Requested partition configuration not available now");
    size_told_ = size_told_ || size;
    tell_queued();
    if (!waits.text().empty() && waits.text() != told_ && !wait_.quiet) {
      print_hint(fmt::format("job {} waits: {}", wait_.job_id, waits.text()));
      told_ = waits.text();
    }
  }

  std::unexpected<Error> ended(const wire::JobEnded& end) {
    if (wait_.immediate && (end.state() == "FAILED" || end.reason() == "Immediate")) return busy();
    return revoked();
  }

  /// Somebody cancelled it: the user with Ctrl-C, or another command.
  std::unexpected<Error> revoked() {
    Error error;
    error.code = Code::job_completed;
    if (wait_.program == "srun") {
      error.messages.push_back(
          {Severity::plain, fmt::format("Force Terminated JobId={}", wait_.job_id)});
    }
    error.messages.push_back(
        {Severity::plain, fmt::format("Job allocation {} has been revoked.", wait_.job_id)});
    return std::unexpected(std::move(error));
  }

  /// In salloc its own wait runs out, and it says so in its own words.
  [[nodiscard]] std::unexpected<Error> busy() const {
    const std::string_view why =
        wait_.program == "salloc" ? "Connection timed out" : slurm_text(Code::nodes_busy);
    return fail(Code::nodes_busy, fmt::format("Unable to allocate resources: {}", why),
                "--immediate gives up when the job cannot start at once; leave it out to wait");
  }

  std::optional<Error> late() {
    if (steady_clock::now() - began_ >= kSilence) tell_queued();
    if (wait_.immediate && steady_clock::now() - began_ > *wait_.immediate) {
      give_up();
      return busy().error();
    }
    if (!link_.connected() && link_.away() > kReturnPatience) return lost_controller();
    return std::nullopt;
  }

  [[nodiscard]] int timeout() const {
    if (const auto retry = link_.until_try()) return static_cast<int>(retry->count()) + 1;
    if (!wait_.immediate) return -1;
    const auto left =
        std::chrono::duration_cast<milliseconds>(*wait_.immediate - (steady_clock::now() - began_));
    return static_cast<int>(std::max<milliseconds::rep>(left.count(), 0)) + 1;
  }

  void say(const std::string& text) const {
    if (!wait_.quiet) print_info(text, wait_.program);
  }

  ControllerLink& link_;
  SignalFd& signals_;
  JobWait& wait_;
  Moment began_;
  bool queued_ = false;
  bool size_told_ = false;
  std::string told_;
};

}  // namespace

Result<wire::JobGrant> wait_for_job(ControllerLink& link, SignalFd& signals, JobWait& wait) {
  wire::ReclaimJob reclaim;
  reclaim.set_job_id(wait.job_id);
  reclaim.set_token(wait.token);
  link.on_return([reclaim](net::Client& client) { client.queue(reclaim); });
  return Waiting(link, signals, wait).run();
}

Result<wire::JobGrant> watch_job(ControllerLink& link, SignalFd& signals, JobWait& wait) {
  wire::GetAllocation ask;
  ask.set_job_id(wait.job_id);
  link.on_return([ask](net::Client& client) { client.queue(ask); });
  const Moment began = steady_clock::now();
  bool queued = false;
  milliseconds pause(20);
  while (true) {
    link.send(ask);
    const Moment until = steady_clock::now() + kReturnPatience;
    std::optional<wire::Frame> frame;
    while (!(frame = link.next())) {
      if (steady_clock::now() > until) return pass(lost_controller());
      std::array<pollfd, 2> polled = {pollfd{signals.fd(), POLLIN, 0},
                                      pollfd{link.fd(), link.events(), 0}};
      ::poll(polled.data(), polled.size(), link.connected() ? 1000 : 100);
      // The job stays in the queue: it has no owner.
      while (const auto signal = signals.take()) {
        if (*signal != SIGCONT && *signal != SIGCHLD) {
          return fail(Code::job_completed, fmt::format("stopped by signal {}", *signal),
                      fmt::format("job {} stays in the queue; scancel {} ends it", wait.job_id,
                                  wait.job_id));
        }
      }
      if (link.connected()) {
        link.flush();
      } else {
        link.try_again();
      }
    }
    auto grant = net::Client::reply_in<wire::JobGrant>(*frame);
    wait.waited = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
    if (grant) {
      if (queued && !wait.quiet) {
        print_info(fmt::format("job {} has been allocated resources", wait.job_id), wait.program);
      }
      return grant;
    }
    if (grant.error().code == Code::job_completed) {
      return fail(Code::job_completed,
                  fmt::format("Job allocation {} has been revoked.", wait.job_id));
    }
    if (!queued && wait.waited > milliseconds(200)) {
      queued = true;
      if (!wait.quiet) {
        print_info(fmt::format("Pending job allocation {}", wait.job_id), wait.program);
        print_info(fmt::format("job {} queued and waiting for resources", wait.job_id),
                   wait.program);
      }
    }
    ::poll(nullptr, 0, static_cast<int>(pause.count()));
    pause = std::min(pause * 2, milliseconds(1000));
  }
}

std::optional<seconds> immediate_of(const request::Request& request) {
  const request::Given* given = request.given.find(request::Opt::immediate);
  if (given == nullptr) return std::nullopt;
  const auto number = text::parse_number(given->text, 1U << 30);
  return seconds(number && *number > 0 ? *number : 1);
}

}  // namespace berth::command
