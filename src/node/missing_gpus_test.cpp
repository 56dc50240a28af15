// A node on which GPUs are missing that its configuration counts.
#include "node/missing_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "node/gpu_health.h"

namespace berth::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

survey::Survey topology(const std::string& name) {
  std::ostringstream text;
  text
      << std::ifstream(BERTH_SOURCE_DIR "/tests/hardware/topologies/" + name + ".topology").rdbuf();
  auto survey = survey::read_survey(text.str());
  EXPECT_TRUE(survey) << name;
  return survey ? *survey : survey::Survey();
}

/// The library does not count it (any more): those after it have other numbers, and files.
survey::Survey without(survey::Survey survey, std::uint32_t gpu) {
  std::erase_if(survey.gpus, [&](const survey::FoundGpu& one) { return one.index == gpu; });
  survey.links.clear();
  survey.ways.clear();
  for (std::uint32_t i = 0; i < survey.gpus.size(); ++i) {
    survey.gpus[i].index = i;
    survey.gpus[i].minor = i;
  }
  return survey;
}

/// It counts it, and the GPU does not answer.
survey::Survey losing(survey::Survey survey, std::uint32_t gpu) {
  std::erase_if(survey.gpus, [&](const survey::FoundGpu& one) { return one.index == gpu; });
  survey.links.clear();
  survey.ways.clear();
  survey.lost.push_back({gpu, "it is lost"});
  return survey;
}

Gres resolved_again(const survey::Survey& survey, const std::string& gres,
                    const std::string& counted, const std::vector<KnownGpu>& known = {}) {
  static std::vector<std::unique_ptr<device::Machine>> machines;  // items point into them
  machines.push_back(std::make_unique<device::Machine>(device::described(survey)));
  machines.back()->told = survey;
  const conf::MemorySource source({{"slurm.conf",
                                    "ClusterName=c\nSlurmctldHost=h\nGresTypes=gpu,shard\n"
                                    "NodeName=n1 CPUs=4 Gres=" +
                                        counted + "\nPartitionName=p Nodes=ALL\n"},
                                   {"gres.conf", gres}});
  const auto config = conf::read_config(source);
  EXPECT_TRUE(config) << config.error().what();
  return resolve_gres(*machines.back(), *config, "n1", known);
}

std::vector<std::string> missing(const Gres& gres) {
  std::vector<std::string> out;
  for (const GresItem& item : gres.items) out.push_back(item.missing);
  return out;
}

std::vector<KnownGpu> known_of(const survey::Survey& survey, const std::string& counted) {
  return read_known_gpus(write_known_gpus(resolved_again(survey, "AutoDetect=nvml\n", counted)));
}

/// The node is of use, with all its GPUs counted.
void in_service(const Gres& gres, std::uint64_t count) {
  wire::NodeReport report;
  gres.tell(report);
  EXPECT_EQ(report.gres_fault(), "");
  EXPECT_EQ(static_cast<std::uint64_t>(report.gpus_size()), count);
  std::uint64_t counted = 0;
  for (const auto& one : report.gres()) counted += one.name() == "gpu" ? one.count() : 0;
  EXPECT_EQ(counted, count);
}

TEST(MissingGpus, OneThatDoesNotAnswerKeepsItsPlace) {
  const Gres gres =
      resolved_again(losing(topology("l40s-pcie-4"), 2), "AutoDetect=nvml\n", "gpu:l40s:4");
  EXPECT_THAT(missing(gres), ElementsAre("", "", "it does not answer: it is lost", ""));
  EXPECT_EQ(gres.items[2].number, 2U);
  EXPECT_EQ(gres.items[2].type, "l40s");
  EXPECT_THAT(gres.items[3].files, ElementsAre("/dev/nvidia1"));  // minors are not in order here
  EXPECT_THAT(gres.differences,
              ElementsAre("slurm.conf:4: Gres=gpu:l40s:4, but the machine has gpu:l40s:3"));
  in_service(gres, 4);
}

