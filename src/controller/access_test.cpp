// The table of who may send what is complete and fails closed.
#include "controller/access.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace berth::controller {
namespace {

constexpr wire::Kind kAll[] = {
#define BERTH_MESSAGE(number, type) wire::Kind::type,
#include "wire/messages.def"
#undef BERTH_MESSAGE
};

struct Cell {
  const char* name;
  Standing standing;
};
// Every standing that a connection can have. A live test walks through the same cells with real
// connections (tests/hosts/test_matrix.py).
const Cell kStandings[] = {
    {"stranger over TCP", {.role = Role::stranger, .remote = true}},
    {"user here", {.role = Role::user}},
    {"user over TCP", {.role = Role::user, .remote = true}},
    {"administrator here", {.role = Role::administrator}},
    {"administrator over TCP", {.role = Role::administrator, .remote = true}},
    {"agent here", {.role = Role::administrator, .registered = true}},
    {"node over TCP", {.role = Role::node, .remote = true}},
    {"agent over TCP", {.role = Role::node, .remote = true, .registered = true}},
};

const std::set<std::string> kOfAnybody = {"JoinNode"};
const std::set<std::string> kOfUsers = {
    "Ping",       "ListJobs",         "ListNodes",    "ShowConfig",     "ListHistory", "SubmitJob",
    "CreateStep", "GetAllocation",    "ReclaimJob",   "ReclaimStep",    "FinishJob",   "WaitJob",
    "GetAccess",  "GetScript",        "ExplainJob",   "ActOnJobs",      "CancelJobs",  "Change",
    "Diagnose",   "ListReservations", "MeasureSteps", "ListPriorities", "MakeTokens"};
const std::set<std::string> kOfAdministrators = {"Reconfigure", "Shutdown", "SetDebug",
                                                 "RevokeNodes"};
const std::set<std::string> kOfNewAgents = {"RegisterNodes"};
const std::set<std::string> kOfAgents = {"JobBegun",   "JobGone",       "JobGpus",   "GpuHealth",
                                         "JobGpuIdle", "StepStarted",   "StepEnded", "NodeTrouble",
                                         "Beat",       "MeasuredOnNode"};
const std::set<std::string> kOfNodes = {"RenewIdentity", "Hello"};

/// The table as it should be, written down apart from the code.
bool expected(const std::string& message, const Standing& standing) {
  const bool here = !standing.remote;
  if (kOfAnybody.contains(message)) return true;
  switch (standing.role) {
    case Role::stranger:
      return false;
    case Role::user:
      return kOfUsers.contains(message);
    case Role::administrator:
      return kOfUsers.contains(message) || kOfAdministrators.contains(message) ||
             (here && kOfNewAgents.contains(message)) ||
             (here && standing.registered && kOfAgents.contains(message));
    case Role::node:
      return kOfNodes.contains(message) || kOfNewAgents.contains(message) ||
             (standing.registered && kOfAgents.contains(message));
  }
  return false;
}

TEST(Access, EveryRowSaysWhichThreadAnswers) {
  for (const wire::Kind kind : kAll) {
    const Rule rule = rule_of(kind);
    EXPECT_EQ(rule.kind, kind);
    EXPECT_EQ(rule.who == Who::nobody, rule.where == Where::none) << wire::name_of(kind);
  }
}

TEST(Access, EveryCellOfMessageAndStanding) {
  for (const wire::Kind kind : kAll) {
    for (const Cell& cell : kStandings) {
      const std::string name(wire::name_of(kind));
      EXPECT_EQ(may_send(rule_of(kind), cell.standing), expected(name, cell.standing))
          << name << " from " << cell.name;
    }
  }
}

TEST(Access, UnknownNumbersAreRefused) {
  for (const Cell& cell : kStandings) {
    EXPECT_FALSE(may_send(rule_of(static_cast<wire::Kind>(60000)), cell.standing)) << cell.name;
  }
}

}  // namespace
}  // namespace berth::controller
