// gres.conf: devices, counts, cores, links, flags, AutoDetect, and complaints.
#include "conf/gres_conf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::conf {
namespace {

using testing::ElementsAre;

struct GresRead {
  GresConf conf;
  std::vector<std::string> errors;
};

GresRead read_gres(std::string text) {
  const MemorySource source(MemorySource::Files{{"gres.conf", std::move(text)}});
  Complaints complaints;
  GresRead got;
  got.conf = read_gres_conf(source, "c", complaints).value();
  if (complaints.failed()) {
    for (const Message& m : complaints.as_error().messages) got.errors.push_back(m.text);
  }
  return got;
}

TEST(GresConf, ReadsLines) {
  const GresRead got = read_gres(
      "AutoDetect=NVML\n"
      "NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3] Cores=0-7,16 Flags=EXPLICIT\n"
      "name=gpu file=/dev/nvidia0 links=-1,4\n"
      "Name=shard Count=32\n"
      "Name=gpu MultipleFiles=/dev/a,/dev/b\n"
      "Name=bandwidth Count=4G Flags=CountOnly\n"
      "NodeName=n3 AutoDetect=off\n");
  EXPECT_THAT(got.errors, ElementsAre());
  const auto& lines = got.conf.lines;
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0].autodetect->value, "nvml");
  EXPECT_TRUE(lines[0].name.empty());
  EXPECT_THAT(*lines[1].nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(lines[1].type, "a100");
  EXPECT_THAT(lines[1].files,
              ElementsAre("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3"));
  EXPECT_EQ(lines[1].amount(), 4u);
  EXPECT_EQ(lines[1].cores->value.ranges(), "0-7,16");
  EXPECT_TRUE(lines[1].has_flag("explicit"));
  EXPECT_FALSE(lines[2].nodes);
  EXPECT_THAT(lines[2].links->value, ElementsAre(-1, 4));
  EXPECT_EQ(lines[3].amount(), 32u);
  EXPECT_EQ(lines[4].amount(), 1u);
  EXPECT_EQ(lines[4].files.size(), 2u);
  EXPECT_EQ(lines[5].amount(), std::uint64_t{4} << 30);
  EXPECT_EQ(lines[6].autodetect->value, "off");
}

TEST(GresConf, RefusesWithFileAndLine) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"Name=gpu Fil=/dev/nvidia0",
       "gres.conf:1: Fil is not a key of gres.conf; did you mean File?"},
      {"File=/dev/nvidia0", "gres.conf:1: the line has no Name= (and no AutoDetect=)"},
      {"Name=gpu File=",
       "gres.conf:1: File=: allowed are paths like /dev/nvidia0 or /dev/nvidia[0-3]"},
      {"Name=gpu File=/dev/nvidia[0-2000]", "gres.conf:1: File= names more than 1024 files"},
      {"Name=gpu File=/dev/a MultipleFiles=/dev/b",
       "gres.conf:1: File= and MultipleFiles= exclude each other"},
      {"Name=gpu Count=x",
       "gres.conf:1: Count=x: allowed is a whole number, with K, M, G, T or P if wanted"},
      {"Name=gpu Count=-1",
       "gres.conf:1: Count=-1: allowed is a whole number, with K, M, G, T or P if wanted"},
      {"Name=gpu Count=1e99",
       "gres.conf:1: Count=1e99: allowed is a whole number, with K, M, G, T or P if wanted"},
      {"Name=gpu Cores=0-", "gres.conf:1: Cores=0-: allowed is a list of core numbers like 0-7,16"},
      {"Name=gpu File=/dev/nvidia[0-1] Links=-1,1",
       "gres.conf:1: Links= describes one device, this line has 2; write one line for each File"},
      {"Name=gpu File=/dev/nvidia0 Links=a,b",
       "gres.conf:1: Links=a,b: allowed is a number for each device, -1 for the device itself, "
       "like "
       "-1,4,0,0"},
      {"Name=gpu File=/dev/nvidia[0-1] Count=3",
       "gres.conf:1: Count=3 but File= names 2; leave Count= away"},
      {"Name=gpu Flags=CountOny",
       "gres.conf:1: Flags=CountOny: CountOny is not known; did you mean "
       "CountOnly?"},
      {"AutoDetect=magic",
       "gres.conf:1: AutoDetect=magic: allowed are nvml, nvidia, rsmi, oneapi, nrt, full, off"},
      {"NodeName=n[1 Name=gpu", "gres.conf:1: Invalid host list \"n[1\": '[' without ']'"},
  };
  for (const Row& row : rows)
    EXPECT_THAT(read_gres(row.text).errors, ElementsAre(row.error)) << row.text;
}