TEST(MissingGpus, OneThatTheNodeHadIsNamed) {
  const survey::Survey whole = topology("l40s-pcie-4");
  const std::vector<KnownGpu> known = known_of(whole, "gpu:l40s:4");
  ASSERT_EQ(known.size(), 4U);
  const Gres gres = resolved_again(without(whole, 1), "AutoDetect=nvml\n", "gpu:l40s:4", known);
  EXPECT_THAT(missing(gres),
              ElementsAre("", known[1].uuid + " (/dev/nvidia3) is not there", "", ""));
  EXPECT_EQ(gres.items[3].gpu->uuid, known[3].uuid);
  EXPECT_FALSE(gres.items[1].guessed);
  in_service(gres, 4);
  // What is kept of the whole is not overwritten by less.
  EXPECT_EQ(write_known_gpus(gres), "");
  // Both tell of the same one.
  const Gres both = resolved_again(losing(whole, 1), "AutoDetect=nvml\n", "gpu:l40s:4", known);
  EXPECT_EQ(both.items[1].number, 1U);
  EXPECT_THAT(missing(both)[1], HasSubstr("is not there: it does not answer: it is lost"));
}

TEST(MissingGpus, OneThatALineNames) {
  const std::string lines = "AutoDetect=nvml\nName=gpu File=/dev/nvidia[0-3]\n";
  const Gres gres = resolved_again(losing(topology("l40s-pcie-4"), 2), lines, "gpu:4");
  EXPECT_THAT(missing(gres), ElementsAre("", "",
                                         "File=/dev/nvidia0 (gres.conf:2) is not there: it does "
                                         "not answer: it is lost",
                                         ""));
  EXPECT_EQ(gres.items[2].number, 2U);
  in_service(gres, 4);
  // The library does not count it, and the node had it in the second place.
  survey::Survey three = losing(topology("l40s-pcie-4"), 1);
  three.lost.clear();
  const Gres placed =
      resolved_again(three, lines, "gpu:4", known_of(topology("l40s-pcie-4"), "gpu:4"));
  EXPECT_THAT(missing(placed),
              ElementsAre("", "File=/dev/nvidia3 (gres.conf:2) is not there", "", ""));
  // Believed lines, in their order.
  const Gres off = resolved_again(
      {}, "AutoDetect=off\nName=gpu File=/dev/none\nName=gpu File=/dev/null\n", "gpu:2");
  EXPECT_THAT(missing(off), ElementsAre("File=/dev/none (gres.conf:2) is not there", ""));
  in_service(off, 2);
}

TEST(MissingGpus, TheLastWhereNothingTellsWhich) {
  const Gres gres =
      resolved_again(without(topology("l40s-pcie-4"), 1), "AutoDetect=nvml\n", "gpu:l40s:4");
  EXPECT_THAT(missing(gres),
              ElementsAre("", "", "",
                          "1 of the 4 GPUs of slurm.conf:4 is missing, and nothing tells which: "
                          "the last is taken for it"));
  EXPECT_TRUE(gres.items[3].guessed);
  in_service(gres, 4);
  // Others were there before: what is kept does not fit.
  const std::vector<KnownGpu> others(4, {"GPU-other", "/dev/nvidia0", "l40s"});
  const Gres replaced = resolved_again(without(topology("l40s-pcie-4"), 1), "AutoDetect=nvml\n",
                                       "gpu:l40s:4", others);
  EXPECT_TRUE(replaced.items[3].guessed);
  // All of them.
  const Gres none = resolved_again({}, "AutoDetect=nvml\n", "gpu:l40s:2,shard:8");
  ASSERT_EQ(none.items.size(), 3U);
  EXPECT_THAT(none.items[1].missing, HasSubstr("2 of the 2 GPUs of slurm.conf:4 are missing"));
  EXPECT_EQ(none.items[2].name, "shard");
  in_service(none, 2);
}

