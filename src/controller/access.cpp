#include "controller/access.h"

namespace berth::controller {

Rule rule_of(wire::Kind kind) {
  using wire::Kind;
  // No default: the compiler names a message that has no row.
  switch (kind) {
    case Kind::Ping:
    case Kind::ListJobs:
    case Kind::ListNodes:
    case Kind::ShowConfig:
    case Kind::ListHistory:
    case Kind::ListPriorities:
    case Kind::MeasureSteps:
      return {kind, Who::anyone, Where::reader};
    case Kind::SubmitJob:
    case Kind::CreateStep:
    case Kind::GetAllocation:
    case Kind::ReclaimJob:
    case Kind::ReclaimStep:
    case Kind::FinishJob:
    case Kind::WaitJob:
    case Kind::GetAccess:
    case Kind::GetScript:
    case Kind::ExplainJob:
    case Kind::ListReservations:
    case Kind::ActOnJobs:
    case Kind::CancelJobs:
    case Kind::Change:
    case Kind::Diagnose:
    case Kind::MakeTokens:
      return {kind, Who::anyone, Where::state};
    case Kind::JoinNode:
      return {kind, Who::everybody, Where::state};
    case Kind::RenewIdentity:
      return {kind, Who::node, Where::state};
    case Kind::Hello:  // a node vouches for a user; the others' are taken by the network thread
      return {kind, Who::new_node, Where::state};
    case Kind::Reconfigure:
    case Kind::Shutdown:
    case Kind::SetDebug:
    case Kind::RevokeNodes:
      return {kind, Who::admin, Where::state};
    case Kind::RegisterNodes:
      return {kind, Who::new_agent, Where::state};
    case Kind::JobBegun:
    case Kind::JobGone:
    case Kind::JobGpus:
    case Kind::GpuHealth:
    case Kind::JobGpuIdle:
    case Kind::StepStarted:
    case Kind::StepEnded:
    case Kind::NodeTrouble:
    case Kind::Beat:
      return {kind, Who::agent, Where::state};
    case Kind::MeasuredOnNode:
      return {kind, Who::agent, Where::reader};
    // Answers and pushes of the controller itself, and what clients and nodes say to each other.
    case Kind::Done:
    case Kind::NodeJoined:
    case Kind::IdentityRenewed:
    case Kind::TokensMade:
    case Kind::CallController:
    case Kind::SubmitReply:
    case Kind::JobGrant:
    case Kind::JobWaits:
    case Kind::JobEnded:
    case Kind::Notice:
    case Kind::StepWaits:
    case Kind::StepGrant:
    case Kind::AccessGrant:
    case Kind::JobsReply:
    case Kind::NodesReply:
    case Kind::ConfigReply:
    case Kind::Pong:
    case Kind::ScriptReply:
    case Kind::JobExplained:
    case Kind::ReservationsReply:
    case Kind::Results:
    case Kind::DiagnoseReply:
    case Kind::HistoryReply:
    case Kind::PrioritiesReply:
    case Kind::StepsMeasured:
    case Kind::Launch:
    case Kind::LaunchReply:
    case Kind::Input:
    case Kind::Output:
    case Kind::TasksExited:
    case Kind::NodeDone:
    case Kind::SupervisorLine:
    case Kind::SignalTasks:
    case Kind::WindowSize:
    case Kind::Attach:
    case Kind::PutFile:
    case Kind::SuperviseFile:
    case Kind::FileBlock:
    case Kind::Relay:
    case Kind::NodeLost:
    case Kind::GiveUpStarting:
    case Kind::SwitchNodes:
    case Kind::Exchange:
    case Kind::Errand:
    case Kind::AbortStep:
    case Kind::AskLayout:
    case Kind::StepLayout:
    case Kind::SuperviseRelay:
    case Kind::ServePmix:
    case Kind::PmixServes:
    case Kind::Registered:
    case Kind::BeginJob:
    case Kind::EndJob:
    case Kind::Forget:
    case Kind::SignalStep:
    case Kind::EndStep:
    case Kind::SuspendJob:
    case Kind::AskGpuIdle:
    case Kind::SayInBatch:
    case Kind::EndProbation:
    case Kind::NodeClaimed:
    case Kind::Supervise:
    case Kind::Supervised:
    case Kind::SuperviseEnd:
    case Kind::SuperviseSignal:
    case Kind::SuperviseSay:
    case Kind::SuperviseMeasure:
    case Kind::TasksMeasured:
    case Kind::MeasureOnNodes:
    case Kind::SuperviseAttach:
      return {kind, Who::nobody, Where::none};
  }
  return {kind, Who::nobody, Where::none};
}

bool may_send(const Rule& rule, const Standing& standing) {
  const bool administrator = standing.role == Role::administrator;
  // An administrator of another machine is no agent: only a certificate makes one there.
  const bool agent = standing.role == Role::node || (administrator && !standing.remote);
  switch (rule.who) {
    case Who::nobody:
      return false;
    case Who::everybody:
      return true;
    case Who::anyone:
      return standing.role == Role::user || administrator;
    case Who::admin:
      return administrator;
    case Who::new_agent:
      return agent;
    case Who::agent:
      return agent && standing.registered;
    case Who::node:
      return standing.role == Role::node;
    case Who::new_node:
      return standing.role == Role::node && !standing.registered;
  }
  return false;
}

}  // namespace berth::controller
