// Host lists: brackets, widths, repeats, compression in both orders, bounds.
#include "text/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::text {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

TEST(Hostlist, Expands) {
  struct Row {
    const char* list;
    const char* names;
  };
  const Row rows[] = {
      {"gpu[1-3,5],cpu1", "gpu1 gpu2 gpu3 gpu5 cpu1"},
      {"n[08-11]", "n08 n09 n10 n11"},
      {"n[8-11]", "n8 n9 n10 n11"},
      {"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
      {"rack[0-1]_n[01-02]", "rack0_n01 rack0_n02 rack1_n01 rack1_n02"},
      {"n[1-2]-ib", "n1-ib n2-ib"},
      {"node*2", "node node"},
      {"n[1-2]*2", "n1 n1 n2 n2"},
      {"b,a,b", "b a b"},
      {"a,,b,", "a b"},
      {"a b\nc", "a b c"},
      {"[1-2]", "1 2"},
      {"", ""},
      {"n[3,1-2]", "n3 n1 n2"},
      {"n[000000000000000007]", "n000000000000000007"},
  };
  for (const Row& row : rows) {
    const auto got = expand_hostlist(row.list);
    ASSERT_TRUE(got) << row.list << ": " << got.error().what();
    EXPECT_EQ(joined(*got), row.names) << row.list;
  }
}

TEST(Hostlist, RefusesAndNamesThePart) {
  struct Row {
    const char* list;
    const char* text;
  };
  const Row rows[] = {
      {"n[1-3", "Invalid host list \"n[1-3\": '[' without ']'"},
      {"n1-3]", "Invalid host list \"n1-3]\": ']' without '['"},
      {"a,n[]", "Invalid host list \"n[]\": \"\" is not a number or a range like 1-4"},
      {"n[a-b]", "Invalid host list \"n[a-b]\": \"a-b\" is not a number or a range like 1-4"},
      {"n[3-1]", "Invalid host list \"n[3-1]\": the range 3-1 runs backwards"},
      {"n[1,]", "Invalid host list \"n[1,]\": \"\" is not a number or a range like 1-4"},
      {"n*0", "Invalid host list \"n*0\": after '*' comes how often, like gpu1*2"},
      {"n*2[1-2]", "Invalid host list \"n*2[1-2]\": '*' must come last"},
      {"*3", "Invalid host list \"*3\": a name is missing"},
      {"n[[1]]", "Invalid host list \"n[[1]]\": \"[1\" is not a number or a range like 1-4"},
      {"n[1-99999999999]", "The host list names more than 65536 nodes"},
      {"n[1-300][1-300]", "The host list names more than 65536 nodes"},
      {"n*99999999999", "The host list names more than 65536 nodes"},
      {"n[1-40000],m[1-40000]", "The host list names more than 65536 nodes"},
      {"a\x01z", "Invalid host list \"a\\x01z\": a control character is no part of a name"},
      {"n[9999999999999999999]",
       "Invalid host list \"n[9999999999999999999]\": \"9999999999999999999\" is not a number or a "
       "range like 1-4"},
  };
  for (const Row& row : rows) {
    const auto got = expand_hostlist(row.list);
    ASSERT_FALSE(got) << row.list;
    EXPECT_EQ(got.error().what(), row.text);
  }
  EXPECT_TRUE(expand_hostlist("n[1-65536]"));
  EXPECT_FALSE(expand_hostlist(std::string(300, 'n')));
}

TEST(Hostlist, Compresses) {
  struct Row {
    std::vector<std::string> names;
    const char* sorted;
    const char* in_order;
  };
  const Row rows[] = {
      {{"gpu3", "gpu1", "gpu2", "cpu2"}, "cpu2,gpu[1-3]", "gpu[3,1-2],cpu2"},
      {{"gpu2", "gpu1", "n08", "n09"}, "gpu[1-2],n[08-09]", "gpu[2,1],n[08-09]"},
      {{"n9", "n10", "n11"}, "n[9-11]", "n[9-11]"},
      {{"n09", "n10"}, "n[09-10]", "n[09-10]"},
      {{"n1", "n01"}, "n[01,1]", "n[1,01]"},
      {{"a", "a"}, "a", "a,a"},
      {{"n1", "n1", "n2"}, "n[1-2]", "n[1,1-2]"},
      {{"r1n1", "r1n2", "r2n1"}, "r1n[1-2],r2n1", "r1n[1-2],r2n1"},
      {{"n1", "n3", "n5"}, "n[1,3,5]", "n[1,3,5]"},
      {{"n1-ib", "n2-ib"}, "n1-ib,n2-ib", "n1-ib,n2-ib"},
      {{}, "", ""},
      {{"login"}, "login", "login"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(compress_hostlist(row.names), row.sorted);
    EXPECT_EQ(compress_hostlist_unsorted(row.names), row.in_order);
  }
}

}  // namespace
}  // namespace berth::text
