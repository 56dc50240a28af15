// The line reader: comments, quotes, continuation, Include, and its bounds.
#include "conf/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace berth::conf {
namespace {

using Files = std::map<std::string, std::string, std::less<>>;

/// "file:line key=value|key=value" for each line, then "error …" for each error.
std::vector<std::string> read(Files files, std::string_view cluster = "") {
  const MemorySource source(std::move(files));
  Complaints complaints;
  std::vector<std::string> out;
  const bool found = read_lines(source, "a", cluster, complaints, [&](const Line& line) {
    std::string text;
    for (const Pair& pair : line.pairs) {
      text +=
          fmt::format("{}{} {}={}", text.empty() ? "" : "|", shown(pair.at), pair.key, pair.value);
    }
    out.push_back(text);
  });
  if (!found) out.push_back("no such file");
  if (complaints.failed()) {
    for (const Message& message : complaints.as_error().messages) out.push_back(message.text);
  }
  return out;
}

struct LineRow {
  const char* text;
  std::vector<std::string> lines;
};

TEST(Lines, ReadPairs) {
  const LineRow rows[] = {
      {"", {}},
      {"\n# nothing\n   \n", {}},
      {"A=1", {"a:1 A=1"}},
      {"A=1 B=2\n\nC=3", {"a:1 A=1|a:1 B=2", "a:3 C=3"}},
      {"  A=1\t \r\n", {"a:1 A=1"}},
      {"A=1 # B=2", {"a:1 A=1"}},
      {"A=1#2", {"a:1 A=1"}},
      {"A=1\\#2", {"a:1 A=1#2"}},
      {"A=\"b c\" D=e", {"a:1 A=b c|a:1 D=e"}},
      {"A=x\"b c\"y", {"a:1 A=xb cy"}},
      {"A=b=c", {"a:1 A=b=c"}},
      {"A= B=2", {"a:1 A=|a:1 B=2"}},
      {"A = 1", {"a:1 A=1"}},
      {"A=", {"a:1 A="}},
      {"A=1 \\\n B=2 \\\n C=3\nD=4", {"a:1 A=1|a:2 B=2|a:3 C=3", "a:4 D=4"}},
      {"A=1,\\\n2", {"a:1 A=1,2"}},
      {"A=1 \\", {"a:1 A=1"}},
      {"# comment \\\nA=1", {"a:2 A=1"}},
      {"word", {"a:1: expected Key=Value, found \"word\""}},
      {"A=1 word", {"a:1 A=1", "a:1: expected Key=Value, found \"word\""}},
      {"=1", {"a:1: expected Key=Value, found \"=1\""}},
      {"A=\"open", {"a:1: a quote is opened and not closed (a # inside a value is written \\#)"}},
  };
  for (const LineRow& row : rows) {
    EXPECT_THAT(read({{"a", row.text}}), testing::ElementsAreArray(row.lines)) << row.text;
  }
}

TEST(Lines, IncludeFiles) {
  EXPECT_THAT(read({{"a", "A=1\nInclude b\nC=3"}, {"b", "B=2"}}),
              testing::ElementsAre("a:1 A=1", "b:1 B=2", "a:3 C=3"));
  EXPECT_THAT(read({{"a", "ClusterName=x\ninclude conf.%c"}, {"conf.x", "B=2"}}),
              testing::ElementsAre("a:1 ClusterName=x", "conf.x:1 B=2"));
  EXPECT_THAT(read({{"a", "Include conf.%c"}, {"conf.x", "B=2"}}, "x"),
              testing::ElementsAre("conf.x:1 B=2"));
  EXPECT_THAT(read({{"a", "Include conf.%c"}}),
              testing::ElementsAre("a:1: %c in Include needs ClusterName= above it"));
  EXPECT_THAT(read({{"a", "Include b"}}), testing::ElementsAre("a:1: Include b: no such file"));
  EXPECT_THAT(read({{"a", "Include b c"}, {"b", "B=2"}}),
              testing::ElementsAre("b:1 B=2", "a:1: Include takes one file name"));
  EXPECT_THAT(read({{"a", "Include b\nInclude b"}, {"b", "B=2"}}),
              testing::ElementsAre("b:1 B=2", "b:1 B=2"));
  EXPECT_THAT(read({{"b", ""}}), testing::ElementsAre("no such file"));
}

TEST(Lines, StopAtHostileIncludes) {
  EXPECT_THAT(read({{"a", "Include a"}}), testing::ElementsAre("a:1: a includes itself"));
  EXPECT_THAT(read({{"a", "Include b"}, {"b", "\nInclude a"}}),
              testing::ElementsAre("b:2: a includes itself"));
  Files deep;
  for (int i = 0; i < 20; ++i)
    deep[i == 0 ? "a" : fmt::format("f{}", i)] = fmt::format("Include f{}", i + 1);
  EXPECT_THAT(read(deep), testing::ElementsAre("f10:1: Include is nested more than 10 deep"));
  // Every file includes the next one twice: 2^10 files.
  Files wide;
  for (int i = 0; i < 10; ++i) {
    wide[i == 0 ? "a" : fmt::format("f{}", i)] = fmt::format("Include f{0}\nInclude f{0}\n", i + 1);
  }
  wide["f10"] = "#" + std::string(100000, 'x');
  EXPECT_THAT(read(wide),
              testing::Each(testing::EndsWith("the configuration is larger than 64 MiB in all")));
}

TEST(Lines, RefuseBinaryAndHugeInput) {
  EXPECT_THAT(read({{"a", std::string("A=1\0B=2", 7)}}),
              testing::ElementsAre("a: not a text file: it holds a NUL byte"));
  EXPECT_THAT(read({{"a", std::string(kMaxFileBytes + 1, 'x')}}),
              testing::ElementsAre("a: a is larger than 32 MiB, which no configuration file is"));
  std::string pairs;
  for (int i = 0; i < 2000; ++i) pairs += "A=1 ";
  EXPECT_THAT(read({{"a", pairs}}).back(), "a:1: more than 1000 keys on one line");
  std::string bad;
  for (int i = 0; i < 100; ++i) bad += "word\n";
  EXPECT_EQ(read({{"a", bad}}).size(), Complaints::kMaxErrors + 1);
}

}  // namespace
}  // namespace berth::conf
