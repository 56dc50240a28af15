// The connection of a command that lives long (salloc, srun, sbatch --wait): it survives a restart
// of the controller by dialling again and saying what it owns.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "command/launch_signals.h"
#include "net/client.h"
#include "request/request.h"
#include "wire/submit.pb.h"

namespace berth::command {

using Moment = std::chrono::steady_clock::time_point;

class ControllerLink {
 public:
  /// `environment` must outlive it.
  ControllerLink(const request::Environment& environment, std::string program)
      : environment_(environment), program_(std::move(program)) {}

  Result<void> open();
  /// What is said first on every later connection: ReclaimJob, ReclaimStep, WaitJob.
  void on_return(std::function<void(net::Client&)> say) { say_ = std::move(say); }

  [[nodiscard]] bool connected() const { return client_.has_value(); }
  /// -1 while there is no connection.
  [[nodiscard]] int fd() const { return client_ ? client_->fd() : -1; }
  [[nodiscard]] short events() const;
  [[nodiscard]] bool has_frame() { return client_ && client_->has_frame(); }

  /// Sends what it can; a lost connection is noticed by next().
  template <class M>
  void send(const M& message) {
    if (!client_) return;
    client_->queue(message);
    flush();
  }
  void flush();
  /// The next frame that is there. Empty also when the connection was lost: see connected().
  std::optional<wire::Frame> next();

  /// While not connected: dials again when it is time to. True when it is back.
  bool try_again();
  /// Since when there is no connection.
  [[nodiscard]] std::chrono::milliseconds away() const;
  /// How long to poll until try_again() should be called; nullopt while connected.
  [[nodiscard]] std::optional<std::chrono::milliseconds> until_try() const;
  void close() { client_.reset(); }

 private:
  void lose();

  const request::Environment& environment_;
  std::string program_;
  std::optional<net::Client> client_;
  std::function<void(net::Client&)> say_;
  Moment lost_{};
  Moment next_try_{};
};

/// Sends a job, again with the same token while no controller answers, for up to a minute. The
/// reply's warnings are printed, but for those in `told`. One of `signals` ends it.
Result<wire::SubmitReply> submit_job(ControllerLink& link, const request::Environment& environment,
                                     const wire::SubmitJob& job, const std::vector<Message>& told,
                                     SignalFd* signals = nullptr);

/// "sbatch: Job 12 to start at 2026-11-15T08:24:47 a using 2 processors on nodes gpu[1-2] in
/// partition debug", without the command's name.
std::string test_only_text(const wire::SubmitReply& reply);
/// A refusal as --test-only words it: "allocation failure: …".
Error test_only_error(Error error);
/// Refused likewise when no time can be named at which it would start.
Result<void> check_test_only(const wire::SubmitReply& reply);

}  // namespace berth::command
