// What clients.h promises.
#include "rehearsal/clients.h"

#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/controller_host.h"
#include "wire/refusal.h"

namespace berth::rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kFirstUser = 40'000;
constexpr std::uint32_t kUsers = 2;
constexpr seconds kSubmissionPatience{60};
constexpr seconds kSrunPatience{20};
constexpr seconds kStepPatience{180};

template <class M, class Take>
bool take_if(const wire::Frame& frame, Take&& take) {
  if (frame.kind != wire::KindOf<M>::value) return false;
  if (const auto message = wire::decode<M>(frame.payload)) take(*message);
  return true;
}

wire::Frame frame_of(std::string_view bytes) {
  wire::Frame frame;
  (void)wire::scan_frame(bytes, wire::kMostBytes, frame);
  return frame;
}

}  // namespace

void Clients::submit(std::vector<std::string> words) {
  const auto submission = std::make_shared<Submission>();
  submission->token = fmt::format("submission {}", ++tokens_);
  submission->words = std::move(words);
  submission->uid = kFirstUser + static_cast<std::uint32_t>(here_.random.below(kUsers));
  submission->until = here_.agenda.now() + kSubmissionPatience;
  here_.witness.say(
      fmt::format("{}: sbatch {}", submission->token, fmt::join(submission->words, " ")));
  try_submission(submission);
}

void Clients::submission_broke(const SubmissionPtr& submission) {
  if (submission->done || here_.agenda.now() > submission->until) return;
  here_.agenda.after(here_.random.between(milliseconds(50), seconds(1)),
                     [this, submission] { try_submission(submission); });
}

void Clients::try_submission(const SubmissionPtr& submission) {
  here_.network.dial(
      kLogin, kController, submission->uid, [this, submission](std::shared_ptr<Socket> socket) {
        if (!socket) return submission_broke(submission);
        submission->socket = socket;
        socket->start({.frame =
                           [this, submission](std::string_view bytes) {
                             const wire::Frame frame = frame_of(bytes);
                             take_if<wire::SubmitReply>(frame, [&](const wire::SubmitReply& reply) {
                               if (reply.has_refusal()) {
                                 return here_.witness.say(
                                     submission->token + " is refused: " +
                                     std::string(wire::from_refusal(reply.refusal()).what()));
                               }
                               here_.witness.acknowledged(submission->token, reply.job_id());
                               jobs_.push_back({reply.job_id(), submission->uid});
                             });
                             submission->done = true;
                             submission->socket->close();
                           },
                       .closed = [this, submission] { submission_broke(submission); }});
        wire::SubmitJob ask;
        ask.mutable_asked()->set_command("sbatch");
        for (const std::string& word : submission->words) ask.mutable_asked()->add_words(word);
        ask.mutable_asked()->add_words("job.sh");
        ask.mutable_asked()->set_script("#!/bin/sh\nwork\n");
        ask.mutable_asked()->set_directory("/tmp");
        ask.set_token(submission->token);
        socket->send(wire::framed(ask));
      });
}

const Clients::Known* Clients::any_job() {
  if (jobs_.empty()) return nullptr;
  return &jobs_[here_.random.below(jobs_.size())];
}

template <class M>
void Clients::tell_controller(std::uint32_t uid, const M& message) {
  here_.network.dial(
      kLogin, kController, uid, [frame = wire::framed(message)](std::shared_ptr<Socket> socket) {
        if (!socket) return;
        // It lives as long as it is listened to.
        socket->start(
            {.frame = [socket](std::string_view) { socket->close(); }, .closed = [socket] {}});
        socket->send(frame);
      });
}

void Clients::cancel(const Known& job) {
  here_.witness.say(fmt::format("scancel {}", job.id));
  wire::CancelJobs message;
  message.add_jobs()->set_id(job.id);
  tell_controller(job.uid, message);
}

void Clients::act(const std::string& action, const Known& job) {
  here_.witness.say(fmt::format("scontrol {} {}", action, job.id));
  wire::ActOnJobs message;
  message.set_action(action);
  message.add_jobs()->set_id(job.id);
  tell_controller(job.uid, message);
}

void Clients::step(const Known& job, std::uint32_t tasks) {
  const auto srun = std::make_shared<Srun>();
  srun->job = job;
  here_.network.dial(kLogin, kController, job.uid,
                     [this, srun, tasks](std::shared_ptr<Socket> socket) {
                       if (!socket) return;
                       srun->controller = socket;
                       listen_for_step(srun);
                       wire::CreateStep ask;
                       ask.set_job_id(srun->job.id);
                       ask.mutable_asked()->set_command("srun");
                       ask.mutable_asked()->add_words(fmt::format("-n{}", tasks));
                       ask.mutable_asked()->add_words("--overlap");
                       ask.mutable_asked()->add_words("work");
                       ask.mutable_asked()->set_directory("/tmp");
                       socket->send(wire::framed(ask));
                       here_.agenda.after(kStepPatience, [this, srun] { finish(srun); });
                     });
}

