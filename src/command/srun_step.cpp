#include "command/srun_step.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "command/controller_client.h"
#include "command/messages.h"

namespace berth::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::string_view kStepName = "srun";
/// A wait shorter than this is not worth a word: the step before is just being put away.
constexpr auto kStepSilence = milliseconds(300);
/// Slurm's srun asks again after so long, and says so; tools look for the line.
constexpr auto kFirstRetry = seconds(60);
constexpr auto kLaterRetries = seconds(300);
constexpr auto kStepReturnPatience = seconds(90);

class StepWaiting {
 public:
  StepWaiting(ControllerLink& link, SignalFd& signals, const StepWait& wait)
      : link_(link), signals_(signals), wait_(wait), began_(steady_clock::now()) {}

  Result<wire::StepGrant> run() {
    link_.send(wait_.ask);
    while (true) {
      while (auto frame = link_.next()) {
        auto granted = take(*frame);
        if (!granted) return pass(std::move(granted.error()));
        if (*granted) return std::move(**granted);
      }
      if (auto problem = on_time()) return pass(std::move(*problem));
      std::array<pollfd, 2> polled = {pollfd{signals_.fd(), POLLIN, 0},
                                      pollfd{link_.fd(), link_.events(), 0}};
      ::poll(polled.data(), polled.size(), timeout());
      while (const auto signal = signals_.take()) {
        if (*signal != SIGCONT && *signal != SIGWINCH && *signal != SIGCHLD) {
          return cancelled(*signal);
        }
      }
      if (link_.connected()) {
        link_.flush();
      } else {
        link_.try_again();
      }
    }
  }

 private:
  Result<std::optional<wire::StepGrant>> take(const wire::Frame& frame) {
    switch (frame.kind) {
      case wire::Kind::StepGrant: {
        auto grant = net::Client::reply_in<wire::StepGrant>(frame);
        if (!grant) return pass(with_job_advice(std::move(grant.error())));
        if (waits_ && steady_clock::now() - began_ >= kStepSilence) {
          say(fmt::format("Step created for StepId={}.{}", grant->job_id(), grant->step_id()));
        }
        print_new_messages(messages_of(grant->lines()), wait_.told, kStepName);
        return std::optional<wire::StepGrant>(std::move(*grant));
      }
      case wire::Kind::StepWaits:
        if (const auto waits = wire::decode<wire::StepWaits>(frame.payload)) {
          waits_ = true;
          text_ = waits->text();
        }
        break;
      case wire::Kind::Notice:
        if (const auto notice = wire::decode<wire::Notice>(frame.payload)) {
          print_message(wire::from_line(notice->line()), kStepName);
        }
        break;
      case wire::Kind::Done:
        if (const auto done = wire::decode<wire::Done>(frame.payload);
            done && done->has_refusal()) {
          return pass(with_job_advice(wire::from_refusal(done->refusal())));
        }
        break;
      case wire::Kind::JobEnded:
        return over();
      case wire::Kind::JobGrant:
      case wire::Kind::JobWaits:
        break;  // after a reclaim: the job is still ours
      default:
        return net::Client::unexpected_frame(frame);
    }
    return std::nullopt;
  }

  /// A job that does not exist is said so in the words of srun.
  [[nodiscard]] Error with_job_advice(Error error) const {
    if (!error.what().ends_with("Invalid job id specified")) return error;
    error.messages = {
        {Severity::error, fmt::format("Unable to confirm allocation for job {}: {}",
                                      wait_.ask.job_id(), "Invalid job id specified")},
        {Severity::plain,
         fmt::format("Check SLURM_JOB_ID environment variable. Expired or invalid job {}",
                     wait_.ask.job_id())}};
    error.exit_code = 1;
    return error;
  }

  std::unexpected<Error> over() const {
    return fail(Code::job_completed,
                fmt::format("Unable to create step for job {}: {}", wait_.ask.job_id(),
                            slurm_text(Code::job_completed)));
  }

  std::unexpected<Error> cancelled(int signal) const {
    Error error = over().error();
    error.messages.insert(
        error.messages.begin(),
        {Severity::plain, fmt::format("Cancelled pending job step with signal {}", signal)});
    return std::unexpected(std::move(error));
  }

  std::optional<Error> on_time() {
    const auto waited = steady_clock::now() - began_;
    if (waits_ && wait_.immediate && waited >= *wait_.immediate) {
      return fail(Code::nodes_busy,
                  fmt::format("Unable to create step for job {}: {}", wait_.ask.job_id(),
                              slurm_text(Code::nodes_busy)),
                  text_.empty() ? "" : "waiting for: " + text_)
          .error();
    }
    if (!link_.connected() && link_.away() > kStepReturnPatience) return lost_controller();
    if (!waits_) return std::nullopt;
    if (waited >= kStepSilence && text_ != told_) {
      if (!text_.empty() && !wait_.quiet) print_hint(fmt::format("waiting for: {}", text_));
      told_ = text_;
    }
    if (waited >= next_retry_) {
      say(fmt::format("Job {} step creation {} disabled, retrying ({})", wait_.ask.job_id(),
                      retried_ ? "still" : "temporarily", slurm_text(Code::nodes_busy)));
      retried_ = true;
      next_retry_ += kLaterRetries;
    }
    return std::nullopt;
  }

  [[nodiscard]] int timeout() const {
    if (const auto retry = link_.until_try()) return static_cast<int>(retry->count()) + 1;
    if (!waits_) return -1;
    const auto waited = steady_clock::now() - began_;
    steady_clock::duration until = next_retry_;
    if (text_ != told_) until = std::min<steady_clock::duration>(until, kStepSilence);
    if (wait_.immediate) until = std::min<steady_clock::duration>(until, *wait_.immediate);
    const auto left = std::chrono::ceil<milliseconds>(until - waited);
    return static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
  }

  void say(const std::string& text) const {
    if (!wait_.quiet) print_info(text, kStepName);
  }

  ControllerLink& link_;
  SignalFd& signals_;
  const StepWait& wait_;
  Moment began_;
  bool waits_ = false;
  bool retried_ = false;
  std::string text_;
  std::string told_;
  steady_clock::duration next_retry_ = kFirstRetry;
};

}  // namespace

Result<wire::StepGrant> wait_for_step(ControllerLink& link, SignalFd& signals,
                                      const StepWait& wait) {
  link.on_return([&wait](net::Client& client) {
    if (!wait.token.empty()) {
      wire::ReclaimJob reclaim;
      reclaim.set_job_id(wait.ask.job_id());
      reclaim.set_token(wait.token);
      client.queue(reclaim);
    }
    client.queue(wait.ask);
  });
  auto granted = StepWaiting(link, signals, wait).run();
  link.on_return({});
  return granted;
}

}  // namespace berth::command
