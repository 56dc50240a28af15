// --gpu-mem: a part of the memory of one GPU, which others may share.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "place/place.h"
#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

using ::testing::HasSubstr;

/// The cluster of the recordings, on which a100 have 40 GiB and tesla_v100 16.
class GpuMemory : public ::testing::Test {
 protected:
  GpuMemory() {
    cluster_.settings.gres_types.emplace_back(text::kGpuMemory);
    for (cluster::Node& node : cluster_.nodes) {
      for (cluster::Gres& gres : node.gres) {
        for (cluster::Device& device : gres.devices) {
          if (device.type == "a100") device.memory_mb = 40 * 1024;
          if (device.type == "tesla_v100") device.memory_mb = 16 * 1024;
        }
      }
      cluster::add_gpu_memory(node);
    }
    usage_.emplace(cluster_);
  }

  JobPlan plan(const std::string& options) {
    request_ = corpus::parsed(request::Command::srun, options + " --mem=1G");
    return place_job(cluster_, *usage_, request_);
  }
  /// "gpu1: gpumem 1=10240", or why not. What it gets is taken.
  std::string gets(const std::string& options) {
    const JobPlan out = plan(options);
    if (out.verdict == Verdict::never) return out.error.hint;
    if (out.verdict != Verdict::now) return "waits";
    usage_->take(out.allocation);
    std::string words;
    for (const cluster::NodeShare& share : out.allocation.nodes) {
      words += (words.empty() ? "" : "; ") + cluster_.nodes[share.node].name + ":";
      for (const cluster::GresShare& gres : share.gres) {
        for (std::size_t d = 0; d < gres.units.size(); ++d) {
          if (gres.units[d] == 0) continue;
          words += fmt::format(" {} {}={}", gres.name, d, gres.units[d]);
        }
      }
    }
    return words;
  }

  cluster::Cluster cluster_ = corpus::make();
  std::optional<cluster::Usage> usage_;
  request::Request request_;
};

TEST_F(GpuMemory, PartsOfAGpuFillIt) {
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=10G"), "gpu1: gpumem 0=10240");
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=20G"), "gpu1: gpumem 0=20480");
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=11G"), "gpu1: gpumem 1=11264")
      << "10 GiB are left of GPU 0";
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=10240"), "gpu1: gpumem 0=10240") << "MiB without a letter";
  EXPECT_EQ(gets("-n1 -w gpu1 --gpus=3"), "waits") << "two of four are shared";
  EXPECT_EQ(gets("-n1 -w gpu1 --gpus=2"), "gpu1: gpu 2=1 gpu 3=1");
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=30G"), "waits") << "whole GPUs have no part left";
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=29G"), "gpu1: gpumem 1=29696");
}

TEST_F(GpuMemory, ItIsOfEachNode) {
  EXPECT_EQ(gets("-N2 -n2 -w gpu1,gpu2 --gpu-mem=40G"),
            "gpu1: gpumem 0=40960; gpu2: gpumem 0=40960");
}

TEST_F(GpuMemory, OnlyGpusThatHaveSoMuchAreTaken) {
  EXPECT_EQ(gets("-n1 -w gpu5 --gpu-mem=17G"), "gpu5: gpumem 2=17408") << "the first two have 16";
  EXPECT_EQ(gets("-n1 -w gpu5 --gpu-mem=16G"), "gpu5: gpumem 2=16384")
      << "a GPU that is shared already comes before one that is whole";
  EXPECT_EQ(gets("-n1 -w gpu5 --gpu-mem=16G"), "gpu5: gpumem 0=16384")
      << "of whole ones the smallest";
}

TEST_F(GpuMemory, WhatIsKnownOfNoGpuIsNotGivenOut) {
  EXPECT_THAT(gets("-n1 -w gpu6 --gpu-mem=1"), HasSubstr("not enough GPU memory"));
}

