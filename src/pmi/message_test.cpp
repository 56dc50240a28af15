// Framing, the two spellings of messages, and how keys travel.
#include "pmi/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pmi/framing.h"
#include "pmi/kvs.h"
#include "pmi/limits.h"

namespace berth::pmi {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::string shown(const Result<Message>& message) {
  if (!message) return "error";
  std::string out = message->command;
  for (const auto& [name, value] : message->fields) out += "|" + name + "=" + value;
  return out;
}

TEST(Message, Lines) {
  struct Row {
    const char* line;
    const char* read;
  };
  const Row rows[] = {
      {"cmd=init pmi_version=1 pmi_subversion=1", "init|pmi_version=1|pmi_subversion=1"},
      {"cmd=put kvsname=1.0 key=a value=b c=d", "put|kvsname=1.0|key=a|value=b c=d"},
      {"cmd=put key=a value=", "put|key=a|value="},
      {"cmd=publish_name service=my sea port=tag#0$x y",
       "publish_name|service=my sea|port=tag#0$x y"},
      {"cmd=get  key=a", "get|key=a"},
      {"cmd=abort exitcode=3 error_msg=a = b", "abort|exitcode=3|error_msg=a = b"},
      {"key=a cmd=get", "get|key=a"},
      {"cmd=", "error"},
      {"put key=a", "error"},
      {"key=a", "error"},
      {" ", "error"},
  };
  for (const Row& row : rows) EXPECT_EQ(shown(parse_line(row.line)), row.read) << row.line;
}

TEST(Message, Counted) {
  struct Row {
    const char* text;
    const char* read;
  };
  const Row rows[] = {
      {"cmd=kvs-get;key=a;", "kvs-get|key=a"},
      {"cmd=kvs-put;key=a;value=x;;y;", "kvs-put|key=a|value=x;y"},
      {"cmd=kvs-put;value=;;;;;", "kvs-put|value=;;"},
      {"cmd=kvs-put;value=;key=a;", "kvs-put|value=|key=a"},
      {"cmd=kvs-put;value=a=b", "kvs-put|value=a=b"},
      {"cmd=x;key", "error"},
      {"key=a;", "error"},
      {"", "error"},
  };
  for (const Row& row : rows) EXPECT_EQ(shown(parse_counted(row.text)), row.read) << row.text;
}

TEST(Message, Answers) {
  EXPECT_EQ(line_of("get_result", {{"rc", "0"}, {"value", "a\nb"}}),
            "cmd=get_result rc=0 value=a b\n");
  EXPECT_EQ(counted_of("x", {}, {}), "     6cmd=x;");
  EXPECT_EQ(counted_of("x", "7", {{"value", "a;b"}}), "    25cmd=x;thrid=7;value=a;;b;");
}

TEST(Inbox, LinesAndCountedMessagesCutAnywhere) {
  const std::string all = "cmd=init\n\n     5cmd=a10    0123456789last\n";
  for (std::size_t first = 0; first <= all.size(); ++first) {
    for (std::size_t second = first; second <= all.size(); ++second) {
      Inbox inbox;
      std::vector<std::string> got;
      for (const std::string& part :
           {all.substr(0, first), all.substr(first, second - first), all.substr(second)}) {
        inbox.append(part);
        for (;;) {
          const auto next = inbox.next();
          ASSERT_TRUE(next);
          if (!*next) break;
          got.emplace_back(**next);
          inbox.set_counted(got.size() >= 2 && got.size() < 4);
        }
      }
      EXPECT_THAT(got, ElementsAre("cmd=init", "", "cmd=a", "0123456789", "last"));
    }
  }
}

TEST(Inbox, NothingIsTooLongForIt) {
  Inbox lines;
  lines.append(std::string(kMaxMessage, 'x'));
  EXPECT_TRUE(lines.next());
  lines.append("x");
  EXPECT_FALSE(lines.next());
  for (const char* length : {"131073", "999999", "      ", "-00001", "12x   ", "1 2   "}) {
    Inbox counted;
    counted.set_counted(true);
    counted.append(length);
    EXPECT_FALSE(counted.next()) << length;
  }
}

TEST(Kvs, KeepsOrderAndCounts) {
  Kvs kvs;
  kvs.put("b", "1");
  kvs.put("a", "2");
  const std::size_t bytes = kvs.bytes();
  kvs.put("b", "longer");
  EXPECT_EQ(kvs.bytes(), bytes + 5);
  ASSERT_EQ(kvs.size(), 2U);
  EXPECT_THAT(kvs.at(0), Pair("b", "longer"));
  EXPECT_THAT(kvs.at(1), Pair("a", "2"));
  EXPECT_EQ(kvs.find("c"), nullptr);
}

TEST(Kvs, ContributionsOneAfterTheOtherAreOne) {
  Kvs one;
  one.put("a", std::string("\0;\n", 3));
  Kvs two;
  two.put("b", "");
  std::string bytes;
  encode(one, bytes);
  encode(two, bytes);
  const auto pairs = decode(bytes);
  ASSERT_TRUE(pairs);
  EXPECT_THAT(*pairs, ElementsAre(Pair("a", std::string("\0;\n", 3)), Pair("b", "")));
}

TEST(Kvs, DamageIsFound) {
  Kvs kvs;
  kvs.put("key", "value");
  std::string bytes;
  encode(kvs, bytes);
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) EXPECT_FALSE(decode(bytes.substr(0, cut)));
  EXPECT_FALSE(decode(std::string(8, '\0'))) << "a key without a letter";
  EXPECT_FALSE(decode(std::string(8, '\xff') + "x"));
  EXPECT_TRUE(decode(""));
}

}  // namespace
}  // namespace berth::pmi
