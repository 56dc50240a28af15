// From what State knows to the messages that start things: variables, masks and files of batch
// scripts and steps. Pure: users' names come in, messages come out.
#pragma once

#include <string>
#include <vector>

#include "job/state.h"
#include "wire/agent.pb.h"
#include "wire/submit.pb.h"

namespace berth::job {

/// What the name service says about a user.
struct User {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string name;
  std::string group;
  std::string home;
  std::string shell;
  std::vector<std::uint32_t> groups;
};

/// Puts the user into a spec that State made.
void put_user(wire::StepSpec& spec, const User& user);

/// BeginJob for one node. `asked` is what the store has under Job::asked_blob: on the first node of
/// a batch job (component 0) it becomes the batch step; Launch.ticket.spec is the serialized
/// StepSpec and left to be signed (epoch, expires and nonce are set from the arguments). Variables
/// of a prolog are added by who knows that there is one.
wire::BeginJob begin_job(const State& state, const Job& job, std::string_view node,
                         const wire::Asked& asked, const User& user, std::uint64_t epoch,
                         Time expires, std::string nonce);

/// What sbatch --wrap makes a script of.
std::string wrapped_script(std::string_view command);

/// The batch step of a batch job that runs: its spec and program.
struct BatchLaunch {
  wire::StepSpec spec;
  wire::Program program;
};
BatchLaunch batch_launch(const State& state, const Job& job, const wire::Asked& asked,
                         const User& user);

/// Variables of prolog and epilog on a node (spec environment.md §6).
std::vector<wire::Variable> prolog_environment(const State& state, const Job& job,
                                               std::string_view node, const User& user,
                                               bool epilog);

/// JobGrant for the owner of a running job (of any component: the whole job).
wire::JobGrant job_grant(const State& state, const Job& job, const User& user);

/// Shares with names instead of indices, and back.
wire::NodeShare to_wire(const cluster::Cluster& cluster, const cluster::NodeShare& share);
wire::Allocation to_wire(const cluster::Cluster& cluster, const cluster::Allocation& allocation);
cluster::NodeShare from_wire(const wire::NodeShare& share, cluster::NodeIndex index);
/// Nodes that do not exist any more are left out.
cluster::Allocation from_wire(const cluster::Cluster& cluster, const wire::Allocation& allocation);

/// "cpu=4,mem=64G,node=1,billing=4,gres/gpu=2,gres/gpu:a100=2"
std::string tres_text(const cluster::Cluster& cluster, const cluster::Allocation& allocation,
                      bool billing);

}  // namespace berth::job
