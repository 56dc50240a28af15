// Lines and lists, there and back, and what is refused.
#include "survey/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::survey {
namespace {

using testing::HasSubstr;

template <class Of>
Of read(std::string_view text) {
  auto line = read_line(text);
  EXPECT_TRUE(line) << text;
  return line ? std::get<Of>(*line) : Of{};
}

std::string refusal(std::string_view text) {
  const auto list = read_survey(text);
  return list ? "" : std::string(list.error().what());
}

TEST(Line, GpuThereAndBack) {
  const std::string text =
      "gpu index=2 minor=5 uuid=GPU-1b2c bus=0000:1b:00.0 memory_mb=81559 "
      "model=NVIDIA%20H100%2080GB%20HBM3 cpus=0-31,64-95 numa=1\n";
  const auto gpu = read<FoundGpu>(std::string_view(text).substr(0, text.size() - 1));
  EXPECT_EQ(gpu.model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.minor, 5u);
  EXPECT_EQ(gpu.cpus.count(), 64u);
  EXPECT_EQ(write_line(gpu), text);
}

TEST(Line, WhatIsNotKnownIsLeftOut) {
  Sample sample;
  sample.gpu = 1;
  sample.power_mw = 0;
  EXPECT_EQ(write_line(sample), "sample gpu=1 power_mw=0\n");
  const auto read_back = read<Sample>("sample gpu=1 power_mw=0");
  EXPECT_FALSE(read_back.busy_percent);
  EXPECT_EQ(read_back.power_mw, 0u);
}

TEST(Line, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "gpu", "gpus index=0", "gpu index=0 memory_mb=x", "gpu index=0 memory_mb=1 index=1",
        "gpu index=0 memory_mb=1 colour=red", "gpu index=0 memory_mb=1 model=a%2",
        "gpu index=0 memory_mb=1 model=", "gpu index=4294967296 memory_mb=1", "way from=0 to=1",
        "way from=0 to=1 by=road", "gpu index=0  memory_mb=1", "end =1", "xid gpu=0 code=-1"}) {
    EXPECT_FALSE(read_line(text)) << text;
  }
  EXPECT_FALSE(read_line("driver version=" + std::string(kMostLine, '1')));
}

TEST(List, Whole) {
  const std::string text =
      "# by hand\nberth-nvml version=1\ncpus sockets=2 cores=4 threads=1 memory_mb=1000\n"
      "driver version=550.54.15\ngpu index=0 memory_mb=10\ngpu index=2 memory_mb=10\n"
      "lost index=1 why=GPU%20is%20lost\nmig gpu=0 gpu_instance=1 compute_instance=0 "
      "profile=3g.40gb memory_mb=5\nnvlink from=0 to=2 count=4\nnvlink from=0 count=2\n"
      "way from=0 to=2 by=host_bridge\nend\n";
  const auto list = read_survey(text);
  ASSERT_TRUE(list) << list.error().what();
  EXPECT_EQ(list->gpus.size(), 2u);
  EXPECT_EQ(list->lost[0].why, "GPU is lost");
  EXPECT_EQ(list->links[1].to, std::nullopt);
  EXPECT_EQ(list->ways[0].way, Way::host_bridge);
  EXPECT_EQ("# by hand\n" + write_survey(*list), text);
}

TEST(List, RefusalsNameTheLine) {
  const std::string head = "berth-nvml version=1\n";
  EXPECT_THAT(refusal("berth-nvml version=2\nend\n"), HasSubstr("line 1: format 2 is not known"));
  EXPECT_THAT(refusal("end\n"), HasSubstr("line 1: the first line must be"));
  EXPECT_THAT(refusal(head), HasSubstr("cut off"));
  EXPECT_THAT(refusal(head + "gpu index=300 memory_mb=1\nend\n"), HasSubstr("line 2: GPU 300"));
  EXPECT_THAT(refusal(head + "gpu index=1 memory_mb=1\ngpu index=1 memory_mb=1\nend\n"),
              HasSubstr("line 3: GPUs must come in the order"));
  EXPECT_THAT(refusal(head + "nvlink from=0 to=1 count=1\nend\n"), HasSubstr("GPU 0 has no line"));
  EXPECT_THAT(refusal(head + "sample gpu=0\nend\n"), HasSubstr("no part of a list"));
  EXPECT_THAT(refusal(head + "end\nend\n"), HasSubstr("a line after \"end\""));
  EXPECT_THAT(refusal(head + "cpus sockets=0 cores=1 threads=1 memory_mb=1\nend\n"),
              HasSubstr("1 to 16384 CPUs"));
}

}  // namespace
}  // namespace berth::survey