TEST_F(GpuMemory, OneWayOfSharingAtATime) {
  for (cluster::Node& node : cluster_.nodes) {
    for (cluster::Gres& gres : node.gres) {
      for (cluster::Device& device : gres.devices) {
        device.memory_mb = 1024;
        if (gres.is_told()) device.units = 1024;
      }
    }
  }
  usage_.emplace(cluster_);
  EXPECT_EQ(gets("-n1 -w gpu6 --gres=shard:1"), "gpu6: shard 0=1");
  EXPECT_EQ(gets("-n1 -w gpu6 --gpu-mem=100"), "gpu6: gpumem 4=100") << "near its core";
  EXPECT_EQ(gets("-n1 -w gpu6 --gres=shard:3"), "gpu6: shard 0=3");
}

TEST_F(GpuMemory, WhatCannotBeMeantIsRefused) {
  EXPECT_THAT(gets("-n1 --gpu-mem=80G"),
              HasSubstr("no GPU of partition debug has 80G of memory (have "));
  EXPECT_THAT(gets("-n1 --gpus=1 --gpu-mem=10G"), HasSubstr("use --gpu-mem-min"));
  EXPECT_THAT(gets("-n1 --gres=shard:1 --gpu-mem=10G"), HasSubstr("shard"));
  cluster_.settings.gres_types.pop_back();
  EXPECT_THAT(gets("-n1 --gpu-mem=10G"), HasSubstr("gpumem in slurm.conf"));
}

TEST_F(GpuMemory, WhatNoGpuOfThePartitionHasIsRefused) {
  // gpu5 alone: two GPUs of 16 GiB, which are 32 together.
  corpus::add_partition(cluster_, "old", {"gpu5"});
  cluster::Node& node = cluster_.nodes[*cluster_.find_node("gpu5")];
  for (cluster::Gres& gres : node.gres) gres.devices.resize(2);
  usage_.emplace(cluster_);
  EXPECT_EQ(gets("-n1 -p old --gpu-mem=30G"),
            "no GPU of partition old has 30G of memory (have 2 with 16G)");
  EXPECT_EQ(gets("-n1 -p old --gpu-mem=16G"), "gpu5: gpumem 0=16384");
  // The partition has it, the node that is asked for has not.
  const std::string named = gets("-n1 -w gpu5 --gpu-mem=30G");
  EXPECT_THAT(named, HasSubstr("closest: a GPU of gpu5 has 16G of memory for it, asked 30G"));
  EXPECT_THAT(gets("-N5 -n5 -p gpu_partition --gpu-mem=30G"),
              HasSubstr("4 of the 5 nodes asked for can be used"));
}

TEST_F(GpuMemory, ItIsOfOneGpuWhereSharesMayBeOfSeveral) {
  cluster_.settings.multiple_sharing_gres = true;
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=30G"), "gpu1: gpumem 0=30720");
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=30G"), "gpu1: gpumem 2=30720") << "near its core";
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=30G"), "gpu1: gpumem 1=30720");
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=30G"), "gpu1: gpumem 3=30720");
  EXPECT_EQ(gets("-n1 -w gpu1 --gpu-mem=20G"), "waits") << "each has 10 GiB left";
  EXPECT_THAT(gets("-n1 -w gpu1 --gpu-mem=41G"), HasSubstr("no GPU of partition debug has 41G"));
  const JobPlan waits = plan("-n1 -w gpu1 --gpu-mem=20G");
  EXPECT_EQ(waits.reasons.nearest_miss,
            "closest: a GPU of gpu1 has 10G of memory for it, asked 20G");
}

TEST_F(GpuMemory, JobsKeepWhatTheyHaveWhileANodeHasNotToldItsMemory) {
  const JobPlan running = plan("-n1 -w gpu1 --gpu-mem=10G");
  for (cluster::Node& node : cluster_.nodes) {
    for (cluster::Gres& gres : node.gres) {
      for (cluster::Device& device : gres.devices) {
        device.memory_mb = 0;
        if (gres.is_told()) device.units = 0;
      }
    }
  }
  usage_.emplace(cluster_);
  usage_->take(running.allocation);
  EXPECT_EQ(gets("-n1 -w gpu1 --gpus=4"), "waits") << "one of them is shared";
  EXPECT_EQ(gets("-n1 -w gpu1 --gpus=3"), "gpu1: gpu 1=1 gpu 2=1 gpu 3=1");
  usage_->release(running.allocation);
}

}  // namespace
}  // namespace berth::place