TEST(MissingGpus, AnotherTypeIsNoMissingOne) {
  const Gres gres = resolved_again(topology("l40s-pcie-4"), "AutoDetect=nvml\n", "gpu:a100:8");
  EXPECT_THAT(missing(gres), ElementsAre("", "", "", ""));
  wire::NodeReport report;
  gres.tell(report);
  EXPECT_THAT(report.gres_fault(), HasSubstr("Gres=gpu:a100:8, but the machine has gpu:l40s:4"));
}

TEST(MissingGpus, TypesAreTakenWhereTheyAreShort) {
  const survey::Survey whole = topology("a100-mig-2");
  const std::string counted = "gpu:a100_3g.20gb:1,gpu:a100_2g.10gb:1,gpu:a100_1g.5gb:1,gpu:a100:1";
  const std::vector<KnownGpu> known = known_of(whole, counted);
  ASSERT_EQ(known.size(), 4U);
  survey::Survey cut = whole;  // a part that was not made again after a reboot
  std::erase_if(cut.instances, [&](const auto& one) { return one.uuid == known[1].uuid; });
  const Gres gres = resolved_again(cut, "AutoDetect=nvml\n", counted, known);
  ASSERT_EQ(gres.items.size(), 4U);
  EXPECT_EQ(gres.items[1].type, "a100_2g.10gb");
  EXPECT_THAT(gres.items[1].missing, HasSubstr(known[1].uuid));
  in_service(gres, 4);
}

TEST(MissingGpus, WhenToLookAgain) {
  const Gres gres =
      resolved_again(losing(topology("l40s-pcie-4"), 2), "AutoDetect=nvml\n", "gpu:l40s:4");
  survey::Survey told = losing(topology("l40s-pcie-4"), 2);
  std::map<std::uint32_t, survey::Sample> samples = {{0, {}}, {1, {}}, {3, {}}};
  EXPECT_FALSE(may_be_back(gres, told, samples));
  samples[2] = {};
  EXPECT_TRUE(may_be_back(gres, told, samples));
  const Gres whole = resolved_again(topology("l40s-pcie-4"), "AutoDetect=nvml\n", "gpu:l40s:4");
  EXPECT_TRUE(same_places(gres, whole));
  EXPECT_TRUE(misses_gpus(gres) && !misses_gpus(whole));
  const Gres guessed =
      resolved_again(without(topology("l40s-pcie-4"), 1), "AutoDetect=nvml\n", "gpu:l40s:4");
  EXPECT_FALSE(same_places(guessed, whole));
  const Gres file = resolved_again({}, "AutoDetect=off\nName=gpu File=/dev/none\n", "gpu:1");
  EXPECT_FALSE(may_be_back(file, std::nullopt, {}));
}

TEST(MissingGpus, WhatWasKeptMayBeBroken) {
  EXPECT_THAT(read_known_gpus(""), IsEmpty());
  EXPECT_THAT(read_known_gpus("GPU-1\n  \nGPU-1 /dev/nvidia0 a b\n"), IsEmpty());
  EXPECT_EQ(read_known_gpus("GPU-1 /dev/nvidia0 \n").size(), 1U);
}

TEST(MissingGpus, TheyAreOutUntilTheyAreFound) {
  MeteredGpu gone{1U, {}, "h100", 0, "it does not answer: it is lost"};
  GpuHealth health({{0U, {}, "h100", 80000}, gone}, std::chrono::seconds(1),
                   [](std::uint32_t) { return GpuHealth::Holder{}; });
  EXPECT_THAT(health.out(), ElementsAre(testing::Pair(1U, gone.missing)));
  GpuRound round;
  round.samples = {{0, {}}, {1, {}}};
  health.round(round, {}, GpuHealth::Moment{});
  EXPECT_EQ(health.out().size(), 1U);  // the rest of it has to be looked at first
  gone.missing.clear();
  health.found({{0U, {}, "h100", 80000}, gone});
  EXPECT_THAT(health.out(), IsEmpty());
}

}  // namespace
}  // namespace berth::node
