// The users of a rehearsal: they submit, cancel, hold and requeue jobs, start steps in them as srun
// does, and try tickets again that were used before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rehearsal/machine.h"

namespace berth::rehearsal {

inline constexpr Host kLogin = 100;

class Clients {
 public:
  explicit Clients(Surroundings here) : here_(here) {}
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  struct Known {
    std::uint32_t id = 0;
    std::uint32_t uid = 0;
  };
  /// sbatch: the submission is repeated for a minute while nobody answers.
  void submit(std::vector<std::string> words);
  /// One of the jobs that were acknowledged; nullptr = there is none yet.
  [[nodiscard]] const Known* any_job();
  /// scancel.
  void cancel(const Known& job);
  /// scontrol hold, release, requeue.
  void act(const std::string& action, const Known& job);
  /// srun, inside the job.
  void step(const Known& job, std::uint32_t tasks);
  /// A ticket that somebody had is shown once more.
  void replay();
  [[nodiscard]] const std::vector<Known>& jobs() const { return jobs_; }

 private:
  struct Submission {
    std::string token;
    std::vector<std::string> words;
    std::uint32_t uid = 0;
    Moment until{};
    std::shared_ptr<Socket> socket;
    bool done = false;
  };
  struct Launch {
    wire::Ticket ticket;
    Host host = 0;
    std::uint32_t uid = 0;
    Moment until{};
    std::shared_ptr<Socket> socket;
    bool started = false;
    bool done = false;
  };
  struct Srun {
    Known job;
    std::uint32_t step = 0;
    bool granted = false;
    bool over = false;
    std::shared_ptr<Socket> controller;
    std::vector<std::shared_ptr<Launch>> launches;
  };
  using SubmissionPtr = std::shared_ptr<Submission>;
  using SrunPtr = std::shared_ptr<Srun>;

  void try_submission(const SubmissionPtr& submission);
  void submission_broke(const SubmissionPtr& submission);
  /// Sends one message and closes when something has come.
  template <class M>
  void tell_controller(std::uint32_t uid, const M& message);
  void listen_for_step(const SrunPtr& srun);
  void granted(const SrunPtr& srun, const wire::StepGrant& grant);
  void reclaim(const SrunPtr& srun);
  void launch(const std::shared_ptr<Launch>& launch, const SrunPtr& srun);
  void launch_over(const std::shared_ptr<Launch>& launch, const SrunPtr& srun);
  void finish(const SrunPtr& srun);

  Surroundings here_;
  std::uint64_t tokens_ = 0;
  std::vector<Known> jobs_;
  struct Stolen {
    wire::Ticket ticket;
    Host host = 0;
    std::uint32_t uid = 0;
  };
  std::vector<Stolen> stolen_;
};

}  // namespace berth::rehearsal
