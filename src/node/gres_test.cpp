// gres.conf and slurm.conf against machines of tests/hardware.
#include "node/gres.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "node/options.h"

namespace berth::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

device::Machine machine(const std::string& name) {
  std::ostringstream text;
  text
      << std::ifstream(BERTH_SOURCE_DIR "/tests/hardware/topologies/" + name + ".topology").rdbuf();
  const auto survey = survey::read_survey(text.str());
  EXPECT_TRUE(survey) << name;
  return survey ? device::described(*survey) : device::Machine{};
}

conf::Config config(const std::string& gres, const std::string& slurm_conf) {
  const conf::MemorySource source(
      {{"slurm.conf", "ClusterName=c\nSlurmctldHost=h\nGresTypes=gpu,shard,nic\n" + slurm_conf +
                          "\nPartitionName=p Nodes=ALL\n"},
       {"gres.conf", gres}});
  auto read = conf::read_config(source);
  EXPECT_TRUE(read) << read.error().what();
  return read ? std::move(*read) : conf::Config{};
}

Gres resolved(const std::string& topology, const std::string& gres, const std::string& counted) {
  static std::vector<std::unique_ptr<device::Machine>> machines;  // items point into them
  machines.push_back(std::make_unique<device::Machine>(machine(topology)));
  return resolve_gres(*machines.back(), config(gres, "NodeName=n1 CPUs=4 Gres=" + counted), "n1");
}

std::vector<std::string> types(const Gres& gres) {
  std::vector<std::string> out;
  for (const GresItem& item : gres.items) out.push_back(item.type);
  return out;
}

TEST(Gres, FoundWithoutAnyLine) {
  const Gres gres = resolved("h100-nvswitch-8", "", "gpu:h100:8");
  ASSERT_EQ(gres.items.size(), 8u);
  EXPECT_EQ(gres.items[5].type, "h100");
  EXPECT_THAT(gres.items[5].files, ElementsAre("/dev/nvidia5"));
  EXPECT_EQ(gres.items[5].cores.ranges(), "56-111");
  EXPECT_EQ(gres.items[5].links[5], -1);
  EXPECT_THAT(gres.differences, ElementsAre());
  wire::NodeReport report;
  gres.tell(report);
  ASSERT_EQ(report.gres_size(), 1);
  EXPECT_EQ(report.gres(0).count(), 8u);
  EXPECT_EQ(report.gpus(5).sockets(0), 1u);
  EXPECT_EQ(report.gres_fault(), "");
}

TEST(Gres, TypesAreCalledAsTheConfigurationCallsThem) {
  const Gres gres = resolved("h100-nvswitch-8", "AutoDetect=nvml\n", "gpu:nvidia_h100_80gb_hbm3:8");
  EXPECT_EQ(gres.items[0].type, "nvidia_h100_80gb_hbm3");
  EXPECT_THAT(gres.differences, ElementsAre());
  const Gres part = resolved("a100-mig-2", "AutoDetect=nvml\n",
                             "gpu:3g.20gb:1,gpu:2g.10gb:1,gpu:a100_1g.5gb:1,gpu:a100:1");
  EXPECT_THAT(types(part), ElementsAre("3g.20gb", "2g.10gb", "a100_1g.5gb", "a100"));
  EXPECT_THAT(part.differences, ElementsAre());
}

TEST(Gres, DifferencesNameTheirLine) {
  const Gres gres = resolved("a6000-4-4-two-sockets",
                             "AutoDetect=nvml\n"
                             "Name=gpu Type=a100 File=/dev/nvidia0\n"
                             "Name=gpu File=/dev/nvidia1 Cores=24-47\n"
                             "Name=gpu File=/dev/nvidia2 Links=0,0,-1,2,0,0,0,0\n"
                             "Name=gpu File=/dev/nvidia9\n",
                             "gpu:8");
  EXPECT_TRUE(gres.strict);
  EXPECT_EQ(gres.items.size(), 8u);
  EXPECT_THAT(
      gres.differences,
      ElementsAre("gres.conf:2: Type=a100, but /dev/nvidia0 is an NVIDIA RTX A6000 (rtx_a6000)",
                  "gres.conf:3: Cores=24-47, but /dev/nvidia1 is near cores 0-23",
                  "gres.conf:4: Links=0,0,-1,2,0,0,0,0, but /dev/nvidia2 has "
                  "0,0,-1,4,0,0,0,0",
                  "gres.conf:5: File=/dev/nvidia9 is not a GPU of this machine, which has "
                  "/dev/nvidia[0-7]"));
  wire::NodeReport report;
  gres.tell(report);
  EXPECT_EQ(report.gres_fault(), gres.differences.front());
}

