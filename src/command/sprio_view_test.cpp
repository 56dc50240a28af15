// sprio: the columns as recorded and as weights ask for them.
#include "command/sprio_view.h"

#include <gtest/gtest.h>

namespace berth::command {
namespace {

wire::JobPriority job(std::uint32_t id, const std::string& partition, std::uint32_t priority) {
  wire::JobPriority out;
  out.set_id(id);
  out.set_partition(partition);
  out.set_user("alice");
  out.set_priority(priority);
  return out;
}

std::string shown(const wire::PrioritiesReply& reply, std::vector<std::string> words) {
  const auto options = parse_sprio(words);
  if (!options) return std::string(options.error().what());
  const auto text = sprio_text(*options, reply);
  return text ? *text : std::string(text.error().what());
}

TEST(Sprio, AsRecorded) {
  wire::PrioritiesReply reply;
  reply.mutable_weights()->set_site(1);
  *reply.add_jobs() = job(20781, "gpu_partition", 1);
  EXPECT_EQ(shown(reply, {}),
            "          JOBID PARTITION   PRIORITY       SITE\n"
            "          20781 gpu_parti          1          0\n");
}

wire::PrioritiesReply weighted() {
  wire::PrioritiesReply reply;
  reply.set_cluster_name("c");
  reply.mutable_weights()->set_site(1);
  reply.mutable_weights()->set_age(1000);
  reply.mutable_weights()->set_partition(500);
  reply.add_tres("cpu");
  reply.add_tres("gres/gpu");
  reply.mutable_weights()->add_tres(100);
  reply.mutable_weights()->add_tres(2000);
  wire::JobPriority one = job(7, "ml", 1350);
  one.set_nice(50);
  one.mutable_factors()->set_age(0.9);
  one.mutable_factors()->set_partition(1);
  one.mutable_factors()->add_tres(0);
  one.mutable_factors()->add_tres(0.25);
  *reply.add_jobs() = one;
  wire::JobPriority other = job(8, "debug", 2000);
  other.mutable_factors()->add_tres(0.5);
  other.mutable_factors()->add_tres(0);
  *reply.add_jobs() = other;
  return reply;
}

TEST(Sprio, HasAColumnForEachWeight) {
  EXPECT_EQ(
      shown(weighted(), {}),
      "          JOBID PARTITION   PRIORITY       SITE        AGE  PARTITION TRES                \n"
      "              7 ml              1350          0        900        500 gres/gpu=500        \n"
      "              8 debug           2000          0          0          0 cpu=50              "
      "\n");
  EXPECT_EQ(shown(weighted(), {"-w", "-h"}),
            "        Weights                               1       1000        500 "
            "cpu=100,gres/gpu=200\n");
  EXPECT_EQ(shown(weighted(), {"-n", "-h", "-o", "%i %a %t"}),
            "7 0.9000000 gres/gpu=0.2500000\n"
            "8 0.0000000 cpu=0.5000000\n");
}

TEST(Sprio, LongNamesAllFactors) {
  const std::string text = shown(weighted(), {"-l"});
  EXPECT_EQ(
      text.substr(0, text.find('\n')),
      "          JOBID PARTITION     USER   PRIORITY       SITE        AGE      ASSOC  FAIRSHARE "
      "   JOBSIZE  PARTITION        QOS        NICE TRES                ");
}

TEST(Sprio, SortsAndRefuses) {
  EXPECT_EQ(shown(weighted(), {"-h", "-S", "-Y", "-o", "%i"}), "8\n7\n");
  EXPECT_EQ(shown(weighted(), {"-h", "--sort=a", "-o", "%i:%N"}), "8:0\n7:50\n");
  EXPECT_NE(shown(weighted(), {"-o", "%z"}).find("Invalid job format specification: z"),
            std::string::npos);
  EXPECT_NE(shown(weighted(), {"--federation"}).find("no federation"), std::string::npos);
  EXPECT_NE(shown(weighted(), {"-j", "x"}).find("Invalid job id: x"), std::string::npos);
}

TEST(Sprio, AsksForWhatIsNamed) {
  const auto options =
      parse_sprio(std::vector<std::string>{"-j", "5,6", "-u", "alice,bob", "-pml"});
  ASSERT_TRUE(options);
  const wire::ListPriorities ask = sprio_request(*options);
  EXPECT_EQ(ask.ids_size(), 2);
  EXPECT_EQ(ask.users(1), "bob");
  EXPECT_EQ(ask.partitions(0), "ml");
}

}  // namespace
}  // namespace berth::command
