#include "simulate/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "site/site.h"

namespace berth::simulate {
namespace {

std::string said(const Ask& ask, const char* spec) {
  const auto site = site::from_emulate_spec(spec);
  EXPECT_TRUE(site);
  Wording wording(site->cluster);
  std::string out = fmt::format("{}", fmt::join(wording.words(ask, 1), " "));
  for (const std::string& note : wording.notes()) out += " | " + note;
  return out;
}

constexpr const char* kA100 = "gpu[1-2]:cpus=16:mem=64G:gpus=a100x4";

TEST(Words, GpusAreAskedForNodeByNodeWhereTheyDivide) {
  Ask ask;
  ask.nodes = 2;
  ask.tasks = 2;
  ask.cpus_per_task = 4;
  ask.memory_per_node_mb = 100;
  ask.gpus = 4;
  ask.models = {"A100"};
  EXPECT_EQ(said(ask, kA100),
            "--nodes=2 --ntasks=2 --cpus-per-task=4 --mem=100M --gres=gpu:a100:2");
  ask.gpus = 3;
  EXPECT_EQ(said(ask, kA100), "--nodes=2 --ntasks=2 --cpus-per-task=4 --mem=100M --gpus=a100:3");
}

TEST(Words, WhatTheClusterHasNotIsLeftOutAndSaid) {
  Ask ask;
  ask.nodes = 1;
  ask.memory_per_cpu_mb = 5;
  ask.gpus = 1;
  ask.models = {"k80"};
  ask.partition = "debug";
  EXPECT_EQ(said(ask, kA100),
            "--nodes=1 --ntasks=1 --mem-per-cpu=5M --gres=gpu:1"
            " | a model of GPU this cluster has not, any is taken: 1 job (k80)"
            " | a partition this cluster has not, the default is taken: 1 job (debug)");
}

TEST(Words, APartOfAGpuIsShardsOrAWholeOne) {
  Ask ask;
  ask.nodes = 1;
  ask.memory_per_node_mb = 5;
  ask.gpu_milli = 460;
  EXPECT_EQ(said(ask, "g1:cpus=4:gpus=t4x2:shards=16"),
            "--nodes=1 --ntasks=1 --mem=5M --gres=shard:4")
      << "8 of each GPU";
  EXPECT_EQ(said(ask, kA100),
            "--nodes=1 --ntasks=1 --mem=5M --gres=gpu:1 | a part of a GPU where there are no "
            "shards, a whole one is taken: 1 job (460/1000)");
}

}  // namespace
}  // namespace berth::simulate
