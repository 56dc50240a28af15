// The listing of the recorded cluster's configuration.
#include "conf/config_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "conf/config.h"

namespace berth::conf {
namespace {

TEST(ConfigListing, IsTheRecordedOnes) {
  const DirectorySource source(std::string(BERTH_SOURCE_DIR) + "/tests/conf/corpus");
  const auto config = read_config(source);
  ASSERT_TRUE(config);
  const auto rows = config_listing(config->slurm, {.boot_time = "now",
                                                   .next_job_id = "20777",
                                                   .conf_path = "/x/slurm.conf",
                                                   .version = "26.11.0-0rc1",
                                                   .slurm_user = "root(0)",
                                                   .slurmd_user = "root(0)",
                                                   .controller_host = "vm"});
  const std::map<std::string, std::string> by_key(rows.begin(), rows.end());
  EXPECT_EQ(by_key.size(), rows.size());
  const std::map<std::string, std::string> expected = {
      {"KillWait", "5 sec"},
      {"MinJobAge", "600 sec"},
      {"AccountingStorageType", "(null)"},
      {"MpiDefault", "(null)"},
      {"FirstJobId", "20001"},
      {"SelectTypeParameters", "CR_CORE_MEMORY"},
      {"MaxNodeCount", "8"},
      {"SlurmctldHost[0]", "localhost(127.0.0.1)"},
      {"SlurmUser", "root(0)"},
      {"NEXT_JOB_ID", "20777"},
      {"WaitTime", "0 sec"},
      {"DefMemPerNode", "UNLIMITED"},
      {"TreeWidth", "16"},
      {"GresTypes", "gpu,shard"},
  };
  for (const auto& [key, value] : expected) EXPECT_EQ(by_key.at(key), value) << key;
}

TEST(ConfigListing, HidesPasswordsAndNamesWhatIsGiven) {
  const MemorySource source(MemorySource::Files{
      {"slurm.conf",
       "ClusterName=c\nAccountingStoragePass=secret\nJobCompPass=secret\nDefMemPerCPU=4000\n"
       "Prolog=/a\nTrackWCKey=1\n"}});
  Complaints complaints;
  const auto rows = config_listing(read_slurm_conf(source, complaints), {});
  const std::map<std::string, std::string> by_key(rows.begin(), rows.end());
  for (const auto& [key, value] : rows) EXPECT_NE(value, "secret") << key;
  EXPECT_EQ(by_key.at("DefMemPerCPU"), "4000");
  EXPECT_FALSE(by_key.contains("DefMemPerNode"));
  EXPECT_EQ(by_key.at("Prolog[0]"), "/a");
  EXPECT_EQ(by_key.at("TrackWCKey"), "yes");
}

}  // namespace
}  // namespace berth::conf
