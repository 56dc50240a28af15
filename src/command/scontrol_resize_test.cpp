#include "command/scontrol_resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::command::scontrol {
namespace {

TEST(Resize, ScriptsSayWhatTheJobHasNow) {
  wire::JobInfo job;
  job.set_nodes("gpu[1-3]");
  job.set_node_count(3);
  for (const char* ids : {"0-3", "0-3", "5"}) job.add_detail()->set_cpu_ids(ids);
  const ResizeScripts scripts = resize_scripts(job);
  EXPECT_THAT(scripts.sh, ::testing::StartsWith("export SLURM_NODELIST=\"gpu[1-3]\"\n"));
  EXPECT_THAT(scripts.sh, ::testing::HasSubstr("export SLURM_JOB_CPUS_PER_NODE=\"4(x2),1\"\n"));
  EXPECT_THAT(scripts.sh, ::testing::HasSubstr("unset SLURM_NTASKS\n"));
  EXPECT_THAT(scripts.csh, ::testing::HasSubstr("setenv SLURM_NNODES \"3\"\n"));
}

TEST(Resize, OnlyKeysAboutNodesMatter) {
  wire::Change change;
  change.set_what("job");
  change.set_action("update");
  change.add_keys()->set_name("TimeLimit");
  EXPECT_FALSE(changes_size(change));
  change.add_keys()->set_name("NumNodes");
  EXPECT_TRUE(changes_size(change));
}

}  // namespace
}  // namespace berth::command::scontrol
