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

std::set<std::string> sendable_by(const Caller& caller, bool is_agent) {
  std::set<std::string> names;
  for (const wire::Kind kind : kAll) {
    if (may_send(rule_of(kind), caller, is_agent)) names.emplace(wire::name_of(kind));
  }
  return names;
}

const Caller kUser{1000, 1000, false};
const Caller kRootCaller{0, 0, true};

TEST(Access, EveryRowSaysWhichThreadAnswers) {
  for (const wire::Kind kind : kAll) {
    const Rule rule = rule_of(kind);
    EXPECT_EQ(rule.kind, kind);
    EXPECT_EQ(rule.who == Who::nobody, rule.where == Where::none) << wire::name_of(kind);
  }
}

TEST(Access, UsersSendOnlyWhatIsChecked) {
  const std::set<std::string> expected = {
      "Ping",           "ListJobs",     "ListNodes",  "ShowConfig",
      "ListHistory",    "SubmitJob",    "CreateStep", "GetAllocation",
      "ReclaimJob",     "ReclaimStep",  "FinishJob",  "WaitJob",
      "GetAccess",      "GetScript",    "ExplainJob", "ListReservations",
      "ActOnJobs",      "CancelJobs",   "Change",     "Diagnose",
      "ListPriorities", "MeasureSteps",
  };
  EXPECT_EQ(sendable_by(kUser, false), expected);
  // An agent's connection gives no rights to who is not allowed to be one.
  EXPECT_EQ(sendable_by(kUser, true), expected);
}

TEST(Access, AdministratorsAlsoOperate) {
  std::set<std::string> more;
  const auto user = sendable_by(kUser, false);
  for (const std::string& name : sendable_by(kRootCaller, false)) {
    if (!user.contains(name)) more.insert(name);
  }
  EXPECT_EQ(more, (std::set<std::string>{"Reconfigure", "Shutdown", "SetDebug", "RegisterNodes"}));
}

TEST(Access, NodeEventsNeedARegisteredAgent) {
  std::set<std::string> more;
  const auto without = sendable_by(kRootCaller, false);
  for (const std::string& name : sendable_by(kRootCaller, true)) {
    if (!without.contains(name)) more.insert(name);
  }
  EXPECT_EQ(more, (std::set<std::string>{"JobBegun", "JobGone", "JobGpus", "GpuHealth",
                                         "JobGpuIdle", "StepStarted", "StepEnded", "NodeTrouble",
                                         "Beat", "MeasuredOnNode"}));
}

TEST(Access, UnknownNumbersAreRefused) {
  EXPECT_FALSE(may_send(rule_of(static_cast<wire::Kind>(60000)), kRootCaller, true));
}

}  // namespace
}  // namespace berth::controller
