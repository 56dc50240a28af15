// GPUs of the topologies in tests/hardware, of every maker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "device/gpus.h"
#include "device/helper.h"
#include "device/machine.h"
#include "text/words.h"

namespace berth::device {
namespace {

namespace fs = std::filesystem;
using survey::Way;
using testing::ElementsAre;
using testing::HasSubstr;

std::string topology(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(std::string(BERTH_SOURCE_DIR "/tests/hardware/topologies/") + name).rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

Machine machine(const std::string& name) {
  const auto survey = survey::read_survey(topology(name + ".topology"));
  EXPECT_TRUE(survey) << survey.error().what();
  return survey ? described(*survey) : Machine{};
}

TEST(Topology, NvswitchLinksAllWithAll) {
  const Machine h100 = machine("h100-nvswitch-8");
  ASSERT_EQ(h100.gpus.size(), 8u);
  EXPECT_EQ(h100.cpus(), 224u);
  EXPECT_EQ(h100.gpus[0].type, "h100");
  EXPECT_EQ(h100.gpus[0].memory_mb, 81559u);
  EXPECT_EQ(h100.gpus[0].long_type(), "nvidia_h100_80gb_hbm3");
  EXPECT_THAT(h100.gpus[3].links, ElementsAre(18, 18, 18, -1, 18, 18, 18, 18));
  EXPECT_EQ(h100.gpus[3].sockets.ranges(), "0");
  EXPECT_EQ(h100.gpus[4].sockets.ranges(), "1");
  EXPECT_EQ(h100.gpus[3].ways[4], Way::system);
  EXPECT_THAT(h100.notes, ElementsAre());
}

TEST(Topology, PcieOnlyHasNoLinks) {
  const Machine l40s = machine("l40s-pcie-4");
  ASSERT_EQ(l40s.gpus.size(), 4u);
  EXPECT_THAT(l40s.gpus[0].links, ElementsAre());
  EXPECT_EQ(l40s.gpus[0].file, "/dev/nvidia2");  // in the order of buses
  EXPECT_EQ(l40s.gpus[0].ways[1], Way::pcie_switch);
  EXPECT_EQ(l40s.gpus[0].ways[2], Way::host_bridge);
}

TEST(Topology, BridgedPairs) {
  const Machine a6000 = machine("a6000-4-4-two-sockets");
  ASSERT_EQ(a6000.gpus.size(), 8u);
  EXPECT_EQ(a6000.gpus[0].type, "rtx_a6000");
  EXPECT_THAT(a6000.gpus[5].links, ElementsAre(0, 0, 0, 0, 4, -1, 0, 0));
  EXPECT_EQ(a6000.gpus[5].sockets.ranges(), "1");
}

TEST(Topology, PartsAreGpusOfTheirOwn) {
  const Machine mig = machine("a100-mig-2");
  ASSERT_EQ(mig.gpus.size(), 4u);
  std::vector<std::string> types;
  for (const Gpu& gpu : mig.gpus) types.push_back(gpu.type);
  EXPECT_THAT(types, ElementsAre("a100_3g.20gb", "a100_2g.10gb", "a100_1g.5gb", "a100"));
  EXPECT_THAT(mig.gpus[0].uuid, HasSubstr("MIG-"));
  EXPECT_EQ(mig.gpus[0].memory_mb, 19968u);
  EXPECT_THAT(mig.gpus[0].links, ElementsAre(-1, 0, 0, 0));
  EXPECT_EQ(mig.gpus[0].ways[1], Way::board);
  EXPECT_TRUE(mig.gpus[0].is_called("a100-sxm4-40gb_3g.20gb"));
  EXPECT_TRUE(mig.gpus[0].is_called("3g.20gb"));
  EXPECT_FALSE(mig.gpus[0].is_called("a100"));
  EXPECT_FALSE(mig.gpus[0].is_called(""));
  EXPECT_FALSE(mig.gpus[3].is_called("3g.20gb"));
  EXPECT_TRUE(mig.gpus[3].is_called("A100-SXM4"));
}

TEST(Topology, RecordedIsWhatWasRead) {
  for (const char* name : {"h100-nvswitch-8", "a100-mig-2"}) {
    const auto survey = survey::read_survey(topology(std::string(name) + ".topology"));
    ASSERT_TRUE(survey);
    EXPECT_EQ(survey::write_survey(recorded(described(*survey))), survey::write_survey(*survey));
  }
}

TEST(Topology, MigModeWithoutPartsAndLostOnes) {
  const auto survey = survey::read_survey(
      "berth-nvml version=1\ngpu index=0 minor=0 memory_mb=1 model=NVIDIA%20A100 mig=1\n"
      "gpu index=2 minor=2 memory_mb=1 model=NVIDIA%20A100\nlost index=1 "
      "why=GPU%20is%20lost\nend\n");
  ASSERT_TRUE(survey);
  const Machine found = described(*survey);
  ASSERT_EQ(found.gpus.size(), 1u);
  EXPECT_EQ(found.gpus[0].file, "/dev/nvidia2");
  EXPECT_THAT(found.notes,
              ElementsAre("/dev/nvidia0 is in MIG mode without parts: jobs do not get it",
                          "GPU 1 does not answer: GPU is lost"));
}

/// A tree of small files from one text: "path line|line".
class Tree : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "berth-hardware-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& path, std::string text) {
    fs::create_directories((root_ / path).parent_path());
    std::ranges::replace(text, '|', '\n');
    std::ofstream(root_ / path) << text << '\n';
  }
  void unpack(const std::string& name) {
    const std::string text = topology(name);
    for (const std::string_view line : text::split(text, '\n')) {
      const std::size_t blank = line.find(' ');
      if (line.starts_with('#') || blank == std::string_view::npos) continue;
      put(std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)));
    }
  }
  Places places() {
    const std::string root = root_.string();
    return {root + "/proc", root + "/dev", root + "/sys", "/tmp"};
  }
  /// Two sockets, as Linux counts their CPUs.
  static CpuMap two_sockets(std::uint32_t cores, std::uint32_t threads) {
    std::vector<Thread> out;
    for (std::uint32_t t = 0; t < threads; ++t) {
      for (std::uint32_t c = 0; c < 2 * cores; ++c)
        out.push_back({c / cores, c, t * 2 * cores + c});
    }
    return shape_of(out);
  }

  fs::path root_;
  std::vector<std::string> notes_;
};

