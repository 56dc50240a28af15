// The variable reads back as what was written; ranks of mpirun get what tasks of srun
// --gpus-per-task get.
#include "place/local_ranks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace berth::place {
namespace {

LocalShare part_of_a_node() {
  return *read_local_share("2x8x1 cores 0-1,8-9 gpus 0@0,1@0,2@1,3@1");
}
LocalShare whole_node() {
  return *read_local_share("2x8x1 cores 0-15 gpus 0@0,1@0,2@1,3@1");
}

std::string gpus_of(const LocalShare& local, std::uint32_t ranks,
                    std::optional<std::uint32_t> each = std::nullopt) {
  std::string out;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    const auto choice = choose_for_rank(local, {.rank = i, .ranks = ranks, .gpus_per_rank = each});
    if (!choice) return std::string(choice.error().what());
    out += fmt::format("{}{}", i == 0 ? "" : " ", choice->gpus.list());
  }
  return out;
}

TEST(LocalRanks, TheVariableReadsBack) {
  for (const char* text :
       {"2x8x1 cores 0-15 gpus 0@0,1@0,2@1,3@1", "1x4x2 cores 1-2", "1x4x2 cores 0-3 gpus 2@*",
        "4x2x1 cores 0-7 gpus 0@0,0@1,1@2,1@3", "1x4x2 cores 0-3 gpus 2@*,5@* fenced",
        "1x1x1 cores 0 fenced", "1x4x1 cores 0-3 gpus 2@*,5@* uuids MIG-a,MIG-b told cuda fenced",
        "1x4x1 cores 0-3 gpus 2@* told rocr,opencl", "1x4x1 cores 0-3 gpus 2@* told none",
        "1x4x1 cores 0-3 gpus 2@* daemon", "1x4x1 cores 0-3 daemon fenced"}) {
    const auto share = read_local_share(text);
    ASSERT_TRUE(share) << text;
    EXPECT_EQ(local_share_text(share->node, share->share, share->fenced, share->daemon), text);
  }
}

TEST(LocalRanks, WhatIsNotThatIsRefused) {
  for (const char* text :
       {"", "x", "2x8 cores 0-15", "2x8x1 cores 0-16", "0x8x1 cores 0", "2x8x1 cores 0-15 gpus",
        "2x8x1 cores 0-15 gpus 0", "2x8x1 cores a", "2x8x1 cores 0-15 gpus 0@2",
        "2x8x1 cores 0-15 gpus 0@0,x@0", "99999x99999x9 cores 0", "2x8x1 cores 0 gpus 5000@0",
        "1x1x1 cores 0 uuids MIG-a gpus 0@*", "1x1x1 cores 0 gpus 0@* uuids MIG-a,MIG-b",
        "1x1x1 cores 0 gpus 0@* uuids", "1x1x1 cores 0 told cuda",
        "1x1x1 cores 0 gpus 0@* told hip", "1x1x1 cores 0 gpus 0@* gpus 0@*"}) {
    EXPECT_FALSE(read_local_share(text)) << text;
  }
}

TEST(LocalRanks, EachHasItsOwnGpus) {
  struct Row {
    std::uint32_t ranks;
    std::optional<std::uint32_t> each;
    const char* gpus;
  };
  for (const Row& row : std::initializer_list<Row>{
           // Where ranks have cores of their own they go to the sockets in turn, as tasks of srun
           // do.
           {4, {}, "0 2 1 3"},
           {4, 1, "0 2 1 3"},
           {2, {}, "0,1 2,3"},
           {2, 1, "0 1"},  // fewer ranks than cores: bound to none
           {1, {}, "0,1,2,3"},
           {8, {}, "0 0 1 1 2 2 3 3"},
           {2, 0, " "},
           {3, 2, "3 ranks on this node with 2 GPUs each are 6 GPUs, but the job has 4 here"},
       }) {
    EXPECT_EQ(gpus_of(part_of_a_node(), row.ranks, row.each), row.gpus) << row.ranks << " ranks";
  }
  EXPECT_EQ(gpus_of(whole_node(), 4), "0 1 2 3");  // bound to no core, near to all
}

TEST(LocalRanks, InsideAFenceGpusAreCountedFromZero) {
  const Bits both = Bits::of({2, 5});
  EXPECT_EQ(read_local_share("1x4x1 cores 0-3 gpus 2@*,5@*")->visible(both).list(), "2,5");
  const auto fenced = read_local_share("1x4x1 cores 0-3 gpus 2@*,5@* fenced");
  EXPECT_EQ(fenced->visible(both).list(), "0,1");
  EXPECT_EQ(fenced->visible(Bits::of({5})).list(), "1");
}

TEST(LocalRanks, PartsAreFoundByName) {
  using Map = std::map<std::string, std::string>;
  const auto parts =
      read_local_share("1x4x1 cores 0-3 gpus 2@*,5@* uuids MIG-a,MIG-b told cuda,opencl fenced");
  EXPECT_EQ(parts->variables(Bits::of({5})),
            (Map{{"CUDA_VISIBLE_DEVICES", "MIG-b"}, {"GPU_DEVICE_ORDINAL", "1"}}));
  EXPECT_FALSE(parts->usual_variables());
  EXPECT_EQ(parts->variables({}), (Map{{"CUDA_VISIBLE_DEVICES", ""}, {"GPU_DEVICE_ORDINAL", ""}}));
  EXPECT_EQ(read_local_share("1x4x1 cores 0-3 gpus 2@* told none")->variables(Bits::of({2})),
            Map{});
  const auto usual = read_local_share("1x4x1 cores 0-3 gpus 2@*");
  EXPECT_EQ(usual->variables(Bits::of({2})).size(), 4U);
  EXPECT_TRUE(usual->usual_variables());
}

TEST(LocalRanks, VariablesOfARank) {
  using Map = std::map<std::string, std::string>;
  const auto usual = read_local_share("1x4x1 cores 0-3 gpus 2@*,5@* fenced");
  const Map bare = {{"CUDA_VISIBLE_DEVICES", "1"}};
  EXPECT_EQ(usual->rank_variables(Bits::of({5}), {}), bare);
  const Map amd = {
      {"CUDA_VISIBLE_DEVICES", "1"}, {"HIP_VISIBLE_DEVICES", "1"}, {"ROCR_VISIBLE_DEVICES", "1"}};
  EXPECT_EQ(usual->rank_variables(Bits::of({5}), {{"ROCR_VISIBLE_DEVICES", "0,1"},
                                                  {"HIP_VISIBLE_DEVICES", "0,1"},
                                                  {"HOME", "/root"}}),
            amd);
  const Map parts = {{"CUDA_VISIBLE_DEVICES", "MIG-b"}};
  EXPECT_EQ(read_local_share("1x4x1 cores 0-3 gpus 2@*,5@* uuids MIG-a,MIG-b told cuda")
                ->rank_variables(Bits::of({5}), {}),
            parts);
  const Map untold = {{"CUDA_VISIBLE_DEVICES", "2"}};
  EXPECT_EQ(
      read_local_share("1x4x1 cores 0-3 gpus 2@* told none")->rank_variables(Bits::of({2}), {}),
      untold);
  EXPECT_EQ(read_local_share("1x4x1 cores 0-3")->rank_variables({}, {}), Map{});
}

TEST(LocalRanks, CoresAreDividedToo) {
  const auto choice = choose_for_rank(part_of_a_node(), {.rank = 1, .ranks = 4});
  ASSERT_TRUE(choice);
  EXPECT_TRUE(choice->bound);
  EXPECT_EQ(choice->cpus.ranges(), "8");
}

}  // namespace
}  // namespace berth::place