TEST(Gres, CountsOfSlurmConf) {
  EXPECT_THAT(resolved("l40s-pcie-4", "AutoDetect=nvml\n", "gpu:l40s:2").differences,
              ElementsAre(HasSubstr("slurm.conf:4: Gres= has 2 GPUs, but the machine has "
                                    "gpu:l40s:4; to keep some from jobs")));
  EXPECT_THAT(resolved("l40s-pcie-4", "", "gpu:a100:4").differences,
              ElementsAre("slurm.conf:4: Gres=gpu:a100:4, but the machine has gpu:l40s:4"));
  EXPECT_THAT(resolved("l40s-pcie-4", "", "gpu:8").differences,
              ElementsAre("slurm.conf:4: Gres=gpu:8, but the machine has gpu:l40s:4"));
}

TEST(Gres, WithoutAutoDetectLinesDecide) {
  const Gres some = resolved("a6000-4-4-two-sockets",
                             "Name=gpu File=/dev/nvidia1\nName=gpu File=/dev/nvidia0\n", "gpu:2");
  ASSERT_EQ(some.items.size(), 2u);
  EXPECT_THAT(some.items[0].files, ElementsAre("/dev/nvidia1"));
  EXPECT_THAT(some.items[0].links, ElementsAre(-1, 4));  // to those that jobs get, in their order
  EXPECT_FALSE(some.strict);
  EXPECT_THAT(some.differences, ElementsAre());
  // A device that is there and that nobody knows is believed; one that is not there is not.
  const Gres odd =
      resolved("l40s-pcie-4", "Name=gpu File=/dev/null\nName=gpu File=/dev/none\n", "gpu:2");
  ASSERT_EQ(odd.items.size(), 2u);
  EXPECT_EQ(odd.items[0].missing, "");
  EXPECT_EQ(odd.items[1].missing, "File=/dev/none (gres.conf:2) is not there");
  EXPECT_THAT(odd.differences,
              ElementsAre(HasSubstr("gres.conf:2: File=/dev/none is not a GPU of this machine"),
                          HasSubstr("slurm.conf:4: Gres=gpu:2")));
  wire::NodeReport report;
  odd.tell(report);
  EXPECT_EQ(report.gres_fault(), "");
}

TEST(Gres, PartsShareAFile) {
  const Gres gres = resolved("a100-mig-2",
                             "Name=gpu Type=a100_1g.5gb File=/dev/nvidia0\n"
                             "Name=gpu Type=a100_3g.20gb File=/dev/nvidia0\n",
                             "gpu:a100_1g.5gb:1,gpu:a100_3g.20gb:1");
  EXPECT_THAT(types(gres), ElementsAre("a100_1g.5gb", "a100_3g.20gb"));
  EXPECT_EQ(gres.items[1].gpu->memory_mb, 19968u);
  EXPECT_THAT(gres.differences, ElementsAre());
}

TEST(Gres, WhatCannotBeFoundIsAsWritten) {
  const Gres gres = resolved("l40s-pcie-4", "Name=nic File=/dev/null\nName=nic File=/dev/none\n",
                             "gpu:4,shard:32,nic:2");
  wire::NodeReport report;
  gres.tell(report);
  std::map<std::string, std::uint64_t> counts;
  for (const auto& one : report.gres()) counts[one.name()] += one.count();
  EXPECT_EQ(counts["shard"], 32u);
  EXPECT_EQ(counts["nic"], 1u);
  EXPECT_THAT(gres.differences, ElementsAre("gres.conf:2: File=/dev/none is not there"));
}

TEST(Gres, MethodOfANode) {
  const auto method = [](const std::string& gres, const std::string& node) {
    return detect_of(config(gres, "NodeName=n[1-2] CPUs=4").gres, node);
  };
  const std::string gres = "NodeName=n2 AutoDetect=off\nAutoDetect=nvml\n";
  EXPECT_EQ(method(gres, "n1").value(), device::Detect::nvml);
  EXPECT_EQ(method(gres, "n2").value(), device::Detect::off);
  EXPECT_EQ(method("", "n1").value(), device::Detect::full);
  EXPECT_EQ(method("AutoDetect=rsmi\n", "n1").value(), device::Detect::rsmi);
  const auto refused = method("AutoDetect=nrt\n", "n1");
  ASSERT_FALSE(refused);
  EXPECT_THAT(std::string(refused.error().what()), HasSubstr("gres.conf:1: AutoDetect=nrt"));
}

TEST(Options, HardwareIsOfThisMachine) {
  const std::vector<std::string> both = {"-C", "--emulate"};
  EXPECT_FALSE(read_options(both));
  const std::vector<std::string> empty = {""};
  EXPECT_FALSE(read_options(empty));
  const std::vector<std::string> gres = {"-G"};
  EXPECT_TRUE(read_options(gres)->print_gres);
}

}  // namespace
}  // namespace berth::node
