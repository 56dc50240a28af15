// GPUs of a made-up machine: which nodes belong together, and what a step may open.
#include "cgroup/gpu_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth::cgroup {
namespace {

using testing::ElementsAre;

class GpuDevicesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/berth-gpus-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    put("proc/devices",
        "Character devices:\n  1 mem\n195 nvidia\n237 nvidia-caps\n\nBlock devices:\n");
    put("proc/driver/nvidia/gpus/0000:3b:00.0/information",
        "Model: \t\t NVIDIA H200\nDevice Minor: \t 0\n");
    put("proc/driver/nvidia/gpus/0000:5e:00.0/information", "Device Minor: \t 1\n");
    for (const auto& [bus, card] : {std::pair{"0000:3b:00.0", 0}, {"0000:5e:00.0", 1}}) {
      const std::string drm = std::string("sys/bus/pci/devices/") + bus + "/drm/";
      put(drm + "card" + std::to_string(card) + "/dev", "226:" + std::to_string(card) + "\n");
      put(drm + "renderD" + std::to_string(128 + card) + "/dev",
          "226:" + std::to_string(128 + card) + "\n");
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + '/' + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  GpuDevices look() const {
    return gpu_devices_here({root_ + "/dev", root_ + "/proc", root_ + "/sys"});
  }
  std::string root_;
};

TEST_F(GpuDevicesTest, NodesOfOneGpuBelongTogether) {
  const GpuDevices gpus = look();
  EXPECT_EQ(gpus.caps_major, 237U);
  EXPECT_THAT(gpus.same_gpu.at({false, 195, 0}),
              ElementsAre(DeviceId{false, 226, 0}, DeviceId{false, 226, 128}));
  EXPECT_FALSE(gpus.kfd);
}

TEST_F(GpuDevicesTest, AStepOpensItsOwn) {
  const GpuDevices gpus = look();
  const DeviceId first{false, 195, 0};
  const DeviceId second{false, 195, 1};
  const auto rules = device_rules(gpus, {second}, {first, second});
  EXPECT_TRUE(allowed(rules, second));
  EXPECT_FALSE(allowed(rules, first));
  EXPECT_FALSE(allowed(rules, {false, 195, 7})) << "a GPU that gres.conf does not name";
  EXPECT_TRUE(allowed(rules, {false, 195, 255})) << "nvidiactl";
  EXPECT_TRUE(allowed(rules, {false, 226, 129})) << "its own node of /dev/dri";
  EXPECT_FALSE(allowed(rules, {false, 226, 128}));
  EXPECT_FALSE(allowed(rules, {false, 237, 3}));
  EXPECT_TRUE(allowed(rules, {false, 1, 3}));
  EXPECT_TRUE(allowed(rules, {true, 8, 0}));

  const auto none = device_rules(gpus, {}, {first, second});
  for (const DeviceId& device : {first, second, DeviceId{false, 226, 129}}) {
    EXPECT_FALSE(allowed(none, device));
  }
  EXPECT_TRUE(allowed(none, {false, 195, 255}));
}

TEST(DeviceRules, AllAmdGpusShareOneFile) {
  GpuDevices gpus;
  gpus.kfd = DeviceId{false, 511, 0};
  const DeviceId render{false, 226, 128};
  EXPECT_TRUE(allowed(device_rules(gpus, {render}, {render}), *gpus.kfd));
  EXPECT_FALSE(allowed(device_rules(gpus, {}, {render}), *gpus.kfd));
}

TEST(DeviceRules, NumbersOfFiles) {
  EXPECT_EQ(device_of("/dev/null"), (DeviceId{false, 1, 3}));
  EXPECT_FALSE(device_of("/dev"));
  EXPECT_FALSE(device_of("/nonexistent"));
}

}  // namespace
}  // namespace berth::cgroup
