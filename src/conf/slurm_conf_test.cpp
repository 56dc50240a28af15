// slurm.conf: every rule of its lines, and the complaints with file and line.
#include "conf/slurm_conf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conf/config.h"

namespace berth::conf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct SlurmRead {
  SlurmConf conf;
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  std::vector<UnusedKeys> unused;
};

SlurmRead read_slurm(std::string text) {
  const MemorySource source(MemorySource::Files{{"slurm.conf", std::move(text)}});
  Complaints complaints;
  SlurmRead got;
  got.conf = read_slurm_conf(source, complaints);
  if (complaints.failed()) {
    for (const Message& m : complaints.as_error().messages) got.errors.push_back(m.text);
  }
  got.warnings = complaints.warnings();
  got.unused = complaints.unused_keys();
  return got;
}

TEST(SlurmConf, RefusesWithFileAndLine) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"NodeNme=n1", "slurm.conf:2: NodeNme is not a key of slurm.conf; did you mean NodeName?"},
      {"NodeNam=n1", "slurm.conf:2: NodeNam is not a key of slurm.conf; did you mean NodeName?"},
      {"NodNam=n1", "slurm.conf:2: NodNam is not a key of slurm.conf; did you mean NodeName?"},
      {"PartitonName=p",
       "slurm.conf:2: PartitonName is not a key of slurm.conf; did you mean PartitionName?"},
      {"DownNode=n1", "slurm.conf:2: DownNode is not a key of slurm.conf; did you mean DownNodes?"},
      {"NodeSets=s", "slurm.conf:2: NodeSets is not a key of slurm.conf; did you mean NodeSet?"},
      {"SelectTyp=x",
       "slurm.conf:2: SelectTyp is not a key of slurm.conf; did you mean SelectType?"},
      {"KilWait=30", "slurm.conf:2: KilWait is not a key of slurm.conf; did you mean KillWait?"},
      {"NodeName=n1 CPU=4",
       "slurm.conf:2: CPU is not a key of a NodeName line; did you mean CPUs?"},
      {"\nPartitionName=p Node=n1",
       "slurm.conf:3: Node is not a key of a PartitionName line; did you mean Nodes?"},
      {"Gres=gpu:4",
       "slurm.conf:2: Gres belongs on a NodeName line (which goes on in the next line only after a "
       "\\)"},
      {"NodeName=n1 CPUs=many",
       "slurm.conf:2: CPUs=many: allowed is a whole number from 1 to 16384"},
      {"NodeName=n1 CPUs=0", "slurm.conf:2: CPUs=0: allowed is a whole number from 1 to 16384"},
      {"NodeName=n1 RealMemory=lots",
       "slurm.conf:2: RealMemory=lots: allowed is a number of MiB, or a number with K, M, G or T"},
      {"NodeName=n1 State=BROKEN",
       "slurm.conf:2: State=BROKEN: allowed are UNKNOWN, CLOUD, DOWN, DRAIN, FAIL, FAILING, "
       "FUTURE"},
      {"NodeName=n1 Gres=gpu:a100:x",
       "slurm.conf:2: Gres=gpu:a100:x: in \"gpu:a100:x\", the count must be a number and come "
       "last: "
       "\"x\" is none; write, for example, Gres=gpu:a100:4"},
      {"NodeName=n1 Gres=gpu:a100:2,gpu:2",
       "slurm.conf:2: Gres=gpu:a100:2,gpu:2: gpu is given with and without a type; give a type to "
       "all or to none"},
      {"NodeName=n1 CpuSpecList=x", "slurm.conf:2: CpuSpecList=x: allowed is a list like 0,8-9"},
      {"NodeName=n[1-3", "slurm.conf:2: Invalid host list \"n[1-3\": '[' without ']'"},
      {"NodeName=", "slurm.conf:2: NodeName= names no node"},
      {"NodeName=ALL CPUs=2", "slurm.conf:2: NodeName=ALL is not allowed: name the nodes"},
      {"NodeName=n[1-2]\nNodeName=n2",
       "slurm.conf:3: node n2 is described twice; first in slurm.conf:2"},
      {"NodeName=n[1-99999999]", "slurm.conf:2: The host list names more than 65536 nodes"},
      {"NodeName=a[1-40000]\nNodeName=b[1-40000]", "slurm.conf:3: more than 65536 nodes"},
      {"PartitionName=p State=SIDEWAYS",
       "slurm.conf:2: State=SIDEWAYS: allowed are UP, DOWN, DRAIN, INACTIVE"},
      {"PartitionName=p MaxTime=soon",
       "slurm.conf:2: MaxTime=soon: allowed are minutes, h:m:s, d-h:m:s and UNLIMITED"},
      {"PartitionName=p Default=maybe", "slurm.conf:2: Default=maybe: allowed are YES and NO"},
      {"PartitionName= Nodes=n1", "slurm.conf:2: PartitionName= is empty"},
      {"SelectTypeParameters=CR_Cor",
       "slurm.conf:2: SelectTypeParameters=CR_Cor: CR_Cor is not known; did you mean CR_Core?"},
      {"SelectType=select/best",
       "slurm.conf:2: SelectType=select/best: allowed are select/cons_tres, select/cons_res, "
       "select/linear"},
      {"JobDefaults=DefTime=3",
       "slurm.conf:2: JobDefaults=DefTime=3: allowed are DefCpuPerGPU= and DefMemPerGPU="},
      {"NodeSet=s", "slurm.conf:2: a NodeSet line needs a name, and Nodes= or Feature="},
      {"DownNodes=n1 State=UP",
       "slurm.conf:2: State=UP: allowed are DOWN, DRAIN, FAIL, FAILING, FUTURE"},
      {"Include missing.conf", "slurm.conf:2: Include missing.conf: no such file"},
  };
  for (const Row& row : rows) {
    const SlurmRead got = read_slurm(std::string("ClusterName=c\n") + row.text);
    EXPECT_THAT(got.errors, ElementsAre(row.error)) << row.text;
  }
  EXPECT_THAT(read_slurm("SlurmctldHost=h").errors,
              ElementsAre("slurm.conf: ClusterName= is missing; Slurm does not start without it"));
}

