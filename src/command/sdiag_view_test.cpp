#include "command/sdiag_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/show_samples_test_fixture.h"

namespace berth::command {
namespace {

wire::DiagnoseReply sample_figures() {
  wire::DiagnoseReply reply;
  const auto add = [&](const char* name, const char* value) {
    wire::Variable& figure = *reply.add_figures();
    figure.set_name(name);
    figure.set_value(value);
  };
  add("now", "1794731093");
  add("since", "1794729015");
  add("Server thread count:  ", "1");
  add("", "");
  add("Main schedule statistics (microseconds):", "");
  add("\tLast cycle:   ", "509");
  add("", "");
  add("Backfilling stats", "");
  add("\tLast cycle when: ", "@1794731089");
  add("\tLast cycle: ", "209");
  add("", "");
  add("Remote Procedure Call statistics by message type", "");
  add("\tPing                                    (   36) ",
      "count:2      ave_time:75     total_time:151");
  add("\tListJobs                                (   30) ",
      "count:15     ave_time:10     total_time:150");
  return reply;
}

TEST(Sdiag, PrintsFiguresWithTheLabelsThatExportersParse) {
  use_utc();
  EXPECT_EQ(sdiag_text({}, sample_figures()),
            "*******************************************************\n"
            "sdiag output at Sun Nov 15 08:24:53 2026 (1794731093)\n"
            "Data since      Sun Nov 15 07:50:15 2026 (1794729015)\n"
            "*******************************************************\n"
            "Server thread count:  1\n"
            "\n"
            "Main schedule statistics (microseconds):\n"
            "\tLast cycle:   509\n"
            "\n"
            "Backfilling stats\n"
            "\tLast cycle when: Sun Nov 15 08:24:49 2026 (1794731089)\n"
            "\tLast cycle: 209\n"
            "\n"
            "Remote Procedure Call statistics by message type\n"
            "\tListJobs                                (   30) count:15     ave_time:10     "
            "total_time:150\n"
            "\tPing                                    (   36) count:2      ave_time:75     "
            "total_time:151\n");
}

TEST(Sdiag, WritesJsonUnderSlurmsKeys) {
  const std::string json = sdiag_json(sample_figures(), {});
  EXPECT_THAT(json, testing::HasSubstr("\"schedule_cycle_last\": 509"));
  EXPECT_THAT(json, testing::HasSubstr("\"bf_cycle_last\": 209"));
  EXPECT_THAT(json, testing::HasSubstr("\"message_type\": \"ListJobs\""));
}

}  // namespace
}  // namespace berth::command
