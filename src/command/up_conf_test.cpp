// What `berth up` writes must be read back as the cluster it was written from.
#include "command/up_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "site/site.h"

namespace berth::command {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

cluster::Cluster read_back(const ConfTexts& texts) {
  conf::MemorySource::Files files{{"slurm.conf", texts.slurm}};
  if (!texts.gres.empty()) files["gres.conf"] = texts.gres;
  auto site = site::read_site(conf::MemorySource(files));
  EXPECT_TRUE(site) << site.error().what();
  if (!site) return {};
  EXPECT_THAT(site->warnings, ElementsAre());
  EXPECT_THAT(site->notes, ElementsAre());
  EXPECT_THAT(site->unused, testing::IsEmpty());
  return site->cluster;
}

TEST(UpConf, EmulatedClusterIsTheOneOfExplain) {
  for (const char* spec :
       {"4x4:a100", "2x0", "gpu[1-4]:cpus=16:mem=64G:gpus=a100x2+v100x2,cpu1:cpus=8:threads=2",
        "n[01-20]:cpus=7:gpus=3:shards=30:features=a+b"}) {
    const auto site = site::from_emulate_spec(spec);
    ASSERT_TRUE(site);
    const cluster::Cluster got =
        read_back(write_conf(site->cluster, "--emulate x", "alice", "here", true));
    ASSERT_EQ(got.nodes.size(), site->cluster.nodes.size()) << spec;
    for (std::size_t i = 0; i < got.nodes.size(); ++i) {
      const cluster::Node& a = site->cluster.nodes[i];
      const cluster::Node& b = got.nodes[i];
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.sockets, b.sockets);
      EXPECT_EQ(a.cores_per_socket, b.cores_per_socket);
      EXPECT_EQ(a.threads_per_core, b.threads_per_core);
      EXPECT_EQ(a.memory_mb, b.memory_mb);
      EXPECT_EQ(a.features, b.features);
      ASSERT_EQ(a.gres.size(), b.gres.size()) << spec;
      for (std::size_t g = 0; g < a.gres.size(); ++g) {
        ASSERT_EQ(a.gres[g].devices.size(), b.gres[g].devices.size());
        EXPECT_EQ(a.gres[g].name, b.gres[g].name);
        for (std::size_t d = 0; d < a.gres[g].devices.size(); ++d) {
          EXPECT_EQ(a.gres[g].devices[d].type, b.gres[g].devices[d].type);
          EXPECT_EQ(a.gres[g].devices[d].units, b.gres[g].devices[d].units);
          EXPECT_EQ(a.gres[g].devices[d].sockets, b.gres[g].devices[d].sockets);
        }
      }
    }
    EXPECT_EQ(got.settings.def_mem_per_cpu_mb, site->cluster.settings.def_mem_per_cpu_mb);
    EXPECT_EQ(got.default_partition()->name, "main");
  }
}

TEST(UpConf, MachineWithGpus) {
  device::Machine machine;
  machine.host = "box";
  machine.sockets = 2;
  machine.cores_per_socket = 4;
  machine.threads_per_core = 2;
  machine.memory_mb = 64000;
  for (std::uint32_t i = 0; i < 2; ++i) {
    device::Gpu gpu;
    gpu.minor = i;
    gpu.type = "a100";
    gpu.file = "/dev/nvidia" + std::to_string(i);
    gpu.sockets.set(i);
    machine.gpus.push_back(gpu);
  }
  const cluster::Cluster made = cluster_of(machine);
  const cluster::Cluster got = read_back(write_conf(made, "", "alice", "box", false));
  EXPECT_EQ(got.nodes.at(0).cpus(), 16u);
  EXPECT_EQ(got.settings.def_mem_per_cpu_mb, 4000u);
  EXPECT_EQ(got.nodes.at(0).find_gres("gpu")->devices.at(1).sockets.ranges(), "1");
  EXPECT_THAT(describe_nodes(got), ElementsAre("1 node box: 16 CPUs, 62.5G, 2 a100"));
}

TEST(UpConf, PartsAndLinksOfGpus) {
  device::Machine machine;
  machine.host = "box";
  machine.cores_per_socket = 4;
  machine.memory_mb = 1000;
  machine.gpus.resize(2);
  for (int i = 0; i < 2; ++i) {
    device::Gpu& gpu = machine.gpus[static_cast<std::size_t>(i)];
    gpu.type = i == 0 ? "a100_3g.20gb" : "a100";
    gpu.file = "/dev/nvidia" + std::to_string(i);
    gpu.links = i == 0 ? std::vector{-1, 0} : std::vector{0, -1};
  }
  machine.gpus[0].more_files = {"/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"};
  const ConfTexts texts = write_conf(cluster_of(machine), "", "alice", "box", false);
  EXPECT_THAT(texts.gres, HasSubstr("Type=a100_3g.20gb MultipleFiles=/dev/nvidia0,"
                                    "/dev/nvidia-caps/nvidia-cap12,/dev/nvidia-caps/nvidia-cap13 "
                                    "Links=-1,0\n"));
  const cluster::Cluster got = read_back(texts);
  ASSERT_EQ(got.nodes[0].gres[0].devices.size(), 2u);
  EXPECT_THAT(got.nodes[0].gres[0].devices[1].links, ElementsAre(0, -1));
  EXPECT_EQ(got.nodes[0].gres[0].devices[0].type, "a100_3g.20gb");
}

TEST(UpConf, DescribesEachKindOnce) {
  const auto site = site::from_emulate_spec("gpu[1-4]:gpus=a100x4,cpu1:cpus=1:mem=1G");
  ASSERT_TRUE(site);
  EXPECT_THAT(describe_nodes(site->cluster),
              ElementsAre("1 node cpu1: 1 CPU, 1G", "4 nodes gpu[1-4]: 16 CPUs, 64G, 4 a100 each"));
}

}  // namespace
}  // namespace berth::command