TEST(SlurmConf, GathersErrors) {
  const SlurmRead few = read_slurm("Foo1=1\nBar2=2\nClusterName=c\nNodeName=n1 CPUs=x Weight=y");
  EXPECT_EQ(few.errors.size(), 4u);
  std::string many;
  for (int i = 0; i < 50; ++i) many += fmt::format("Qqqq{}=1\n", i);
  const SlurmRead full = read_slurm(many);
  EXPECT_EQ(full.errors.size(), Complaints::kMaxErrors + 1);
  EXPECT_EQ(full.errors.back(), "and 30 more");
  std::string includes;
  for (int i = 0; i < 20000; ++i) includes += fmt::format("Include no{}\n", i);
  const SlurmRead hopeless = read_slurm(includes);
  EXPECT_EQ(hopeless.errors.size(), Complaints::kMaxErrors + 1);
  EXPECT_EQ(hopeless.errors.back(), "and at least 980 more; the rest was not looked at");
}

TEST(SlurmConf, MissingClusterNameIsToldOnlyByItself) {
  EXPECT_THAT(read_slurm("NodeName=n1\n").errors,
              ElementsAre(HasSubstr("slurm.conf: ClusterName= is missing")));
  EXPECT_THAT(read_slurm("Include slurm.conf\n").errors, ElementsAre(HasSubstr("includes itself")));
  EXPECT_THAT(read_slurm(std::string("A\0B", 3)).errors, ElementsAre(HasSubstr("NUL byte")));
  EXPECT_THAT(read_slurm("Qqqq=1\n").errors, ElementsAre(HasSubstr("Qqqq is not a key")));
}

TEST(SlurmConf, AppliesDefaultsToFollowingLines) {
  const SlurmRead got = read_slurm(
      "ClusterName=c\n"
      "NodeName=early\n"
      "NodeName=DEFAULT CPUs=8 RealMemory=1000 Feature=a\n"
      "NodeName=n[1-2]\n"
      "nodename=default realmemory=2000\n"
      "NodeName=n3 Features=b,c\n"
      "PartitionName=DEFAULT MaxTime=60 State=DOWN\n"
      "PartitionName=p Nodes=ALL\n"
      "PartitionName=q Nodes=n1 State=up Default=yes\n");
  EXPECT_THAT(got.errors, ElementsAre());
  ASSERT_EQ(got.conf.nodes.size(), 3u);
  EXPECT_FALSE(got.conf.nodes[0].cpus);
  EXPECT_THAT(got.conf.nodes[1].names, ElementsAre("n1", "n2"));
  EXPECT_EQ(got.conf.nodes[1].cpus->value, 8u);
  EXPECT_EQ(got.conf.nodes[1].cpus->at.line, 3);
  EXPECT_EQ(got.conf.nodes[1].real_memory_mb->value, 1000u);
  EXPECT_EQ(got.conf.nodes[2].real_memory_mb->value, 2000u);
  EXPECT_EQ(got.conf.nodes[2].cpus->value, 8u);
  EXPECT_THAT(got.conf.nodes[2].features->value, ElementsAre("b", "c"));
  ASSERT_EQ(got.conf.partitions.size(), 2u);
  EXPECT_EQ(got.conf.partitions[0].state->value, "DOWN");
  EXPECT_EQ(got.conf.partitions[0].max_time->value.minutes, 60u);
  EXPECT_EQ(got.conf.partitions[1].state->value, "UP");
  EXPECT_TRUE(got.conf.partitions[1].is_default->value);
}

