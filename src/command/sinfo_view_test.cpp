// sinfo against what Slurm printed (the recorded samples), and the command lines of clients.
#include "command/sinfo_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/show_samples_test_fixture.h"

namespace berth::command {
namespace {

wire::NodeInfo& add_node(wire::NodesReply& reply, const std::string& name, const char* features,
                         const char* gres, const char* used) {
  wire::NodeInfo& node = *reply.add_nodes();
  node.set_name(name);
  node.set_sockets(2);
  node.set_cores_per_socket(8);
  node.set_threads_per_core(name.starts_with("cpu") ? 2 : 1);
  node.set_cpus(16 * node.threads_per_core());
  node.set_memory_mb(65536);
  node.set_weight(1);
  node.set_state("IDLE");
  node.set_features(features);
  node.set_gres(gres);
  node.set_gres_used(used);
  node.set_host("localhost");
  node.set_address("127.0.0.1");
  node.set_version("26.11.0-0rc1");
  node.set_memory_free_mb(21549);
  node.set_load(11.49);
  return node;
}

void add_partition(wire::NodesReply& reply, const char* name, int first, int last) {
  wire::PartitionInfo& partition = *reply.add_partitions();
  partition.set_name(name);
  partition.set_state("UP");
  partition.set_priority_tier(1);
  partition.set_priority_job_factor(1);
  partition.set_over_subscribe("NO");
  for (int i = first; i <= last; ++i) reply.mutable_nodes(i)->add_partitions(name);
}

/// cpu[1-2], gpu[1-6] and the five partitions of the recordings.
wire::NodesReply sample_nodes(bool busy) {
  wire::NodesReply reply;
  reply.set_now(kSampleTime - 5);
  for (int i = 1; i <= 2; ++i) {
    wire::NodeInfo& node = add_node(reply, "cpu" + std::to_string(i), "cpuonly", "", "");
    if (i == 2) node.set_memory_free_mb(21582);
    if (i == 2) node.set_load(8.37);
  }
  for (int i = 1; i <= 4; ++i) {
    add_node(reply, "gpu" + std::to_string(i), i <= 2 ? "a100,nvlink" : "a100,rack2",
             "gpu:a100:4(S:0-1)", busy && i <= 2 ? "gpu:a100:2(IDX:0-1)" : "gpu:a100:0(IDX:N/A)");
  }
  add_node(reply, "gpu5", "tesla_v100", "gpu:tesla_v100:2(S:0),gpu:a100:2(S:1)",
           "gpu:tesla_v100:0(IDX:N/A),gpu:a100:0(IDX:N/A)");
  add_node(reply, "gpu6", "sharded", "gpu:8(S:0-1),shard:32(S:0-1)",
           "gpu:0(IDX:N/A),shard:0(0/4,0/4,0/4,0/4,0/4,0/4,0/4,0/4)");
  add_partition(reply, "debug", 0, 7);
  add_partition(reply, "ml", 2, 5);
  add_partition(reply, "gpu_partition", 2, 7);
  add_partition(reply, "short", 0, 7);
  add_partition(reply, "closed", 0, 1);
  reply.mutable_partitions(0)->set_is_default(true);
  reply.mutable_partitions(3)->set_max_time_minutes(2);
  reply.mutable_partitions(3)->set_default_time_minutes(1);
  reply.mutable_partitions(4)->set_state("DOWN");
  if (busy) {
    for (int i = 2; i <= 7; ++i) {
      reply.mutable_nodes(i)->add_flags("PLANNED");
      if (i > 3) continue;
      reply.mutable_nodes(i)->set_state("MIXED");
      reply.mutable_nodes(i)->set_cpus_allocated(4);
    }
  }
  return reply;
}

std::string sinfo(std::vector<std::string> words, bool busy = false,
                  const request::Environment& environment = {}) {
  use_utc();
  const Result<SinfoOptions> options = parse_sinfo(words, environment);
  if (!options) return "refused: " + std::string(options.error().what());
  const wire::NodesReply reply = sample_nodes(busy);
  Shown shown;
  shown.now = reply.now();
  const Result<std::string> text = sinfo_text(*options, reply, shown);
  return text ? *text : "refused: " + std::string(text.error().what());
}

TEST(Sinfo, PrintsTheRecordedListings) {
  EXPECT_EQ(sinfo({}), R"(PARTITION     AVAIL  TIMELIMIT  NODES  STATE NODELIST
debug*           up   infinite      8   idle cpu[1-2],gpu[1-6]
ml               up   infinite      4   idle gpu[1-4]
gpu_partition    up   infinite      6   idle gpu[1-6]
short            up       2:00      8   idle cpu[1-2],gpu[1-6]
closed         down   infinite      2   idle cpu[1-2]
)");
  EXPECT_EQ(sinfo({}, true), R"(PARTITION     AVAIL  TIMELIMIT  NODES  STATE NODELIST
debug*           up   infinite      2   mix- gpu[1-2]
debug*           up   infinite      4   plnd gpu[3-6]
debug*           up   infinite      2   idle cpu[1-2]
ml               up   infinite      2   mix- gpu[1-2]
ml               up   infinite      2   plnd gpu[3-4]
gpu_partition    up   infinite      2   mix- gpu[1-2]
gpu_partition    up   infinite      4   plnd gpu[3-6]
short            up       2:00      2   mix- gpu[1-2]
short            up       2:00      4   plnd gpu[3-6]
short            up       2:00      2   idle cpu[1-2]
closed         down   infinite      2   idle cpu[1-2]
)");
  EXPECT_EQ(sinfo({"-s"}), R"(PARTITION     AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST
debug*           up   infinite          0/8/0/8 cpu[1-2],gpu[1-6]
ml               up   infinite          0/4/0/4 gpu[1-4]
gpu_partition    up   infinite          0/6/0/6 gpu[1-6]
short            up       2:00          0/8/0/8 cpu[1-2],gpu[1-6]
closed         down   infinite          0/2/0/2 cpu[1-2]
)");
  EXPECT_EQ(sinfo({"-l"}), R"(Sun Nov 15 08:24:45 2026
PARTITION     AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS     GROUPS  NODES       STATE RESERVATION NODELIST
debug*           up   infinite 1-infinite   no       NO        all      8        idle             cpu[1-2],gpu[1-6]
ml               up   infinite 1-infinite   no       NO        all      4        idle             gpu[1-4]
gpu_partition    up   infinite 1-infinite   no       NO        all      6        idle             gpu[1-6]
short            up       2:00 1-infinite   no       NO        all      8        idle             cpu[1-2],gpu[1-6]
closed         down   infinite 1-infinite   no       NO        all      2        idle             cpu[1-2]
)");
  EXPECT_EQ(sinfo({"-R"}), "REASON               USER      TIMESTAMP           NODELIST\n");
}

TEST(Sinfo, PrintsNodesByNameAsRecorded) {
  const std::string text = sinfo({"-N", "-l"}, true);
  EXPECT_THAT(text, testing::StartsWith(R"(Sun Nov 15 08:24:45 2026
NODELIST   NODES     PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON              
cpu1           1        debug*        idle 32      2:8:2  65536        0      1  cpuonly none                
cpu1           1         short        idle 32      2:8:2  65536        0      1  cpuonly none                
cpu1           1        closed        idle 32      2:8:2  65536        0      1  cpuonly none                
)"));
  EXPECT_THAT(text, testing::HasSubstr(
                        "gpu1           1 gpu_partition      mixed- 16      2:8:1  65536        0"
                        "      1 a100,nvl none                \n"));
}

TEST(Sinfo, PrintsEveryFieldAsRecorded) {
  const std::string text = sinfo({"-o", "%all"});
  EXPECT_THAT(
      text,
      testing::StartsWith(
          R"(AVAIL|ACTIVE_FEATURES|CPUS|TMP_DISK|FREE_MEM|AVAIL_FEATURES|GROUPS|OVERSUBSCRIBE|RESERVATION|TIMELIMIT|MEMORY|HOSTNAMES|NODE_ADDR|PRIO_TIER|ROOT|JOB_SIZE|STATE|USER|VERSION|WEIGHT|S:C:T|NODES(A/I) |MAX_CPUS_PER_NODE |CPUS(A/I/O/T) |NODES |REASON |NODES(A/I/O/T) |GRES |TIMESTAMP |PRIO_JOB_FACTOR |DEFAULTTIME |PREEMPT_MODE |NODELIST |CPU_LOAD |PARTITION |PARTITION |ALLOCNODES |STATE |USER |CLUSTER |SOCKETS |CORES |THREADS |
up|cpuonly|32|0|21549-21582|cpuonly|all|NO||infinite|65536|localhost|127.0.0.1|1|no|1-infinite|idle|Unknown|26.11.0-0rc1|1|2:8:2|0/2 |UNLIMITED |0/64/0/64 |2 |none |0/2/0/2 |(null) |Unknown |1 |n/a |OFF |cpu[1-2] |8.37-11.49 |debug* |debug |all |idle |Unknown |N/A |2 |8 |2 |
up|a100,nvlink|16|0|21549|a100,nvlink|all|NO||infinite|65536|localhost|127.0.0.1|1|no|1-infinite|idle|Unknown|26.11.0-0rc1|1|2:8:1|0/2 |UNLIMITED |0/32/0/32 |2 |none |0/2/0/2 |gpu:a100:4(S:0-1) |Unknown |1 |n/a |OFF |gpu[1-2] |11.49 |debug* |debug |all |idle |Unknown |N/A |2 |8 |1 |
)"));
}

TEST(Sinfo, GroupsNodesByWhatIsShown) {
  EXPECT_EQ(
      sinfo({"-O", "NodeList,Gres:30,GresUsed:40"}, true),
      R"(NODELIST            GRES                          GRES_USED                               
gpu[1-2]            gpu:a100:4(S:0-1)             gpu:a100:2(IDX:0-1)                     
gpu[3-4]            gpu:a100:4(S:0-1)             gpu:a100:0(IDX:N/A)                     
gpu5                gpu:tesla_v100:2(S:0),gpu:a100gpu:tesla_v100:0(IDX:N/A),gpu:a100:0(IDX
gpu6                gpu:8(S:0-1),shard:32(S:0-1)  gpu:0(IDX:N/A),shard:0(0/4,0/4,0/4,0/4,0
cpu[1-2]            (null)                        (null)                                  
)");
  EXPECT_EQ(sinfo({"-h", "-o", "%c %D"}), "16+ 8\n");
  EXPECT_EQ(sinfo({"-h", "-e", "-o", "%c %D"}), "32 2\n16 6\n");
  EXPECT_EQ(sinfo({"-h", "-o", "%C"}, true), "8/152/0/160\n");
  EXPECT_EQ(sinfo({"-aho", "%F/%C"}), "0/8/0/8/0/160/0/160\n");
}

TEST(Sinfo, AnswersTheCommandLinesOfClients) {
  EXPECT_EQ(sinfo({"-h", "-o", "%R"}), "debug\nml\ngpu_partition\nshort\nclosed\n");
  EXPECT_EQ(sinfo({"-o", "%P"}), "PARTITION\ndebug*\nml\ngpu_partition\nshort\nclosed\n");
  EXPECT_EQ(sinfo({"-h", "-N", "-o", "%T", "-n", "gpu1"}, true), "mixed-\n");
  EXPECT_EQ(sinfo({"-h", "-o", "%N", "-p", "ml"}), "gpu[1-4]\n");
  EXPECT_EQ(sinfo({"--format", "%P,%m", "--noconvert", "-p", "ml"}),
            "PARTITION,MEMORY\nml,65536\n");
  EXPECT_EQ(sinfo({"-h", "-p", "ml", "-N", "-O", "StateCompact:|,Gres:|,GresUsed:"}, true),
            "mix-|gpu:a100:4(S:0-1)|gpu:a100:2(IDX:0-1)\n"
            "mix-|gpu:a100:4(S:0-1)|gpu:a100:2(IDX:0-1)\n"
            "plnd|gpu:a100:4(S:0-1)|gpu:a100:0(IDX:N/A)\n"
            "plnd|gpu:a100:4(S:0-1)|gpu:a100:0(IDX:N/A)\n");
  EXPECT_EQ(sinfo({"-h", "-t", "mix", "-p", "ml", "-o", "%N"}, true), "gpu[1-2]\n");
  EXPECT_EQ(sinfo({"-t", "drain", "-p", "ml"}, true),
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "ml           up   infinite      0    n/a \n");
}

TEST(Sinfo, TellsOfGpusThatAreOutBesideTheNodes) {
  wire::NodesReply reply = sample_nodes(false);
  reply.mutable_nodes(2)->add_gpus_out("GPU 1: hot [root@now]");
  reply.mutable_nodes(2)->add_gpus_out("GPU 3: Xid 79");
  reply.mutable_nodes(7)->add_gpus_out("GPU 0: Xid 79");
  const auto lines = [&](std::vector<std::string> words) {
    const Result<SinfoOptions> options = parse_sinfo(words, {});
    return reasons_beside(options.value(), reply);
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines({"-R"}),
            (Lines{"gpu1: GPU 1: hot [root@now]", "gpu1: GPU 3: Xid 79", "gpu6: GPU 0: Xid 79"}));
  EXPECT_EQ(lines({"-R", "-n", "gpu6"}), Lines{"gpu6: GPU 0: Xid 79"});
  EXPECT_EQ(lines({"-R", "-p", "closed"}), Lines{});
  reply.mutable_nodes(7)->set_clock_ahead_seconds(-3600);
  EXPECT_EQ(lines({"-R", "-n", "gpu6"}),
            (Lines{"gpu6: GPU 0: Xid 79", "gpu6: its clock is 3600 s behind"}));
  reply.mutable_nodes(7)->clear_clock_ahead_seconds();
  // Not of nodes that are out themselves.
  reply.mutable_nodes(2)->add_flags("DRAIN");
  EXPECT_EQ(lines({"-R"}), Lines{"gpu6: GPU 0: Xid 79"});
  reply.mutable_nodes(7)->set_state("DOWN");
  EXPECT_EQ(lines({"-R"}), Lines{});
}

TEST(Sinfo, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(sinfo({"-o", "%q"}), "refused: Invalid node format specification: q");
  EXPECT_EQ(sinfo({"-t", "sleepy"}), "refused: Bad state string: \"sleepy\"");
  EXPECT_EQ(sinfo({"-Q"}), "refused: invalid option -- 'Q'");
}

}  // namespace
}  // namespace berth::command
