// Shapes of machines, GPUs from files of a driver, and what every machine must satisfy.
#include "device/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "device/gpus.h"

namespace berth::device {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(Machine, OfThisTestIsConsistent) {
  const Machine machine = this_machine();
  EXPECT_GE(machine.cpus(), 1u);
  EXPECT_EQ(machine.os_numbers.size(), machine.cpus());
  EXPECT_EQ(std::set(machine.os_numbers.begin(), machine.os_numbers.end()).size(), machine.cpus());
  EXPECT_GT(machine.memory_mb, 1u);
  EXPECT_GT(machine.boot_time, 0);
  EXPECT_FALSE(machine.host.empty());
  EXPECT_FALSE(machine.arch.empty());
}

TEST(Shape, NumbersCpusByCoreThenThread) {
  // As Linux numbers two sockets of two cores with two threads: second threads come last.
  const CpuMap map = shape_of(
      {{0, 0, 0}, {0, 1, 1}, {1, 2, 2}, {1, 3, 3}, {0, 0, 4}, {0, 1, 5}, {1, 2, 6}, {1, 3, 7}});
  EXPECT_EQ(map.sockets, 2u);
  EXPECT_EQ(map.cores_per_socket, 2u);
  EXPECT_EQ(map.threads_per_core, 2u);
  EXPECT_THAT(map.os_numbers, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  Machine machine;
  machine.os_numbers = map.os_numbers;
  EXPECT_EQ(machine.os_cpus(Bits::range(0, 1)).ranges(), "0,4");
  EXPECT_EQ(machine.os_cpus(Bits::range(6, 9)).ranges(), "3,7");
}

TEST(Shape, UnevenMachineBecomesOneSocket) {
  const CpuMap map = shape_of({{0, 0, 0}, {0, 0, 1}, {0, 1, 2}});
  EXPECT_EQ(map.sockets, 1u);
  EXPECT_EQ(map.cores_per_socket, 3u);
  EXPECT_EQ(map.threads_per_core, 1u);
  EXPECT_EQ(map.notes.size(), 1u);
}

TEST(Gpus, TypeIsOneWord) {
  EXPECT_EQ(type_of_model("NVIDIA A100-SXM4-80GB"), "a100");
  EXPECT_EQ(type_of_model("Tesla V100-PCIE-16GB"), "v100");
  EXPECT_EQ(type_of_model("NVIDIA GeForce RTX 3090"), "rtx_3090");
  EXPECT_EQ(type_of_model("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(type_of_model("Quadro RTX 6000"), "rtx_6000");
  EXPECT_EQ(type_of_model("NVIDIA H100 NVL"), "h100");
  EXPECT_EQ(type_of_model("AMD Instinct MI300X OAM"), "mi300x");
  EXPECT_EQ(type_of_model("AMD Radeon PRO W7900"), "pro_w7900");
  EXPECT_EQ(type_of_model("Intel Data Center GPU Max 1550"), "max_1550");
  EXPECT_EQ(type_of_model(""), "");
}

class FakeDriver : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "berth-device-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Places places() {
    const std::string root = root_.string();
    return {root + "/proc", root + "/dev", root + "/sys", "/tmp"};
  }
  fs::path root_;
};

TEST_F(FakeDriver, GpusInOrderWithTypeAndSocket) {
  for (const char* file : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "null"})
    write(std::string("dev/") + file, "");
  const auto gpu = [&](const char* bus, const char* minor, const char* cpus) {
    write(std::string("proc/driver/nvidia/gpus/") + bus + "/information",
          std::string("Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 25\nDevice Minor: \t ") +
              minor + "\n");
    write(std::string("sys/bus/pci/devices/") + bus + "/local_cpulist", cpus);
  };
  gpu("0000:3b:00.0", "1", "2-3\n");
  gpu("0000:1b:00.0", "0", "0-1\n");
  gpu("0000:8b:00.0", "10", "0-3\n");
  const CpuMap cpus = shape_of({{0, 0, 0}, {0, 1, 1}, {1, 2, 2}, {1, 3, 3}});
  std::vector<std::string> notes;
  const auto gpus = find_gpus(places(), cpus, notes);
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[0].bus, "0000:1b:00.0");
  EXPECT_EQ(gpus[0].type, "a100");
  EXPECT_EQ(gpus[0].sockets.ranges(), "0");
  EXPECT_EQ(gpus[1].sockets.ranges(), "1");
  EXPECT_EQ(gpus[2].minor, 10u);
  EXPECT_EQ(gpus[2].sockets.ranges(), "0-1");
  EXPECT_THAT(notes, ElementsAre("/dev/nvidia10 is GPU number 2 for jobs"));
}

TEST_F(FakeDriver, WithoutDriverFilesNoTypes) {
  write("dev/nvidia0", "");
  std::vector<std::string> notes;
  const auto gpus = find_gpus(places(), shape_of({{0, 0, 0}}), notes);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].type, "");
  EXPECT_EQ(notes.size(), 1u);
}

}  // namespace
}  // namespace berth::device
