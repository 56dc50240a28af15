// The Priority* keys: forms, defaults, refusals, and flags that make no difference.
#include "conf/priority_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conf/slurm_conf.h"

namespace berth::conf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

PriorityKeys read_priority(const std::string& text, std::vector<std::string>* errors = nullptr,
                           std::vector<std::string>* warnings = nullptr) {
  const MemorySource source(MemorySource::Files{{"slurm.conf", "ClusterName=c\n" + text}});
  Complaints complaints;
  SlurmConf conf = read_slurm_conf(source, complaints);
  if (errors != nullptr && complaints.failed()) {
    for (const Message& m : complaints.as_error().messages) errors->push_back(m.text);
  }
  if (errors == nullptr) {
    EXPECT_FALSE(complaints.failed()) << complaints.as_error().what();
  }
  if (warnings != nullptr) *warnings = complaints.warnings();
  return conf.daemon.priority;
}

TEST(PriorityKeys, HaveSlurmsDefaults) {
  const PriorityKeys keys = read_priority("");
  EXPECT_EQ(keys.type, "priority/multifactor");
  EXPECT_EQ(keys.weight_age, 0u);
  EXPECT_EQ(keys.max_age_seconds, 604800u);
  EXPECT_EQ(keys.calc_period_seconds, 300u);
  EXPECT_THAT(keys.weight_tres, ElementsAre());
}

TEST(PriorityKeys, ReadsEveryForm) {
  std::vector<std::string> warnings;
  const PriorityKeys keys = read_priority(
      "PriorityType=priority/basic\nPriorityWeightAge=1000 PriorityWeightFairshare=2\n"
      "PriorityWeightTRES=CPU=1000,Mem=0.5,GRES/gpu:A100=3000\nPriorityMaxAge=14-0\n"
      "PriorityCalcPeriod=00:00:05\nPriorityFavorSmall=YES\nPriorityFlags=incr_only,MAX_TRES\n",
      nullptr, &warnings);
  EXPECT_EQ(keys.type, "priority/basic");
  EXPECT_EQ(keys.weight_age, 1000u);
  EXPECT_EQ(keys.weight_fair_share, 2u);
  EXPECT_THAT(keys.weight_tres,
              ElementsAre(Pair("cpu", 1000), Pair("mem", 0.5), Pair("gres/gpu:A100", 3000)));
  EXPECT_EQ(keys.max_age_seconds, 14u * 86400);
  EXPECT_EQ(keys.calc_period_seconds, 5u);
  EXPECT_TRUE(keys.favor_small);
  EXPECT_THAT(keys.flags, ElementsAre("INCR_ONLY", "MAX_TRES"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("PriorityFlags=MAX_TRES makes no difference")));
}

TEST(PriorityKeys, RefusesWhatItCannotMean) {
  for (const char* line :
       {"PriorityType=priority/fair", "PriorityWeightAge=-1", "PriorityWeightTRES=CPU",
        "PriorityWeightTRES=apples=3", "PriorityWeightTRES=CPU=1x", "PriorityCalcPeriod=0",
        "PriorityMaxAge=soon", "PriorityFlags=UPSIDE_DOWN", "PriorityFavorSmall=maybe"}) {
    std::vector<std::string> errors;
    read_priority(std::string(line) + "\n", &errors);
    EXPECT_EQ(errors.size(), 1u) << line;
  }
}

}  // namespace
}  // namespace berth::conf
