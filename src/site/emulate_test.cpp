// --emulate: both forms, defaults, bounds, and what the errors say.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "site/site.h"

namespace berth::site {
namespace {

/// "node1 2x8x1 65536M a100@0,a100@1 shard…; …"
std::string shown(const Result<Site>& site) {
  if (!site) return std::string(site.error().what());
  std::string out;
  for (const cluster::Node& node : site->cluster.nodes) {
    out += fmt::format("{}{} {}x{}x{} {}", out.empty() ? "" : "; ", node.name, node.sockets,
                       node.cores_per_socket, node.threads_per_core, node.memory_mb);
    for (const cluster::Gres& gres : node.gres) {
      out += " " + gres.name;
      for (const cluster::Device& d : gres.devices) {
        out += fmt::format("|{}@{}{}", d.type, d.sockets.ranges(),
                           d.units == 1 ? "" : fmt::format("x{}", d.units));
      }
    }
    for (const std::string& feature : node.features) out += " +" + feature;
  }
  return out;
}

TEST(Emulate, ReadsBothForms) {
  struct Row {
    const char* spec;
    const char* cluster;
  };
  const Row rows[] = {
      {"1x4:a100", "node1 2x8x1 65536 gpu|a100@0|a100@0|a100@1|a100@1"},
      {"2x1", "node1 2x8x1 65536 gpu|@0; node2 2x8x1 65536 gpu|@0"},
      {"2x0", "node1 2x8x1 65536; node2 2x8x1 65536"},
      {"1x3:h100:cpus=8:mem=1G", "node1 2x4x1 1024 gpu|h100@0|h100@0|h100@1"},
      {"1x1:a,1x0", "node1 2x8x1 65536 gpu|a@0; node2 2x8x1 65536"},
      {"gpu[1-2]:cpus=32:threads=2:mem=128G:gpus=a100x2",
       "gpu1 2x8x2 131072 gpu|a100@0|a100@1; gpu2 2x8x2 131072 gpu|a100@0|a100@1"},
      {"cpu1", "cpu1 2x8x1 65536"},
      {"n10:cpus=1,n9:cpus=3", "n9 1x3x1 65536; n10 1x1x1 65536"},
      {"n:gpus=rtx3090x1+v100x1", "n 2x8x1 65536 gpu|rtx3090@0|v100@1"},
      {"n:gpus=2:shards=5", "n 2x8x1 65536 gpu|@0|@1 shard|@0x3|@1x2"},
      {"n:sockets=4:features=a+b", "n 4x4x1 65536 +a +b"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(shown(from_emulate_spec(row.spec)), row.cluster) << row.spec;
}

TEST(Emulate, HasOneDefaultPartitionAndAShareOfMemory) {
  const auto site = from_emulate_spec("2x4:a100,big:cpus=32:mem=64G");
  ASSERT_TRUE(site);
  const cluster::Cluster& c = site->cluster;
  ASSERT_NE(c.default_partition(), nullptr);
  EXPECT_EQ(c.default_partition()->name, "main");
  EXPECT_EQ(c.default_partition()->nodes.size(), 3u);
  EXPECT_EQ(c.settings.def_mem_per_cpu_mb, 2048u);
  EXPECT_THAT(c.settings.gres_types, testing::ElementsAre("gpu"));
  EXPECT_TRUE(c.settings.task_affinity);
  EXPECT_EQ(c.nodes[1].gres[0].devices[2].record, 1);
  EXPECT_TRUE(c.find_node("node2"));
}

TEST(Emulate, RefusesAndShowsAnExample) {
  struct Row {
    const char* spec;
    const char* error;
  };
  const Row rows[] = {
      {"", "--emulate: \"\": a group of nodes has no name"},
      {"0x4", "--emulate: \"0x4\": allowed are 1 to 65536 nodes"},
      {"65537x1", "--emulate: \"65537x1\": allowed are 1 to 65536 nodes"},
      {"99999999999999999999x1",
       "--emulate: \"99999999999999999999x1\": allowed are 1 to 65536 nodes"},
      {"40000x1,40000x1", "--emulate: \"40000x1\": allowed are 1 to 65536 nodes"},
      {"1x1025", "--emulate: \"1x1025\": allowed are 0 to 1024 GPUs a node"},
      {"60000x1000", "--emulate: \"60000x1000\": more than 1048576 GPUs in all"},
      {"1x4:", "--emulate: \"1x4:\": the GPU type after ':' is empty"},
      {"3x0:a100", "--emulate: \"3x0:a100\": a GPU type, but no GPUs"},
      {"n:cpus=0", "--emulate: \"cpus=0\": allowed is a number from 1 to 4096"},
      {"n:cpus=4097", "--emulate: \"cpus=4097\": allowed is a number from 1 to 4096"},
      {"n:mem=lots", "--emulate: \"mem=lots\": allowed is a size like 64G"},
      {"n:cpu=4", "--emulate: \"cpu=4\": did you mean cpus=?"},
      {"n:colour=4",
       "--emulate: \"colour=4\": keys are cpus, sockets, threads, mem, gpus, features, shards"},
      {"n:a100x4", "--emulate: \"a100x4\": expected key=value"},
      {"n:gpus=a100",
       "--emulate: \"a100\": GPUs are given as a number or TYPExNUMBER (a100x4), at most 1024 a "
       "node"},
      {"n:gpus=1+a100x1", "--emulate: \"1+a100x1\": give a type to all GPUs of a node, or to none"},
      {"n:cpus=3:threads=2",
       "--emulate: \"n:cpus=3:threads=2\": 3 CPUs cannot be cores of 2 threads"},
      {"n:cpus=16:sockets=3",
       "--emulate: \"n:cpus=16:sockets=3\": 16 cores cannot be shared evenly by 3 sockets"},
      {"n:shards=4",
       "--emulate: \"n:shards=4\": shards are parts of GPUs, and there are none: add gpus=1"},
      {"n,n", "--emulate: \"n\": node n is named twice"},
      {"n[1-2", "--emulate: \"n[1-2\": Invalid host list \"n[1-2\": '[' without ']'"},
      {"n:features=a++b", "--emulate: \"features=a++b\": a feature has no name"},
  };
  for (const Row& row : rows) {
    const auto site = from_emulate_spec(row.spec);
    EXPECT_EQ(shown(site), row.error) << row.spec;
    ASSERT_FALSE(site);
    EXPECT_THAT(site.error().hint, testing::HasSubstr("--emulate 4x4:a100"));
  }
}

}  // namespace
}  // namespace berth::site
