// Pictures of the topologies in tests/hardware.
#include "command/hardware_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace berth::command {
namespace {

using testing::HasSubstr;
using testing::Not;

device::Machine machine(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(BERTH_SOURCE_DIR "/tests/hardware/topologies/" + name).rdbuf();
  const auto survey = survey::read_survey(text.str());
  EXPECT_TRUE(survey) << name;
  return survey ? device::described(*survey) : device::Machine{};
}

TEST(Hardware, PictureOfPcieOnly) {
  EXPECT_EQ(hardware_picture(machine("l40s-pcie-4.topology")),
            R"(1 socket, 32 cores, 64 CPUs, 503G of memory, 4 GPUs (driver 550.54.15)

socket 0: cores 0-31
  GPU 0   l40s             45G  0000:01:00.0  /dev/nvidia2  NUMA node 0
  GPU 1   l40s             45G  0000:02:00.0  /dev/nvidia3  NUMA node 0
  GPU 2   l40s             45G  0000:81:00.0  /dev/nvidia0  NUMA node 0
  GPU 3   l40s             45G  0000:82:00.0  /dev/nvidia1  NUMA node 0

between GPUs
           0     1     2     3
     0     -   PIX   PHB   PHB
     1   PIX     -   PHB   PHB
     2   PHB   PHB     -   PIX
     3   PHB   PHB   PIX     -
  PIX   one PCIe switch
  PHB   a PCIe host bridge
)");
}

TEST(Hardware, GpusStandAtTheirSockets) {
  const std::string text = hardware_picture(machine("h100-nvswitch-8.topology"));
  const std::size_t second = text.find("\nsocket 1: cores 56-111\n");
  ASSERT_NE(second, std::string::npos);
  EXPECT_THAT(text.substr(0, second), HasSubstr("GPU 3 "));
  EXPECT_THAT(text.substr(0, second), Not(HasSubstr("GPU 4 ")));
  EXPECT_THAT(text, HasSubstr("     7  NV18  NV18"));
  EXPECT_THAT(text, HasSubstr("NVn   n NVLinks"));
}

TEST(Hardware, JsonHasEveryPart) {
  const auto json = nlohmann::json::parse(hardware_json(machine("a100-mig-2.topology")));
  ASSERT_EQ(json["gpus"].size(), 4u);
  EXPECT_EQ(json["gpus"][1]["type"], "a100_2g.10gb");
  EXPECT_EQ(json["gpus"][1]["profile"], "2g.10gb");
  EXPECT_EQ(json["gpus"][3]["sockets"], nlohmann::json::array({1}));
  EXPECT_EQ(json["gpus"][0]["ways"][1], "board");
  EXPECT_EQ(json["driver"], "535.161.08");
}

}  // namespace
}  // namespace berth::command