TEST_F(Tree, Mi300x) {
  unpack("mi300x-8.tree");
  const auto gpus = find_amd_gpus(places(), two_sockets(96, 2), notes_);
  ASSERT_EQ(gpus.size(), 8u);
  EXPECT_EQ(gpus[0].type, "mi300x");
  EXPECT_EQ(gpus[0].vendor, Vendor::amd);
  EXPECT_EQ(gpus[0].file, "/dev/dri/renderD128");
  EXPECT_EQ(gpus[0].bus, "0000:0c:00.0");
  EXPECT_EQ(gpus[0].memory_mb, 196592u);
  EXPECT_EQ(gpus[0].uuid, "GPU-5a6b7c8d00000000");
  EXPECT_EQ(gpus[7].file, "/dev/dri/renderD184");
  EXPECT_EQ(gpus[7].sockets.ranges(), "1");
  EXPECT_THAT(gpus[1].links, ElementsAre(1, -1, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(gpus[0].ways[1], Way::numa_node);
  EXPECT_EQ(gpus[0].ways[7], Way::system);
  EXPECT_THAT(notes_, ElementsAre());
}

TEST_F(Tree, IntelMaxBesideABuiltInGpu) {
  unpack("intel-max-1550.tree");
  const auto gpus = find_intel_gpus(places(), two_sockets(56, 2), notes_);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].type, "max_1550");
  EXPECT_EQ(gpus[0].file, "/dev/dri/renderD129");
  EXPECT_EQ(gpus[0].bus, "0000:8c:00.0");
  EXPECT_EQ(gpus[0].memory_mb, 131072u);
  EXPECT_EQ(gpus[0].sockets.ranges(), "1");
}

TEST_F(Tree, SearchTakesTheFirstKindThatIsThere) {
  Search search;
  search.places = places();
  search.nvml_helper.clear();
  EXPECT_THAT(this_machine(search).gpus, ElementsAre());
  unpack("mi300x-8.tree");
  EXPECT_EQ(this_machine(search).gpus.size(), 8u);
  search.detect = Detect::oneapi;
  EXPECT_EQ(this_machine(search).gpus.size(), 0u);
  search.detect = Detect::off;
  EXPECT_EQ(this_machine(search).gpus.size(), 0u);
  search.detect = Detect::full;
  put("dev/nvidia0", "");
  EXPECT_EQ(this_machine(search).gpus.size(), 1u);
}

TEST_F(Tree, FilesOfPartsComeFromTheDriver) {
  put("proc/driver/nvidia-caps/mig-minors", "config 1|gpu0/gi1/access 12|gpu0/gi1/ci0/access 13");
  const auto survey = survey::read_survey(topology("a100-mig-2.topology"));
  ASSERT_TRUE(survey);
  const auto gpus = gpus_of_survey(*survey, places(), two_sockets(64, 2), notes_);
  ASSERT_EQ(gpus.size(), 4u);
  EXPECT_EQ(gpus[0].file, "/dev/nvidia0");
  EXPECT_THAT(gpus[0].more_files,
              ElementsAre("/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"));
  EXPECT_THAT(gpus[1].more_files, ElementsAre());
}

TEST_F(Tree, HelperThatFailsIsToldAndDoneWithout) {
  put("dev/nvidiactl", "");
  put("dev/nvidia0", "");
  Search search;
  search.places = places();
  search.nvml_helper = "/bin/false";
  Machine found = this_machine(search);
  EXPECT_EQ(found.gpus.size(), 1u);
  EXPECT_THAT(found.notes, testing::Contains(HasSubstr("NVIDIA's library told nothing")));
  search.nvml_helper = "/bin/echo";  // tells something, but no survey
  found = this_machine(search);
  EXPECT_EQ(found.gpus.size(), 1u);
  EXPECT_THAT(found.notes, testing::Contains(HasSubstr("/bin/echo: line 1: \"list\"")));
}

TEST(Helper, IsBounded) {
  const auto soon = std::chrono::milliseconds(200);
  EXPECT_EQ(output_of({"/bin/echo", "a", "b"}, 100, std::chrono::seconds(20)).value(), "a b\n");
  EXPECT_FALSE(output_of({"/bin/sleep", "60"}, 100, soon));
  EXPECT_FALSE(output_of({"/bin/cat", "/dev/zero"}, 1000, std::chrono::seconds(20)));
  EXPECT_FALSE(output_of({"/nonexistent/program"}, 100, soon));
  const auto failed = output_of({"/bin/ls", "/nonexistent"}, 100, std::chrono::seconds(20));
  ASSERT_FALSE(failed);
  EXPECT_THAT(std::string(failed.error().what()), HasSubstr("/nonexistent"));
}

}  // namespace
}  // namespace berth::device
