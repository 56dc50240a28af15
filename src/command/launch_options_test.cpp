#include "command/launch_options.h"

#include <gtest/gtest.h>

namespace berth::command {
namespace {

using Kind = StreamChoice::Kind;

TEST(ReadStream, Modes) {
  EXPECT_EQ(read_stream(std::nullopt, 4).kind, Kind::client);
  EXPECT_EQ(read_stream("all", 4).kind, Kind::client);
  EXPECT_EQ(read_stream("none", 4).kind, Kind::none);
  EXPECT_EQ(read_stream("3", 4), (StreamChoice{Kind::task, "", 3}));
  EXPECT_EQ(read_stream("4", 4).kind, Kind::own_file) << "no such rank: a file named 4";
}

TEST(ReadStream, PatternsThatDifferByTaskAreFilesOfTheNode) {
  EXPECT_EQ(read_stream("o.%t", 2).kind, Kind::node_file);
  EXPECT_EQ(read_stream("o.%04n", 2).kind, Kind::node_file);
  EXPECT_EQ(read_stream("%j_%N", 2).kind, Kind::node_file);
  EXPECT_EQ(read_stream("o.%j.%s", 2).kind, Kind::own_file);
  EXPECT_EQ(read_stream("o.%%t", 2).kind, Kind::own_file);
  EXPECT_EQ(read_stream("o\\%t", 2).kind, Kind::own_file) << "a backslash turns patterns off";
}

}  // namespace
}  // namespace berth::command
