// From configuration files to the cluster: hardware, devices, partitions, settings, complaints.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "site/hardware.h"
#include "site/site.h"

namespace berth::site {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Site> read(std::string slurm, std::optional<std::string> gres = std::nullopt,
                  std::string cgroup = "") {
  conf::MemorySource::Files files = {{"slurm.conf", std::move(slurm)}, {"cgroup.conf", cgroup}};
  if (gres) files["gres.conf"] = *gres;
  return read_site(conf::MemorySource(std::move(files)));
}

/// A site of one partition; `lines` are its other lines.
Result<Site> read_nodes(const std::string& lines, std::optional<std::string> gres = std::nullopt) {
  return read("ClusterName=c\nGresTypes=gpu,shard,mps,nic,bw\nPartitionName=p Nodes=ALL\n" + lines,
              std::move(gres));
}

std::string first_error(const Result<Site>& site) {
  return site ? "no error" : std::string(site.error().what());
}

/// "a100@0 ?": type and sockets of each device ("?" when neither is known); units when not 1.
std::string devices(const Site& site, std::string_view node, std::string_view name = "gpu") {
  const cluster::Node& n = site.cluster.nodes[site.cluster.find_node(node).value()];
  const cluster::Gres* gres = n.find_gres(name);
  if (gres == nullptr) return "none";
  std::string out;
  for (const cluster::Device& d : gres->devices) {
    if (!out.empty()) out += ' ';
    out += d.type.empty() && d.sockets.empty() ? "?" : d.type;
    if (d.sockets.any()) out += "@" + d.sockets.ranges();
    if (d.units != 1) out += fmt::format("x{}", d.units);
  }
  return out;
}

TEST(FromConfig, BuildsTheRecordedCluster) {
  const auto site =
      read_site(conf::DirectorySource(std::string(BERTH_SOURCE_DIR) + "/tests/conf/corpus"));
  ASSERT_TRUE(site) << site.error().what();
  const cluster::Cluster& c = site->cluster;
  EXPECT_EQ(c.name, "oracle");
  std::vector<std::string> names;
  for (const cluster::Node& node : c.nodes) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("cpu1", "cpu2", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6"));
  EXPECT_EQ(devices(*site, "gpu1"), "a100@0 a100@0 a100@1 a100@1");
  EXPECT_EQ(devices(*site, "gpu5"), "tesla_v100@0 tesla_v100@0 a100@1 a100@1");
  EXPECT_EQ(devices(*site, "gpu6"), "@0 @0 @0 @0 @1 @1 @1 @1");
  EXPECT_EQ(devices(*site, "gpu6", "shard"), "@0x4 @0x4 @0x4 @0x4 @1x4 @1x4 @1x4 @1x4");
  EXPECT_EQ(devices(*site, "cpu1"), "none");
  const cluster::Node& gpu1 = c.nodes[2];
  EXPECT_THAT(gpu1.gres[0].devices[1].links, ElementsAre(4, -1, 0, 0));
  EXPECT_EQ(gpu1.gres[0].devices[3].file, "/dev/nvidia3");
  EXPECT_EQ(gpu1.gres[0].devices[3].record, 3);
  EXPECT_EQ(c.nodes[7].gres[0].devices[5].record, 1);
  EXPECT_TRUE(c.nodes[7].gres[1].shares_gpu);
  EXPECT_EQ(c.nodes[0].threads_per_core, 2u);
  EXPECT_EQ(c.nodes[0].cpus(), 32u);
  EXPECT_EQ(gpu1.cpus(), 16u);
  EXPECT_EQ(gpu1.memory_mb, 65536u);
  EXPECT_THAT(gpu1.features, ElementsAre("a100", "nvlink"));
  ASSERT_EQ(c.partitions.size(), 5u);
  EXPECT_EQ(c.default_partition()->name, "debug");
  EXPECT_EQ(c.find_partition("debug")->nodes.size(), 8u);
  EXPECT_THAT(c.find_partition("ml")->nodes, ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(c.find_partition("short")->max_time_minutes, 2u);
  EXPECT_EQ(c.find_partition("short")->default_time_minutes, 1u);
  EXPECT_EQ(c.find_partition("closed")->state, cluster::PartitionState::down);
  EXPECT_FALSE(c.find_partition("debug")->max_time_minutes);
  EXPECT_TRUE(c.settings.task_affinity);
  EXPECT_TRUE(c.settings.memory_is_consumed);
  EXPECT_FALSE(c.settings.constrain_devices);
  EXPECT_THAT(c.settings.gres_types, ElementsAre("gpu", "shard"));
  EXPECT_THAT(site->notes, ElementsAre());
  EXPECT_THAT(site->warnings, ElementsAre());
  ASSERT_EQ(site->unused.size(), 1u);
  EXPECT_THAT(site->unused[0].keys, Contains("CredType (line 7)"));
}

TEST(FromConfig, ShapesNodes) {
  struct Row {
    const char* line;
    std::uint32_t sockets, cores, threads;
    const char* warning;  // "" = none
  };
  const Row rows[] = {
      {"NodeName=n", 1, 1, 1, ""},
      {"NodeName=n CPUs=4", 4, 1, 1, ""},
      {"NodeName=n CPUs=16 CoresPerSocket=4 ThreadsPerCore=2", 2, 4, 2, ""},
      {"NodeName=n Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 2, 8, 2, ""},
      {"NodeName=n CPUs=32 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 2, 8, 2, ""},
      {"NodeName=n CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 2, 8, 1, ""},
      {"NodeName=n Boards=2 SocketsPerBoard=2 CoresPerSocket=4", 4, 4, 1, ""},
      {"NodeName=n CPUs=20 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 2, 8, 2,
       "slurm.conf:4: CPUs=20 fits neither 2 sockets x 8 cores (16) nor x 2 threads (32); planned "
       "with 32 CPUs"},
  };
  for (const Row& row : rows) {
    const auto site = read_nodes(row.line);
    ASSERT_TRUE(site) << row.line << first_error(site);
    const cluster::Node& node = site->cluster.nodes.at(0);
    EXPECT_EQ(node.sockets, row.sockets) << row.line;
    EXPECT_EQ(node.cores_per_socket, row.cores) << row.line;
    EXPECT_EQ(node.threads_per_core, row.threads) << row.line;
    if (row.warning[0] != '\0') {
      EXPECT_THAT(site->warnings, ElementsAre(row.warning));
    } else {
      EXPECT_THAT(site->warnings, ElementsAre());
    }
  }
}

TEST(FromConfig, WithholdsCoresAndMemory) {
  const auto site = read_nodes(
      "NodeName=DEFAULT Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=1000\n"
      "NodeName=a CoreSpecCount=3\nNodeName=b CpuSpecList=0,1,14 MemSpecLimit=200\n");
  ASSERT_TRUE(site) << first_error(site);
  EXPECT_EQ(site->cluster.nodes[0].reserved_cores.ranges(), "3,6-7");
  EXPECT_EQ(site->cluster.nodes[1].reserved_cores.ranges(), "0,7");
  EXPECT_EQ(site->cluster.nodes[1].usable_memory_mb(), 800u);
}

TEST(FromConfig, KeepsCoresForGpuJobs) {
  const std::string conf =
      "NodeName=DEFAULT Sockets=2 CoresPerSocket=4 RealMemory=1000\n"
      "NodeName=a Gres=gpu:2 RestrictedCoresPerGPU=1\n"
      "NodeName=b Gres=gpu:2 RestrictedCoresPerGPU=3 CoreSpecCount=2\nNodeName=c "
      "RestrictedCoresPerGPU=2\n";
  const auto site = read_nodes(conf);
  ASSERT_TRUE(site) << first_error(site);
  EXPECT_EQ(site->cluster.nodes[0].gpu_cores.ranges(), "0,4");  // GPUs of no socket spread
  EXPECT_EQ(site->cluster.nodes[1].gpu_cores.ranges(), "0-2,4-6");
  EXPECT_TRUE(site->cluster.nodes[2].gpu_cores.empty());
}

TEST(FromConfig, KnowsUnusableNodes) {
  const auto site = read_nodes(
      "NodeName=a State=DOWN Reason=\"no fan\"\nNodeName=b State=FUTURE\nNodeName=c State=CLOUD\n"
      "NodeName=d\nNodeName=e\nDownNodes=e State=DRAIN Reason=disk\n");
  ASSERT_TRUE(site) << first_error(site);
  const auto& nodes = site->cluster.nodes;
  EXPECT_FALSE(nodes[0].usable);
  EXPECT_EQ(nodes[0].state_reason, "DOWN (no fan)");
  EXPECT_FALSE(nodes[1].usable);
  EXPECT_TRUE(nodes[2].usable);
  EXPECT_TRUE(nodes[3].usable);
  EXPECT_FALSE(nodes[4].usable);
  EXPECT_EQ(nodes[4].state_reason, "DRAIN (disk)");
}

struct GresRow {
  const char* gres;       // Gres= of node n, 2 sockets x 4 cores
  const char* gres_conf;  // nullptr = no such file
  const char* name;
  const char* devices;
  const char* note;     // a part of the only note, "" = none
  const char* warning;  // the only warning, "" = none
};

TEST(FromConfig, MergesDevices) {
  const GresRow rows[] = {
      {"gpu:a100:2", nullptr, "gpu", "a100 a100", "there is no gres.conf", ""},
      {"gpu:v:1,gpu:a:1", nullptr, "gpu", "v a", "there is no gres.conf", ""},
      {"gpu:2", "", "gpu", "? ?", "gres.conf has no line for them", ""},
      {"gpu:a100:2", "AutoDetect=nvml", "gpu", "a100 a100", "gres.conf uses AutoDetect=nvml", ""},
      {"gpu:a100:2", "AutoDetect=nvml\nNodeName=n AutoDetect=off", "gpu", "a100 a100",
       "gres.conf has no line for them", ""},
      {"gpu:a100:2", "AutoDetect=nvml\nName=gpu Type=a100 File=/dev/nvidia[0-1] Cores=4-7", "gpu",
       "a100@1 a100@1", "", ""},
      {"gpu:2", "Name=gpu Type=h100 File=/dev/nvidia[0-1] Cores=0-3", "gpu", "h100@0 h100@0", "",
       ""},
      {"gpu:a:1,gpu:b:1", "Name=gpu File=/dev/nvidia[0-1] Cores=0-7", "gpu", "a@0-1 b@0-1", "", ""},
      {"gpu:a:1,gpu:b:1",
       "Name=gpu Type=b File=/dev/nvidia0 Cores=0-3\nName=gpu Type=a File=/dev/nvidia1 Cores=4-7",
       "gpu", "b@0 a@1", "", ""},
      {"gpu:a:3", "Name=gpu Type=a File=/dev/nvidia0 Cores=0-3", "gpu", "a@0 a a", "",
       "slurm.conf:4: node n has gpu:a:3, gres.conf describes 1; planned with 3, 2 of them usable "
       "from any socket"},
      {"gpu:a:1", "Name=gpu Type=a File=/dev/nvidia[0-3] Cores=0-3", "gpu", "a@0", "",
       "slurm.conf:4: node n has gpu:a:1, gres.conf describes 4; planned with 1"},
      {"gpu:a:1",
       "NodeName=n Name=gpu Type=a File=/dev/x Cores=0-3\nNodeName=n Name=gpu Type=b File=/dev/y",
       "gpu", "a@0", "",
       "gres.conf:2: gpu:b of node n is not in Gres= of its NodeName line (slurm.conf:4); planned "
       "without it"},
      {"gpu:a:1",
       "NodeName=n Name=gpu Type=a File=/dev/x Cores=0-3\nNodeName=n Name=nic File=/dev/y", "gpu",
       "a@0", "",
       "gres.conf:2: nic of node n is not in Gres= of its NodeName line (slurm.conf:4); planned "
       "without it"},
      {"gpu:1", "Name=gpu File=/dev/nvidia0 Cores=0-1", "gpu", "@0", "",
       "gres.conf:1: Cores=0-1 is only a part of socket 0 of node n; Slurm wants whole sockets, "
       "write "
       "Cores=0-3 (planned as if it said so)"},
      {"gpu:2",
       "Name=gpu File=/dev/nvidia0 Cores=0-3 Links=-1\nName=gpu File=/dev/nvidia1 Cores=0-3", "gpu",
       "@0 @0", "",
       "gres.conf:1: Links= has 1 numbers, node n has 2 devices; links are taken as not known"},
      {"gpu:2,shard:5", "Name=gpu File=/dev/nvidia[0-1] Cores=0-3", "shard", "@0x3 @0x2", "", ""},
      {"shard:6,gpu:2", "Name=gpu File=/dev/nvidia[0-1] Cores=0-3\nName=shard Count=6", "shard",
       "@0x3 @0x3", "", ""},
      {"gpu:2,shard:6",
       "Name=gpu File=/dev/nvidia[0-1] Cores=0-3\nName=shard Count=4 File=/dev/nvidia0\n"
       "Name=shard Count=2 File=/dev/nvidia1",
       "shard", "@0x4 @0x2", "", ""},
      {"gpu:2,shard:8", "Name=gpu File=/dev/nvidia[0-1] Cores=0-3\nName=shard Count=6", "shard",
       "@0x4 @0x4", "", "slurm.conf:4: node n has shard:8, gres.conf describes 6; planned with 8"},
      {"bw:lustre:4G", "", "bw", "lustrex4294967296", "", ""},
      {"nic:2", "Name=nic File=/dev/nic[0-1] Cores=0-3", "nic", "@0 @0", "", ""},
      {"nic:2", "Name=nic Count=3", "nic", "?x2", "",
       "slurm.conf:4: node n has nic:2, gres.conf describes 3; planned with 2"},
      {"gpu:1", "NodeName=other Name=gpu File=/dev/nvidia0", "gpu", "?",
       "gres.conf has no line for them", "gres.conf:1: other is not in slurm.conf"},
  };
  for (const GresRow& row : rows) {
    const auto site = read_nodes(
        fmt::format("NodeName=n Sockets=2 CoresPerSocket=4 Gres={}", row.gres),
        row.gres_conf == nullptr ? std::nullopt : std::optional<std::string>(row.gres_conf));
    const std::string what =
        fmt::format("{} with {}", row.gres, row.gres_conf ? row.gres_conf : "none");
    ASSERT_TRUE(site) << what << ": " << first_error(site);
    EXPECT_EQ(devices(*site, "n", row.name), row.devices) << what;
    if (row.note[0] == '\0') {
      EXPECT_THAT(site->notes, ElementsAre()) << what;
    } else {
      EXPECT_THAT(site->notes, ElementsAre(HasSubstr(row.note))) << what;
    }
    if (row.warning[0] == '\0') {
      EXPECT_THAT(site->warnings, ElementsAre()) << what;
    } else {
      EXPECT_THAT(site->warnings, ElementsAre(row.warning)) << what;
    }
  }
}

TEST(FromConfig, GathersNodesInNotes) {
  const auto site = read_nodes("NodeName=n[1-3] Gres=gpu:1\nNodeName=m Gres=gpu:2");
  ASSERT_TRUE(site);
  EXPECT_THAT(
      site->notes,
      ElementsAre("GPU sockets and links of m,n[1-3] are not known: there is no gres.conf; the "
                  "GPUs of slurm.conf are taken as usable from any socket"));
}

TEST(FromConfig, ComplainsOnceForEachLine) {
  const auto site =
      read_nodes("NodeName=n[1-3] Gres=gpu:2\nNodeName=m Gres=gpu:2", "Name=gpu File=/dev/nvidia0");
  ASSERT_TRUE(site);
  EXPECT_THAT(
      site->warnings,
      ElementsAre("slurm.conf:4: node n1 has gpu:2, gres.conf describes 1; planned with 2, 1 of "
                  "them usable from any socket",
                  "slurm.conf:5: node m has gpu:2, gres.conf describes 1; planned with 2, 1 of "
                  "them usable from any socket"));
}

TEST(FromConfig, MarksPoolsAndExplicitOnes) {
  const auto site = read_nodes("NodeName=n Gres=gpu:1,nic:2",
                               "Name=gpu File=/dev/nvidia0 Flags=explicit\nName=nic Count=2");
  ASSERT_TRUE(site) << first_error(site);
  EXPECT_TRUE(site->cluster.nodes[0].find_gres("gpu")->given_explicitly);
  EXPECT_FALSE(site->cluster.nodes[0].find_gres("gpu")->counted);
  EXPECT_TRUE(site->cluster.nodes[0].find_gres("nic")->counted);
}

TEST(FromConfig, FlagsSayWhichVariablesTellOfGpus) {
  struct Row {
    const char* gres;
    const char* variables;
  };
  const Row rows[] = {
      {"Name=gpu File=/dev/nvidia[0-1]", "cuda rocr opencl ze"},
      {"AutoDetect=off\nName=gpu File=/dev/nvidia[0-1]", "cuda rocr opencl ze"},
      {"AutoDetect=nvml", "cuda"},
      {"AutoDetect=nvidia\nName=gpu File=/dev/nvidia[0-1]", "cuda"},
      {"AutoDetect=rsmi", "rocr"},
      {"AutoDetect=oneapi", "ze"},
      {"AutoDetect=full", "cuda rocr opencl ze found"},
      {"AutoDetect=nvml\nNodeName=n AutoDetect=off", "cuda rocr opencl ze"},
      {"AutoDetect=nvml\nName=gpu File=/dev/nvidia[0-1] Flags=opencl_env,amd_gpu_env",
       "rocr opencl"},
      {"Name=gpu File=/dev/nvidia0 Flags=intel_gpu_env\nName=gpu File=/dev/nvidia1", "ze"},
      {"Name=gpu File=/dev/nvidia[0-1] Flags=no_gpu_env", ""},
      {"Name=gpu File=/dev/nvidia[0-1] Flags=env_uuid", "cuda rocr opencl ze uuid"},
      {"Name=gpu File=/dev/nvidia[0-1] Flags=env_uuid,nvidia_gpu_env", "cuda uuid"},
  };
  for (const Row& row : rows) {
    const auto site = read_nodes("NodeName=n Gres=gpu:2", row.gres);
    ASSERT_TRUE(site) << row.gres << ": " << first_error(site);
    for (const cluster::Device& device : site->cluster.nodes[0].find_gres("gpu")->devices) {
      const cluster::GpuVariables& told = device.variables;
      std::string words;
      for (const auto& [on, word] :
           {std::pair(told.cuda, "cuda"), std::pair(told.rocr, "rocr"),
            std::pair(told.opencl, "opencl"), std::pair(told.level_zero, "ze"),
            std::pair(told.by_uuid, "uuid"), std::pair(told.of_vendor, "found")}) {
        if (on) words += std::string(words.empty() ? "" : " ") + word;
      }
      EXPECT_EQ(words, row.variables) << row.gres;
    }
  }
  EXPECT_THAT(first_error(read_nodes("NodeName=n Gres=gpu:2",
                                     "Name=gpu File=/dev/nvidia0 Flags=nvidia_gpu_env\n"
                                     "Name=gpu File=/dev/nvidia1 Flags=amd_gpu_env")),
              HasSubstr("gres.conf:2: Flags= of gpu differ from those of gres.conf:1 for node n"));
}

TEST(FromConfig, MpsIsOfOneGpuOfANode) {
  const auto one_of = [](const char* name, const std::string& gres) {
    const auto site = read_nodes("NodeName=n Gres=gpu:2,shard:4,mps:200", gres);
    EXPECT_TRUE(site) << first_error(site);
    return site->cluster.nodes[0].find_gres(name)->one_sharing;
  };
  EXPECT_TRUE(one_of("mps", "Name=gpu File=/dev/nvidia[0-1]"));
  EXPECT_FALSE(one_of("shard", "Name=gpu File=/dev/nvidia[0-1]"));
  EXPECT_FALSE(one_of("mps", "Name=mps Count=200 Flags=all_sharing"));
  EXPECT_TRUE(one_of("shard", "Name=shard Count=4 Flags=one_sharing"));
}

TEST(FromConfig, Refuses) {
  struct Row {
    const char* lines;
    const char* gres;
    const char* error;
  };
  const Row rows[] = {
      {"", "", "slurm.conf: no NodeName line: the cluster has no nodes"},
      {"NodeName=n Gres=tape:1", "",
       "slurm.conf:4: Gres=tape but GresTypes= does not name it; write "
       "GresTypes=gpu,shard,mps,nic,bw,tape"},
      {"NodeName=n Gres=shard:4", "",
       "slurm.conf:4: Gres=shard:4 needs GPUs to share: add gpu:<count>"},
      {"NodeName=n Gres=gpu:5000", "",
       "slurm.conf:4: gpu:5000 is more than the 1024 devices a node may have"},
      {"NodeName=n CPUs=4 Gres=gpu:1", "Name=gpu File=/dev/nvidia0 Cores=0-7",
       "gres.conf:1: Cores=0-7 but node n has cores 0-3 (4 sockets x 1 cores)"},
      {"NodeName=n Gres=gpu:1,shard:2",
       "Name=gpu File=/dev/nvidia0\nName=shard Count=2 File=/dev/nvidia9",
       "gres.conf:2: File=/dev/nvidia9 is not the file of a GPU of node n"},
      {"NodeName=n CPUs=4 CoreSpecCount=5", "",
       "slurm.conf:4: CoreSpecCount=5 but the node has 4 cores"},
      {"NodeName=n CPUs=4 CpuSpecList=4", "",
       "slurm.conf:4: CpuSpecList=4 but the node has CPUs 0-3"},
      {"NodeName=n Sockets=1024 CoresPerSocket=1024", "",
       "slurm.conf:4: 1024 sockets x 1024 cores x 1 threads are 1048576 CPUs; at most 16384 are "
       "allowed"},
      {"NodeName=gpu1\nPartitionName=q Nodes=gpu2", "",
       "slurm.conf:5: no NodeName line describes gpu2; did you mean gpu1?"},
      {"NodeName=n\nPartitionName=q Nodes=n[1", "",
       "slurm.conf:5: Invalid host list \"n[1\": '[' without ']'"},
      {"NodeName=n\nDownNodes=m", "",
       "slurm.conf:5: DownNodes names m, which no NodeName line describes"},
      {"NodeName=n[1-60000] Gres=gpu:100", "",
       "slurm.conf:4: the cluster has more than 1048576 devices"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(first_error(read_nodes(row.lines, row.gres)), row.error) << row.lines;
  }
  EXPECT_EQ(first_error(read("ClusterName=c\nNodeName=n")),
            "slurm.conf: no PartitionName line: no job could be submitted");
}

TEST(FromConfig, ResolvesPartitions) {
  const auto site = read(
      "ClusterName=c\nNodeName=n[1-4]\nNodeName=g[1-2] Feature=fast\n"
      "NodeSet=quick Feature=fast\nNodeSet=pair Nodes=n[1-2]\nNodeSet=both Nodes=quick,pair\n"
      "PartitionName=a Nodes=all Default=YES\nPartitionName=b Nodes=quick\n"
      "PartitionName=c Nodes=pair,n4,feature{fast}\nPartitionName=d Nodes=both Default=YES\n"
      "PartitionName=e OverSubscribe=EXCLUSIVE MaxNodes=3 MinNodes=1 MaxCPUsPerNode=7 "
      "DefMemPerGPU=5 "
      "DefCpuPerGPU=6 MaxMemPerCPU=8 LLN=YES Nodes=n1\n");
  ASSERT_TRUE(site) << first_error(site);
  const auto& c = site->cluster;  // g1 g2 n1 n2 n3 n4
  EXPECT_EQ(c.find_partition("a")->nodes.size(), 6u);
  EXPECT_THAT(c.find_partition("b")->nodes, ElementsAre(0, 1));
  EXPECT_THAT(c.find_partition("c")->nodes, ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(c.find_partition("d")->nodes, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(c.default_partition()->name, "d");
  EXPECT_THAT(site->warnings, Contains("slurm.conf:10: both a and d are Default=YES; d counts"));
  const cluster::Partition& e = *c.find_partition("e");
  EXPECT_TRUE(e.exclusive_nodes);
  EXPECT_TRUE(e.least_loaded);
  EXPECT_EQ(e.max_nodes, 3u);
  EXPECT_EQ(e.min_nodes, 1u);
  EXPECT_EQ(e.max_cpus_per_node, 7u);
  EXPECT_EQ(e.def_mem_per_gpu_mb, 5u);
  EXPECT_EQ(e.def_cpu_per_gpu, 6u);
  EXPECT_EQ(e.max_mem_per_cpu_mb, 8u);
}

TEST(FromConfig, FillsSettings) {
  const auto site = read(
      "ClusterName=c\nNodeName=n\nPartitionName=p Nodes=n\n"
      "SelectTypeParameters=CR_Core,ENFORCE_BINDING_GRES,MULTIPLE_SHARING_GRES_PJ,"
      "ONE_TASK_PER_SHARING_GRES,LL_SHARED_GRES,CR_CORE_DEFAULT_DIST_BLOCK,CR_ONE_TASK_PER_CORE,"
      "BERTH_KEEP_GPUS_WHOLE,"
      "CR_LLN\n"
      "TaskPlugin=task/cgroup MaxTasksPerNode=9 MaxArraySize=8 MpiDefault=pmi2 "
      "EnforcePartLimits=ALL DefMemPerCPU=1 MaxMemPerNode=2 DefCpuPerGPU=3\n",
      std::nullopt, "ConstrainDevices=yes");
  ASSERT_TRUE(site) << first_error(site);
  const cluster::Settings& s = site->cluster.settings;
  EXPECT_FALSE(s.memory_is_consumed);
  EXPECT_TRUE(s.enforce_binding_gres && s.multiple_sharing_gres && s.one_task_per_sharing &&
              s.least_loaded_shares && s.core_default_dist_block && s.one_task_per_core);
  EXPECT_EQ(s.placement, cluster::Placement::keep_whole);
  EXPECT_FALSE(s.task_affinity);
  EXPECT_TRUE(s.constrain_devices);
  EXPECT_FALSE(s.step_fence);
  EXPECT_EQ(s.max_tasks_per_node, 9u);
  EXPECT_EQ(s.max_array_size, 8u);
  EXPECT_EQ(s.mpi_default, "pmi2");
  EXPECT_EQ(s.enforce_part_limits, cluster::EnforcePartLimits::all);
  EXPECT_EQ(s.def_mem_per_cpu_mb, 1u);
  EXPECT_EQ(s.max_mem_per_node_mb, 2u);
  EXPECT_EQ(s.def_cpu_per_gpu, 3u);
  EXPECT_TRUE(site->cluster.partitions[0].least_loaded);
  EXPECT_TRUE(std::ranges::any_of(site->warnings, [](const std::string& warning) {
    return warning.find("ONE_TASK_PER_SHARING_GRES is not planned for") != std::string::npos;
  }));
}

TEST(FromConfig, FenceOfSteps) {
  for (const bool step : {true, false}) {
    const auto site =
        read(std::string(
                 "ClusterName=c\nNodeName=n\nPartitionName=p Nodes=n\nTaskPlugin=task/cgroup\n") +
                 "SlurmdParameters=gpu_poll=50ms,gpu_fence=" + (step ? "step" : "task") + "\n",
             std::nullopt, "ConstrainDevices=yes");
    ASSERT_TRUE(site) << first_error(site);
    EXPECT_EQ(site->cluster.settings.step_fence, step);
  }
}

TEST(Hardware, TakesSpecializedCoresFromTheTop) {
  cluster::Node node;
  node.sockets = 2;
  node.cores_per_socket = 4;
  EXPECT_EQ(specialized_cores(node, 1).ranges(), "7");
  EXPECT_EQ(specialized_cores(node, 2).ranges(), "3,7");
  EXPECT_EQ(specialized_cores(node, 3).ranges(), "3,6-7");
  EXPECT_EQ(specialized_cores(node, 99).ranges(), "0-7");
}

}  // namespace
}  // namespace berth::site