TEST(SlurmConf, ReadsTypedValues) {
  const SlurmRead got = read_slurm(
      "CLUSTERNAME=Big SelectType=SELECT/CONS_TRES "
      "SelectTypeParameters=cr_core,enforce_binding_gres\n"
      "TaskPlugin=affinity,task/cgroup DefMemPerCPU=2G MaxMemPerNode=UNLIMITED DefMemPerGPU=0\n"
      "JobDefaults=DefCpuPerGPU=4,DefMemPerGPU=1000 MaxTasksPerNode=128 MaxArraySize=5001\n"
      "MpiDefault=pmix EnforcePartLimits=any GresTypes=gpu,shard\n"
      "NodeName=n1 Procs=4 Weight=5 State=drain Reason=\"bad disk\" CoreSpecCount=1 "
      "CpuSpecList=0-1 MemSpecLimit=512 TmpDisk=10 Gres=gpu:a100:4\n"
      "NodeSet=fast Feature=nvme\nDownNodes=n1 State=DOWN Reason=fan\n"
      "PartitionName=p Nodes=fast MaxNodes=4 MinNodes=2 MaxCPUsPerNode=8 OverSubscribe=EXCLUSIVE "
      "DefaultTime=30 LLN=yes DefMemPerNode=100 Exclusive=node\n");
  EXPECT_THAT(got.errors, ElementsAre());
  const SlurmConf& c = got.conf;
  EXPECT_EQ(c.cluster_name->value, "big");
  EXPECT_EQ(c.select_type->value, "select/cons_tres");
  EXPECT_THAT(c.select_parameters->value, ElementsAre("CR_Core", "ENFORCE_BINDING_GRES"));
  EXPECT_THAT(c.task_plugins->value, ElementsAre("task/affinity", "task/cgroup"));
  EXPECT_EQ(c.limits.def_mem_per_cpu_mb->value, 2048u);
  EXPECT_FALSE(c.limits.max_mem_per_node_mb);
  EXPECT_EQ(c.limits.def_mem_per_gpu_mb->value, 1000u);
  EXPECT_EQ(c.limits.def_cpu_per_gpu->value, 4u);
  EXPECT_EQ(c.max_tasks_per_node->value, 128u);
  EXPECT_EQ(c.max_array_size->value, 5001u);
  EXPECT_EQ(c.mpi_default->value, "pmix");
  EXPECT_EQ(c.enforce_part_limits->value, "ANY");
  EXPECT_THAT(c.gres_types->value, ElementsAre("gpu", "shard"));
  const NodeLine& n = c.nodes.at(0);
  EXPECT_EQ(n.cpus->value, 4u);
  EXPECT_EQ(n.weight->value, 5u);
  EXPECT_EQ(n.state->value, "DRAIN");
  EXPECT_EQ(n.reason->value, "bad disk");
  EXPECT_EQ(n.core_spec_count->value, 1u);
  EXPECT_EQ(n.cpu_spec_list->value.ranges(), "0-1");
  EXPECT_EQ(n.mem_spec_limit_mb->value, 512u);
  EXPECT_EQ(n.tmp_disk_mb->value, 10u);
  EXPECT_EQ(n.gres->value.at(0).count, 4u);
  EXPECT_EQ(n.gres->at.line, 5);
  EXPECT_EQ(c.node_sets.at(0).feature->value, "nvme");
  EXPECT_EQ(c.down_nodes.at(0).reason->value, "fan");
  const PartitionLine& p = c.partitions.at(0);
  EXPECT_EQ(p.max_nodes->value, 4u);
  EXPECT_EQ(p.min_nodes->value, 2u);
  EXPECT_EQ(p.max_cpus_per_node->value, 8u);
  EXPECT_EQ(p.over_subscribe->value, "EXCLUSIVE");
  EXPECT_EQ(p.exclusive->value, "NODE");
  EXPECT_EQ(p.default_time->value.minutes, 30u);
  EXPECT_TRUE(p.least_loaded->value);
  EXPECT_EQ(p.limits.def_mem_per_node_mb->value, 100u);
}

