// `squeue --json` has the shape that clients read.
#include "command/squeue_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command/show_samples_test_fixture.h"

namespace berth::command {
namespace {

TEST(SqueueJson, HasTheShapeOfDataParser) {
  wire::JobsReply reply = sample_jobs();
  wire::NodeDetail& detail = *reply.mutable_jobs(0)->add_detail();
  detail.set_node("gpu1");
  detail.set_cpu_ids("0-3");
  detail.set_memory_mb(4096);
  detail.set_gres("gpu:a100:2(IDX:0-1)");
  reply.mutable_jobs(0)->set_name("a \"quoted\"/name\n");
  wire::NodesReply nodes;
  wire::NodeInfo& node = *nodes.add_nodes();
  node.set_name("gpu1");
  node.set_sockets(2);
  node.set_cores_per_socket(8);
  node.set_threads_per_core(1);
  Shown shown;
  shown.now = kSampleTime;
  shown.cluster = "oracle";
  const JsonMeta meta{"root", "root", {"squeue", "--json"}, "oracle"};
  const auto json = nlohmann::json::parse(squeue_json({}, reply, nodes, shown, Viewer{1001}, meta));

  ASSERT_EQ(json["jobs"].size(), 4U);
  const auto& job = json["jobs"][0];
  EXPECT_EQ(job["name"], "a \"quoted\"/name\n");
  EXPECT_EQ(job["job_state"], nlohmann::json::array({"RUNNING"}));
  EXPECT_EQ(job["time_limit"],
            (nlohmann::json{{"set", true}, {"infinite", false}, {"number", 10}}));
  EXPECT_EQ(json["jobs"][1]["time_limit"]["infinite"], true);
  EXPECT_EQ(json["jobs"][1]["job_resources"], nullptr);
  EXPECT_EQ(job["exit_code"]["status"], nlohmann::json::array({"SUCCESS"}));
  EXPECT_EQ(job["gres_detail"], nlohmann::json::array({"gpu:a100:2(IDX:0-1)"}));
  const auto& given = job["job_resources"]["nodes"]["allocation"][0];
  EXPECT_EQ(given["name"], "gpu1");
  EXPECT_EQ(given["cpus"]["used"], 4);
  EXPECT_EQ(given["memory"]["allocated"], 4096);
  EXPECT_EQ(given["sockets"][0]["cores"][3]["status"][0], "ALLOCATED");
  EXPECT_EQ(given["sockets"][0]["cores"][4]["status"][0], "UNALLOCATED");
  EXPECT_EQ(json["jobs"][2]["array_task_string"], "1-4%2");
  EXPECT_EQ(json["meta"]["slurm"]["version"]["major"], "26");
}

}  // namespace
}  // namespace berth::command