TEST(GresConf, StaysBounded) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "NodeName=n[1-65000] Name=gpu File=/dev/nvidia0\n";
  EXPECT_THAT(
      read_gres(text).errors,
      testing::Contains("gres.conf:17: the NodeName= of gres.conf name too many nodes in all"));
}

TEST(GresConf, BoundsLinesForEveryNode) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "Name=gpu File=/dev/nvidia0\n";
  EXPECT_THAT(read_gres(text).errors,
              testing::Contains("gres.conf:257: more than 256 lines without NodeName="));
}

TEST(GresConf, NamesFlagsThatAreNotUsed) {
  Complaints complaints;
  read_gres_conf(
      MemorySource(MemorySource::Files{{"gres.conf",
                                        "Name=gpu File=/dev/nvidia0 Flags=explicit,nvidia_gpu_env\n"
                                        "Name=mps Count=100 Flags=one_sharing\n"
                                        "Name=nic Count=2 Flags=explicit,env_uuid\n"}}),
      "c", complaints);
  EXPECT_THAT(complaints.warnings(), ElementsAre());
  ASSERT_EQ(complaints.unused_keys().size(), 1u);
  EXPECT_EQ(shown(complaints.unused_keys()[0], false),
            "gres.conf: 1 key that Slurm has is not used by berth: Flags=env_uuid of nic (line 3)");
}

TEST(GresConf, FlagsOfVariablesGoOnToTheNextLine) {
  const auto lines = read_gres(
                         "NodeName=a Name=gpu Type=x File=/dev/1 Flags=amd_gpu_env,env_uuid\n"
                         "NodeName=a Name=gpu Type=x File=/dev/2 Flags=explicit\n"
                         "NodeName=a Name=gpu Type=x File=/dev/3\n"
                         "NodeName=a Name=gpu Type=x File=/dev/4 Flags=nvidia_gpu_env\n"
                         "NodeName=a Name=gpu Type=y File=/dev/5\n"
                         "NodeName=b Name=gpu Type=y File=/dev/6\n")
                         .conf.lines;
  std::vector<std::string> said;
  for (const GresLine& line : lines) {
    std::string words;
    for (const char* flag : {"amd_gpu_env", "nvidia_gpu_env", "env_uuid"}) {
      if (line.has_flag(flag)) words += std::string(words.empty() ? "" : " ") + flag;
    }
    said.push_back(words);
  }
  EXPECT_THAT(said, ElementsAre("amd_gpu_env env_uuid", "amd_gpu_env env_uuid",
                                "amd_gpu_env env_uuid", "nvidia_gpu_env", "", ""));
}

TEST(GresConf, FlagsThatExcludeEachOther) {
  EXPECT_THAT(read_gres("Name=gpu Flags=no_gpu_env,amd_gpu_env").errors,
              ElementsAre("gres.conf:1: Flags=no_gpu_env excludes the other flags of variables"));
  EXPECT_THAT(read_gres("Name=mps Count=1 Flags=one_sharing,all_sharing").errors,
              ElementsAre("gres.conf:1: Flags=one_sharing and all_sharing exclude each other"));
}

TEST(GresConf, AutoDetectOfANodeComesBeforeThatOfAll) {
  const auto gres =
      read_gres("AutoDetect=nvml\nNodeName=a AutoDetect=off\nName=gpu File=/dev/1\n").conf;
  const auto& lines = gres.lines;
  const std::vector<const GresLine*> all = {&lines[0], &lines[1], &lines[2]};
  EXPECT_EQ(autodetect_of(all)->value, "off");
  const std::vector<const GresLine*> other = {&lines[0], &lines[2]};
  EXPECT_EQ(autodetect_of(other)->value, "nvml");
  EXPECT_EQ(autodetect_of({}), nullptr);
}

TEST(GresConf, MayBeAbsent) {
  Complaints complaints;
  EXPECT_FALSE(read_gres_conf(MemorySource(MemorySource::Files{}), "c", complaints));
  EXPECT_FALSE(complaints.failed());
}

}  // namespace
}  // namespace berth::conf
