// Resource lists of --gres, --gpus, --tres-per-task and of slurm.conf's Gres=.
#include "text/tres.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace berth::text {
namespace {

/// "gres/gpu:a100×2" for each item, or "bad".
std::string shown(const Result<std::vector<TresItem>>& items) {
  if (!items) {
    EXPECT_EQ(items.error().code, Code::invalid_tres);
    EXPECT_EQ(items.error().what(), "Invalid Trackable RESource (TRES) specification");
    EXPECT_FALSE(items.error().hint.empty());
    return "bad";
  }
  std::string out;
  for (const TresItem& item : *items) {
    out += fmt::format("{}{}/{}:{}x{}{}{}", out.empty() ? "" : " ", item.kind, item.name, item.type,
                       item.negative ? "-" : "", item.count, item.no_consume ? "!" : "");
  }
  return out;
}

struct Row {
  const char* text;
  const char* items;
};

TEST(Gres, ReadsItems) {
  const Row rows[] = {
      {"gpu", "gres/gpu:x1"},
      {"gpu:2", "gres/gpu:x2"},
      {"gpu=2", "gres/gpu:x2"},
      {"gres/gpu=2", "gres/gpu:x2"},
      {"gres/gpu:a100:2", "gres/gpu:a100x2"},
      {"gpu:a100=2", "gres/gpu:a100x2"},
      {"gpu:a100", "gres/gpu:a100x1"},
      {"gpu:1g.5gb", "gres/gpu:1g.5gbx1"},
      {"gpu:0", "gres/gpu:x0"},
      {"gpu:-1", "gres/gpu:x-1"},
      {"gpu:-0", "gres/gpu:x0"},
      {"gpu:2k", "gres/gpu:x2048"},
      {"gpu:tesla:v100:1", "gres/gpu:tesla:v100x1"},
      {"gpu:a100:1,gpu:tesla_v100:1", "gres/gpu:a100x1 gres/gpu:tesla_v100x1"},
      {"gpu:1,,shard:3,", "gres/gpu:x1 gres/shard:x3"},
      {"gpu:1e99", "gres/gpu:1e99x1"},  // a type, by the grammar; no node will have it
      {"gpu:a100:two", "bad"},
      {"gpu:1:tesla:v100", "bad"},
      {"gpu:", "bad"},
      {"gpu=", "bad"},
      {"gpu=two", "bad"},
      {"gpu::2", "bad"},
      {":2", "bad"},
      {"", "bad"},
      {",", "bad"},
      {"gpu:99999999999999999999", "bad"},
      {"gpu:9999999999p", "bad"},
  };
  for (const Row& row : rows) {
    bool none = true;
    EXPECT_EQ(shown(parse_gres(row.text, none)), row.items) << row.text;
    EXPECT_FALSE(none) << row.text;
  }
  bool none = false;
  EXPECT_EQ(shown(parse_gres("none", none)), "");
  EXPECT_TRUE(none);
}

TEST(Gres, StaysBounded) {
  std::string list = "gpu";
  for (int i = 0; i < 2000; ++i) list += ",gpu";
  bool none = false;
  EXPECT_EQ(shown(parse_gres(list, none)), "bad");
  EXPECT_EQ(shown(parse_gres(std::string(1 << 20, 'g'), none)), "bad");
}

TEST(Gpus, ReadsTypeAndCount) {
  const Row rows[] = {
      {"4", "gres/gpu:x4"},
      {"a100:4", "gres/gpu:a100x4"},
      {"a100:1,v100:2", "gres/gpu:a100x1 gres/gpu:v100x2"},
      {"a100", "gres/gpu:a100x1"},
      {"-1", "gres/gpu:x-1"},
      {"0", "gres/gpu:x0"},
      {"foo:bar", "bad"},
      {"a100:", "bad"},
      {"", "bad"},
      {"a100:1:2:x", "bad"},
  };
  for (const Row& row : rows) EXPECT_EQ(shown(parse_gpus(row.text)), row.items) << row.text;
}

TEST(TresPerTask, ReadsKinds) {
  const Row rows[] = {
      {"gres/gpu=1", "gres/gpu:x1"},
      {"gres/gpu:1", "gres/gpu:x1"},
      {"gres/shard:1", "gres/shard:x1"},
      {"gres/gpu:a100=2", "gres/gpu:a100x2"},
      {"gres/gpu:a100:2", "gres/gpu:a100x2"},
      {"gres/gpu", "gres/gpu:x1"},
      {"cpu:4", "cpu/:x4"},
      {"cpu=4,gres/gpu=1", "cpu/:x4 gres/gpu:x1"},
      {"license/matlab=2", "license/matlab:x2"},
      {"gpu:1", "bad"},
      {"gres", "bad"},
      {"gres:gpu=1", "bad"},
      {"cpu", "bad"},
      {"cpu=", "bad"},
      {"cpu=-1", "bad"},
      {"cpu=a", "bad"},
      {"cpu/x=1", "bad"},
      {"mem=4G", "bad"},
      {"node=1", "bad"},
      {"gres/=1", "bad"},
      {"", "bad"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(shown(parse_tres_per_task(row.text)), row.items) << row.text;
}

TEST(NodeGres, ReadsSlurmConf) {
  const Row rows[] = {
      {"gpu:a100:4", "gres/gpu:a100x4"},
      {"gpu:8,shard:32", "gres/gpu:x8 gres/shard:x32"},
      {"gpu:tesla_v100:2,gpu:a100:2", "gres/gpu:tesla_v100x2 gres/gpu:a100x2"},
      {"bandwidth:lustre:no_consume:4G", "gres/bandwidth:lustrex4294967296!"},
      {"lic:no_consume:4", "gres/lic:x4!"},
      {"gpu:-1", "bad"},
      {"gpu:a100:x", "bad"},
      {"", "bad"},
  };
  for (const Row& row : rows) EXPECT_EQ(shown(parse_node_gres(row.text)), row.items) << row.text;
}

TEST(Tres, HintsShowWhatToWrite) {
  bool none = false;
  EXPECT_EQ(
      parse_gres("gpu:a100:two", none).error().hint,
      "in \"gpu:a100:two\", the count must be a number and come last: \"two\" is none; write, "
      "for example, gpu:2 or gpu:a100:2");
  EXPECT_EQ(parse_tres_per_task("gpu:1").error().hint,
            "\"gpu:1\" is not cpu, gres/… or license/…; for GPUs write gres/gpu=1");
}

}  // namespace
}  // namespace berth::text
