// GPUs of one model or another: which of them a job gets, and what is refused.
#include "place/alternatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "place/place.h"
#include "place/prepared.h"
#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using ::testing::HasSubstr;

class Alternatives : public ::testing::Test {
 protected:
  Alternatives() : usage_(cluster_) {}

  const request::Request& read(const std::string& options) {
    request_ = corpus::parsed(request::Command::srun, options);
    return request_;
  }
  JobPlan plan(const std::string& options) { return place_job(cluster_, usage_, read(options)); }
  /// "model:how many" of all that it gets, or why not.
  std::string gets(const std::string& options) {
    const JobPlan out = plan(options);
    if (out.verdict == Verdict::never) return out.error.hint;
    if (out.verdict != Verdict::now) return "waits";
    std::map<std::string, std::uint64_t> by_model;
    for (const cluster::NodeShare& share : out.allocation.nodes) {
      const cluster::GresShare* taken = share.find("gpu");
      const cluster::Gres* gres = cluster_.nodes[share.node].find_gres("gpu");
      for (std::size_t d = 0; taken != nullptr && d < taken->units.size(); ++d) {
        if (taken->units[d] > 0) by_model[gres->devices[d].type] += taken->units[d];
      }
    }
    std::string words;
    for (const auto& [model, count] : by_model) {
      words += (words.empty() ? "" : " ") + model + ":" + std::to_string(count);
    }
    return words;
  }

  cluster::Cluster cluster_ = corpus::make();
  cluster::Usage usage_;
  request::Request request_;
};

TEST_F(Alternatives, TheFirstModelThatFitsNowIsTaken) {
  EXPECT_EQ(gets("-n1 --gpus=a100|tesla_v100:2"), "a100:2");
  EXPECT_EQ(gets("-n1 --gpus=tesla_v100|a100:2"), "tesla_v100:2");
  EXPECT_EQ(gets("-n1 --gpus=tesla_v100|a100:4"), "a100:4") << "there are two of the first";
  EXPECT_EQ(gets("-n1 --gpus=h200|a100:1"), "a100:1") << "one that is not there does no harm";
  EXPECT_EQ(gets("-n1 --gpus-per-task=tesla_v100|a100:1"), "tesla_v100:1");
  EXPECT_EQ(gets("-N1 --gres=gpu:tesla_v100|a100:1"), "tesla_v100:1");
}

TEST_F(Alternatives, AllGpusOfAJobAreOfOneModel) {
  EXPECT_EQ(gets("-N2 --gpus-per-node=tesla_v100|a100:2"), "a100:4");
  // What is left of the first is not made up with the second.
  const JobPlan one = plan("-n1 --gpus=tesla_v100:1");
  usage_.take(one.allocation);
  EXPECT_EQ(gets("-n1 --gpus=tesla_v100|a100:2"), "a100:2");
}

TEST_F(Alternatives, GpusWithEnoughMemoryAreTaken) {
  EXPECT_THAT(gets("-n1 --gpus=1 --gpu-mem-min=30G"), HasSubstr("is not known in partition debug"));
  EXPECT_THAT(gets("-n1 --gpu-mem-min=30G"), HasSubstr("but none are asked for"));
  for (cluster::Node& node : cluster_.nodes) {
    for (cluster::Gres& gres : node.gres) {
      for (cluster::Device& device : gres.devices) {
        if (device.type == "a100") device.memory_mb = 40 * 1024;
        if (device.type == "tesla_v100") device.memory_mb = 16 * 1024;
      }
    }
  }
  usage_ = cluster::Usage(cluster_);
  EXPECT_EQ(gets("-n1 --gpus=1 --gpu-mem-min=30G"), "a100:1");
  EXPECT_EQ(gets("-n1 --gpus=tesla_v100|a100:1 --gpu-mem-min=30G"), "a100:1");
  EXPECT_EQ(gets("-n1 --gpus=tesla_v100|a100:1 --gpu-mem-min=16G"), "tesla_v100:1");
  EXPECT_THAT(gets("-n1 --gpus=1 --gpu-mem-min=80G"),
              HasSubstr("no GPU of partition debug has 80G of memory (have "));
  EXPECT_THAT(gets("-n1 --gpus=1 --gpu-mem-min=80G"), HasSubstr("with 40G"));
}

TEST(KnownMemory, IsToldOrInTheNameOfTheType) {
  const auto known = [](const std::string& type, std::uint64_t told) {
    cluster::Device device;
    device.type = type;
    device.memory_mb = told;
    return device.known_memory_mb();
  };
  EXPECT_EQ(known("a100", 0), 0U);
  EXPECT_EQ(known("a100", 40960), 40960U);
  EXPECT_EQ(known("a100_80gb", 0), 81920U);
  EXPECT_EQ(known("a100_80gb", 81559), 81559U);
  EXPECT_EQ(known("a100_3g.20gb", 0), 20480U);
  EXPECT_EQ(known("gb", 0), 0U);
  EXPECT_EQ(known("x99999999999999999999gb", 0), 0U);
}

TEST_F(Alternatives, WhatCannotBeMeantIsRefused) {
  EXPECT_THAT(gets("-n1 --gpus=a100|:2"), HasSubstr("a model is missing in 'a100|'"));
  EXPECT_THAT(gets("-n1 --gpus=h200|h300:2"), HasSubstr("there is no gpu of type"));
  EXPECT_THAT(gets("-n1 --gpus=a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q:1"),
              HasSubstr("more than 16 choices"));
}

TEST_F(Alternatives, APlanIsKeptWithItsModel) {
  const request::Request either = read("-n1 --gpus=a100|tesla_v100:2");
  const Prepared prepared(cluster_, either);
  const JobPlan second = plan("-n1 --gpus=tesla_v100:2");
  const auto kept = prepared.as_planned(second.partition, second.allocation);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->counts.per_job.front().type, "tesla_v100");
}

TEST_F(Alternatives, EveryPartitionMayHaveItsOwn) {
  cluster_.settings.enforce_part_limits = cluster::EnforcePartLimits::all;
  EXPECT_EQ(gets("-n1 --gpus=h200|a100:1"), "a100:1")
      << "a model that is not there is no limit of the partition";
}

}  // namespace
}  // namespace berth::place
