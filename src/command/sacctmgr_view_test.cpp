#include "command/sacctmgr_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::command {
namespace {

using ::testing::HasSubstr;

/// What `sacctmgr WORDS` prints, or the first line of its error and the hint.
std::string sacctmgr(std::vector<std::string> words) {
  const Result<SacctmgrOptions> options = parse_sacctmgr(words);
  if (!options) return std::string(options.error().what()) + " | " + options.error().hint;
  const Result<std::string> text =
      sacctmgr_text(*options, {"lab", "head", "6817", {"alice", "bob", "root"}});
  if (!text) return std::string(text.error().what()) + " | " + text.error().hint;
  return *text;
}

TEST(Sacctmgr, AnswersWhatSnakemakeAsks) {
  EXPECT_EQ(sacctmgr({"-n", "-s", "list", "user", "alice", "format=account%20"}),
            "             default \n");
  EXPECT_EQ(sacctmgr({"-n", "-s", "list", "user", "nobody", "format=account%20"}), "");
}

TEST(Sacctmgr, AnswersPortalsAndExporters) {
  EXPECT_EQ(sacctmgr({"-nP", "show", "users", "withassoc", "format=account,qos", "where",
                      "user=bob", "cluster=lab"}),
            "default|normal\n");
  EXPECT_EQ(sacctmgr({"-nP", "show", "users", "withassoc", "format=account,qos", "where",
                      "user=bob", "cluster=other"}),
            "");
  EXPECT_EQ(sacctmgr({"show", "assoc", "format=User,Account,GrpCPU,GrpMem,GrpJobs,GrpSubmit",
                      "--noheader", "--parsable2"}),
            "|default||||\nalice|default||||\nbob|default||||\nroot|default||||\n");
}

TEST(Sacctmgr, HasTheColumnsOfSlurm) {
  EXPECT_EQ(sacctmgr({"show", "user"}),
            "      User   Def Acct     Admin \n"
            "---------- ---------- --------- \n"
            "     alice    default      None \n"
            "       bob    default      None \n"
            "      root    default Administ+ \n");
  EXPECT_EQ(sacctmgr({"list", "accounts"}),
            "   Account                Descr                  Org \n"
            "---------- -------------------- -------------------- \n"
            "   default     built-in account              default \n");
  EXPECT_EQ(sacctmgr({"-P", "show", "cluster", "wolimits"}),
            "Cluster|ControlHost|ControlPort|RPC\nlab|head|6817|\n");
  EXPECT_EQ(sacctmgr({"-p", "show", "qos", "format=name,priority,maxwall"}),
            "Name|Priority|MaxWall|\nnormal|0||\n");
  EXPECT_EQ(sacctmgr({"-P", "show", "assoc", "tree", "format=cluster,account,user,share"}),
            "Cluster|Account|User|Share\nlab|default||1\nlab| default|alice|1\n"
            "lab| default|bob|1\nlab| default|root|1\n");
}

TEST(Sacctmgr, HeedsConditions) {
  EXPECT_EQ(sacctmgr({"-nP", "show", "assoc", "where", "users=bob,alice", "format=user"}),
            "alice\nbob\n");
  EXPECT_EQ(sacctmgr({"-nP", "show", "assoc", "account=physics", "format=user"}), "");
  EXPECT_EQ(sacctmgr({"-nP", "show", "assoc", "user=", "format=account,user"}), "default|\n");
  EXPECT_EQ(sacctmgr({"-nP", "show", "assoc", "onlydefaults", "format=user"}),
            "alice\nbob\nroot\n");
  EXPECT_EQ(sacctmgr({"-nP", "show", "qos", "normal", "format=name"}), "normal\n");
  EXPECT_EQ(sacctmgr({"-nP", "show", "account", "names=default", "format=acc"}), "default\n");
}

TEST(Sacctmgr, RefusesWhatItDoesNotDoAndSaysWhatThereIs) {
  EXPECT_THAT(sacctmgr({"add", "account", "physics"}),
              HasSubstr("add: accounts are not managed here | there is one built-in account, "
                        "default, to which every user belongs"));
  EXPECT_THAT(sacctmgr({"-i", "modify", "user", "where", "name=bob", "set", "x=1"}),
              HasSubstr("modify: accounts are not managed here"));
  EXPECT_THAT(sacctmgr({"show", "user", "set", "x=1"}), HasSubstr("set: accounts are not managed"));
  EXPECT_EQ(sacctmgr({"show", "runaway"}),
            "runawayjobs: not kept here | the controller keeps the history itself: it cannot have "
            "any");
  EXPECT_THAT(sacctmgr({"show", "nonsense"}), HasSubstr("No valid entity in list command"));
  EXPECT_THAT(sacctmgr({"frobnicate"}), HasSubstr("invalid keyword: frobnicate"));
  EXPECT_THAT(sacctmgr({}), HasSubstr("No command given"));
  EXPECT_THAT(sacctmgr({"show"}), HasSubstr("show: of what?"));
  EXPECT_THAT(sacctmgr({"--json", "show", "user"}), HasSubstr("--json is not available"));
  EXPECT_THAT(sacctmgr({"show", "user", "format=ControlHost"}),
              HasSubstr("Invalid field requested: \"ControlHost\""));
  EXPECT_THAT(sacctmgr({"show", "user", "colour=red"}), HasSubstr("Unknown condition: colour"));
  EXPECT_THAT(sacctmgr({"show", "assoc", "bob"}), HasSubstr("write user=bob or account=bob"));
  EXPECT_THAT(sacctmgr({"show", "user", "withfed"}), HasSubstr("withfed: not known here"));
}

}  // namespace
}  // namespace berth::command
