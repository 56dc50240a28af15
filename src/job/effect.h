// What has to be done outside after a transition: messages to nodes and to clients. State only says
// so; the controller carries effects out after what changed is stored.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "job/types.h"

namespace berth::job {

/// Send BeginJob to these nodes (launch.h: begin_job() makes the message). Idempotent.
struct BeginJob {
  JobId job = 0;
  std::vector<std::string> nodes;
};
/// Send EndJob to these nodes. epilog_environment() of launch.h makes the variables.
struct EndJob {
  JobId job = 0;
  std::uint32_t attempt = 0;
  std::vector<std::string> nodes;
  std::string cause;
  bool now = false;
};
struct EndStep {
  JobId job = 0;
  std::uint32_t attempt = 0;
  std::uint32_t step = 0;
  std::vector<std::string> nodes;
  std::string cause;
  bool now = false;
};
/// The message is complete but for `node`: one for each of `nodes`.
struct SignalNodes {
  wire::SignalStep message;
  std::vector<std::string> nodes;
};
struct Suspend {
  JobId job = 0;
  std::uint32_t attempt = 0;
  std::vector<std::string> nodes;
  bool resume = false;
};
/// The node may forget this job, or one step of it.
struct Forget {
  std::string node;
  JobId job = 0;
  std::uint32_t attempt = 0;
  std::optional<std::uint32_t> step;
};

/// The interactive job is allocated and ready: push JobGrant (launch.h: job_grant()) to its owner.
struct GrantJob {
  JobId job = 0;  // of a heterogeneous job: the leader
};
/// Push JobWaits to the owner. Sent when the reason changed.
struct TellWaiting {
  JobId job = 0;
};
/// The job is over (it may still be COMPLETING): push JobEnded to its owner. To those in WaitJob
/// only when State::all_ended(array or job id).
struct TellEnded {
  JobId job = 0;
  std::string state;
  std::int32_t exit_status = 0;
  std::string reason;
};
/// A line for the owner of the job (srun, salloc) and the srun of its steps.
struct Notice {
  JobId job = 0;
  Message line;
};

/// A line in the output of a batch script; `node` is where it runs.
struct SayInBatch {
  JobId job = 0;
  std::uint32_t attempt = 0;
  std::string node;
  std::string line;
};
/// Ask these nodes how long the job has not used its GPUs there; answered by JobGpuIdle.
struct AskGpuIdle {
  JobId job = 0;
  std::uint32_t attempt = 0;
  std::vector<std::string> nodes;
};

/// The step starts. `grant` is complete but for addresses, user and tickets; `specs` (one for each
/// node, same order as StepGrant.tickets) but for user, home, shell, groups, epoch, expires, nonce.
struct GrantStep {
  std::uint64_t key = 0;
  wire::StepGrant grant;
  std::vector<wire::StepSpec> specs;
};
struct StepMustWait {
  std::uint64_t key = 0;
  wire::StepWaits message;
};
struct RefuseStep {
  std::uint64_t key = 0;
  Error error;
};
/// The GPU of the node need not be watched any longer after an Xid.
struct EndProbation {
  std::string node;
  std::uint32_t gpu = 0;
};
/// Run SuspendProgram, ResumeProgram or ResumeFailProgram for these nodes, then
/// State::power_told().
struct SwitchNodes {
  enum class What { off, on, failed } what = What::off;
  std::vector<std::string> nodes;
};
/// A line for the controller's log.
struct Log {
  std::string text;
  std::string source = {};  // who can cause it as often as he likes: "node n1"; "" = nobody can
};

using Effect = std::variant<BeginJob, EndJob, EndStep, SignalNodes, Suspend, Forget, GrantJob,
                            TellWaiting, TellEnded, Notice, SayInBatch, AskGpuIdle, GrantStep,
                            StepMustWait, RefuseStep, EndProbation, SwitchNodes, Log>;

}  // namespace berth::job
