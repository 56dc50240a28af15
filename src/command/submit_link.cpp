#include "command/submit_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "command/controller_client.h"
#include "command/messages.h"
#include "wire/field_limits.h"

namespace berth::command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr auto kRetryFor = seconds(60);
constexpr auto kRetryEvery = milliseconds(500);
constexpr auto kReplyPatience = seconds(100);

bool stopped(SignalFd* signals) {
  while (signals != nullptr) {
    const auto signal = signals->take();
    if (!signal) return false;
    if (*signal != SIGCONT && *signal != SIGWINCH && *signal != SIGCHLD) return true;
  }
  return false;
}

std::unexpected<Error> interrupted() {
  return fail(Code::no_connection, "Job allocation request was interrupted by a signal");
}

}  // namespace

Result<void> ControllerLink::open() {
  auto client = reach_controller(environment_, program_);
  if (!client) return pass(std::move(client.error()));
  client_.emplace(std::move(*client));
  return {};
}

short ControllerLink::events() const {
  return static_cast<short>(POLLIN | (client_ && client_->wants_write() ? POLLOUT : 0));
}

void ControllerLink::lose() {
  client_.reset();
  lost_ = steady_clock::now();
  next_try_ = lost_ + milliseconds(50);
}

void ControllerLink::flush() {
  if (client_ && !client_->flush()) lose();
}

std::optional<wire::Frame> ControllerLink::next() {
  if (!client_) return std::nullopt;
  auto frame = client_->try_receive();
  if (!frame) {
    lose();
    return std::nullopt;
  }
  return *frame;
}

bool ControllerLink::try_again() {
  if (client_) return true;
  const Moment now = steady_clock::now();
  if (now < next_try_) return false;
  next_try_ = now + kRetryEvery;
  auto client = reach_controller(environment_, program_);
  if (!client) return false;
  client_.emplace(std::move(*client));
  if (say_) say_(*client_);
  flush();
  return connected();
}

milliseconds ControllerLink::away() const {
  if (client_) return milliseconds(0);
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - lost_);
}

std::optional<milliseconds> ControllerLink::until_try() const {
  if (client_) return std::nullopt;
  const auto left = std::chrono::duration_cast<milliseconds>(next_try_ - steady_clock::now());
  return std::max(left, milliseconds(0));
}

Result<wire::SubmitReply> submit_job(ControllerLink& link, const request::Environment& environment,
                                     const wire::SubmitJob& job, const std::vector<Message>& told,
                                     SignalFd* signals) {
  // What is too large for a frame would only break the connection.
  if (job.ByteSizeLong() > wire::kMostScript) {
    const std::string bytes = job.SerializeAsString();
    if (auto good = wire::check_fields(wire::Kind::SubmitJob, bytes); !good) {
      return pass(std::move(good.error()));
    }
  }
  const Moment until = steady_clock::now() + kRetryFor;
  bool said = false;
  while (true) {
    auto opened = link.open();
    Error error;
    if (opened) {
      // One frame: the job is either known to the controller or not at all.
      link.send(job);
      pollfd wait{link.fd(), POLLIN, 0};
      const Moment patience = steady_clock::now() + kReplyPatience;
      while (link.connected() && steady_clock::now() < patience) {
        if (auto frame = link.next()) {
          auto reply = net::Client::reply_in<wire::SubmitReply>(*frame);
          if (reply) print_new_messages(messages_of(reply->lines()), told, job.asked().command());
          return reply;
        }
        if (!link.connected()) break;
        wait.events = link.events();
        ::poll(&wait, 1, 1000);
        if (stopped(signals)) return interrupted();
        link.flush();
      }
      error = lost_controller();
    } else {
      error = opened.error();
    }
    if (steady_clock::now() >= until || !controller_expected(environment)) {
      for (Message& message : error.messages) {
        message.text =
            fmt::format("{}: {}",
                        job.asked().command() == "sbatch" ? "Batch job submission failed"
                                                          : "Unable to allocate resources",
                        message.text);
      }
      return pass(std::move(error));
    }
    if (!said) {
      print_hint("the controller does not answer; trying again for a minute (Ctrl-C gives up)");
      said = true;
    }
    ::poll(nullptr, 0, static_cast<int>(kRetryEvery.count()));
    if (stopped(signals)) return interrupted();
  }
}

Error test_only_error(Error error) {
  if (error.messages.empty()) return error;
  Message& last = error.messages.back();
  for (const std::string_view before :
       {"Batch job submission failed: ", "Unable to allocate resources: "}) {
    if (!last.text.starts_with(before)) continue;
    last = {Severity::bare, "allocation failure: " + last.text.substr(before.size())};
    break;
  }
  return error;
}

Result<void> check_test_only(const wire::SubmitReply& reply) {
  if (reply.start_time() != 0) return {};
  Error error = fail(Code::partition_config, "", "as things are it would wait for ever").error();
  error.messages = {
      {Severity::bare, fmt::format("allocation failure: {}", slurm_text(Code::partition_config))}};
  return std::unexpected(std::move(error));
}

std::string test_only_text(const wire::SubmitReply& reply) {
  const std::time_t start = reply.start_time();
  std::tm local{};
  ::localtime_r(&start, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &local);
  return fmt::format("Job {} to start at {} a using {} processors on nodes {} in partition {}",
                     reply.job_id(), text.data(), reply.test_cpus(), reply.test_nodes(),
                     reply.partition());
}

}  // namespace berth::command