void Clients::listen_for_step(const SrunPtr& srun) {
  srun->controller->start({.frame =
                               [this, srun](std::string_view bytes) {
                                 const wire::Frame frame = frame_of(bytes);
                                 take_if<wire::StepGrant>(frame, [&](const wire::StepGrant& grant) {
                                   granted(srun, grant);
                                 });
                                 // What was asked for on this connection is refused.
                                 take_if<wire::Done>(frame, [&](const wire::Done& done) {
                                   if (done.has_refusal()) finish(srun);
                                 });
                               },
                           .closed = [this, srun] { reclaim(srun); }});
}

void Clients::granted(const SrunPtr& srun, const wire::StepGrant& grant) {
  if (grant.has_refusal()) {
    here_.witness.say(fmt::format("srun in {} is refused: {}", srun->job.id,
                                  wire::from_refusal(grant.refusal()).what()));
    return finish(srun);
  }
  here_.witness.say(fmt::format("srun has step {}.{}", grant.job_id(), grant.step_id()));
  srun->granted = true;
  srun->step = grant.step_id();
  for (int i = 0; i < grant.tickets_size(); ++i) {
    const auto one = std::make_shared<Launch>();
    one->ticket = grant.tickets(i);
    one->host = grant.addresses(i).port();
    one->uid = srun->job.uid;
    one->until = here_.agenda.now() + kSrunPatience;
    srun->launches.push_back(one);
    stolen_.push_back({one->ticket, one->host, one->uid});
  }
  for (const auto& one : srun->launches) launch(one, srun);
}

/// As srun does: the controller may be another one by now.
void Clients::reclaim(const SrunPtr& srun) {
  srun->controller.reset();
  if (!srun->granted || srun->over) return;
  here_.agenda.after(here_.random.between(milliseconds(100), seconds(1)), [this, srun] {
    if (srun->over) return;
    here_.network.dial(kLogin, kController, srun->job.uid,
                       [this, srun](std::shared_ptr<Socket> socket) {
                         if (srun->over) {
                           if (socket) socket->close();
                           return;
                         }
                         if (!socket) return reclaim(srun);
                         srun->controller = socket;
                         listen_for_step(srun);
                         wire::ReclaimStep message;
                         message.set_job_id(srun->job.id);
                         message.set_step_id(srun->step);
                         socket->send(wire::framed(message));
                       });
  });
}

void Clients::launch(const std::shared_ptr<Launch>& one, const SrunPtr& srun) {
  const auto again = [this, one, srun] {
    if (one->started || one->done || srun->over || here_.agenda.now() > one->until) {
      return launch_over(one, srun);
    }
    here_.agenda.after(here_.random.between(milliseconds(50), milliseconds(500)),
                       [this, one, srun] { launch(one, srun); });
  };
  here_.network.dial(
      kLogin, one->host, one->uid, [one, srun, again, this](std::shared_ptr<Socket> socket) {
        if (!socket) return again();
        if (srun->over) return socket->close();
        one->socket = socket;
        socket->start({.frame =
                           [this, one, srun](std::string_view bytes) {
                             const wire::Frame frame = frame_of(bytes);
                             take_if<wire::LaunchReply>(frame, [&](const auto& reply) {
                               one->started = !reply.has_refusal();
                               one->done = reply.has_refusal();
                             });
                             take_if<wire::NodeDone>(frame, [&](const auto&) { one->done = true; });
                             if (one->done) launch_over(one, srun);
                           },
                       .closed = again});
        wire::Launch message;
        *message.mutable_ticket() = one->ticket;
        message.mutable_program()->add_argv("work");
        socket->send(wire::framed(message));
      });
}

void Clients::launch_over(const std::shared_ptr<Launch>& one, const SrunPtr& srun) {
  one->done = true;
  if (const auto socket = std::exchange(one->socket, nullptr)) socket->close();
  const bool all = std::ranges::all_of(srun->launches, [](const auto& each) { return each->done; });
  if (all) finish(srun);
}

void Clients::finish(const SrunPtr& srun) {
  if (std::exchange(srun->over, true)) return;
  if (const auto socket = std::exchange(srun->controller, nullptr)) socket->close();
  for (const auto& one : std::exchange(srun->launches, {})) {
    if (const auto socket = std::exchange(one->socket, nullptr)) socket->close();
  }
}

void Clients::replay() {
  if (stolen_.empty()) return;
  const Stolen& one = stolen_[here_.random.below(stolen_.size())];
  here_.witness.say("a ticket for " + one.ticket.node() + " is shown once more");
  ++here_.witness.counts.replays;
  wire::Launch message;
  *message.mutable_ticket() = one.ticket;
  message.mutable_program()->add_argv("work");
  here_.network.dial(
      kLogin, one.host, one.uid, [frame = wire::framed(message)](std::shared_ptr<Socket> socket) {
        if (!socket) return;
        socket->start({.frame = [socket](std::string_view) {}, .closed = [socket] {}});
        socket->send(frame);
      });
}

}  // namespace berth::rehearsal