TEST(SlurmConf, Warns) {
  const SlurmRead got = read_slurm(
      "ClusterName=c\n"
      "MessageTimeout=30\n"
      "VSizeFactor=1 SlurmctldHost=a\nSlurmctldHost=b\n"
      "MaxArraySize=10\nmaxarraysize=20\n"
      "NodeName=n1 BcastAddr=1.2.3.4 Weight=1 Weight=2\n"
      "NodeName=n2 BcastAddr=1.2.3.5\n"
      "TopologyParam=Dragonfly\n"
      "MCSPlugin=mcs/none\n"
      "PartitionName=p Nodes=n1\nPartitionName=p Nodes=n2 AllowAccounts=physics AllowQos=ALL\n"
      "DefMemPerCPU=1 DefMemPerNode=2\n");
  EXPECT_THAT(got.errors, ElementsAre());
  EXPECT_THAT(
      got.warnings,
      ElementsAre("slurm.conf:6: maxarraysize was given before, in slurm.conf:5; this one counts",
                  "slurm.conf:7: Weight is given twice on this line; the last one, 2, counts",
                  "slurm.conf:9: TopologyParam=Dragonfly is not planned for: nodes are chosen as "
                  "in any tree",
                  "slurm.conf:12: AllowAccounts=physics is not planned for: who may use the "
                  "partition is checked at submission",
                  "slurm.conf:12: partition p is described twice; this line counts, not "
                  "slurm.conf:11",
                  "slurm.conf:13: DefMemPerNode and DefMemPerCPU exclude each other; DefMemPerCPU "
                  "counts"));
  ASSERT_EQ(got.unused.size(), 1u);
  EXPECT_EQ(shown(got.unused[0], true),
            "slurm.conf: 4 keys that Slurm has are not used by berth: MessageTimeout (line 2), "
            "VSizeFactor (line 3), BcastAddr (line 7), MCSPlugin (line 10)");
  EXPECT_EQ(shown(got.unused[0], false),
            "slurm.conf: 4 keys that Slurm has are not used by berth: MessageTimeout (line 2), "
            "VSizeFactor (line 3), BcastAddr (line 7), …");
  EXPECT_EQ(got.conf.max_array_size->value, 20u);
  EXPECT_EQ(got.conf.nodes[0].weight->value, 2u);
  EXPECT_EQ(got.conf.partitions.at(0).nodes->value, "n2");
  EXPECT_FALSE(got.conf.limits.def_mem_per_node_mb);
}

TEST(SlurmConf, WarningsAreBounded) {
  std::string text = "ClusterName=c\n";
  for (int i = 0; i < 1000; ++i) text += fmt::format("MCS{}=1\nMaxArraySize={}\n", i, i);
  EXPECT_LE(read_slurm(text).warnings.size(), Complaints::kMaxWarnings + 2);
}

TEST(Config, ReadsTheRecordedCluster) {
  const DirectorySource source(std::string(BERTH_SOURCE_DIR) + "/tests/conf/corpus");
  const auto config = read_config(source);
  ASSERT_TRUE(config) << config.error().what();
  EXPECT_EQ(config->slurm.nodes.size(), 8u);
  EXPECT_EQ(config->slurm.partitions.size(), 5u);
  EXPECT_EQ(config->gres->lines.size(), 9u);
  EXPECT_EQ(config->cgroup->plugin, "disabled");
  EXPECT_THAT(config->warnings, ElementsAre());
  ASSERT_EQ(config->unused.size(), 1u);
  EXPECT_THAT(config->unused[0].keys, testing::Contains("CredType (line 7)"));
}

TEST(Config, SaysWhenThereIsNone) {
  const auto config = read_config(MemorySource(MemorySource::Files{}));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().what(), "slurm.conf: no such file");
}

}  // namespace
}  // namespace berth::conf
