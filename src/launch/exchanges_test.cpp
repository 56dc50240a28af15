// Contributions meet by channel, group and number; a relay waits for its own nodes, the root for
// all who take part.
#include "launch/exchanges.h"

#include <gmock/gmock.h>

namespace berth::launch {
namespace {

wire::Exchange part(const char* data, std::uint32_t nodes = 1, std::uint64_t number = 1,
                    const char* group = "", std::uint32_t wanted = 0) {
  wire::Exchange out;
  out.set_channel("pmi");
  out.set_group(group);
  out.set_number(number);
  out.set_nodes(nodes);
  out.set_wanted(wanted);
  out.set_data(data);
  return out;
}

TEST(Exchanges, GoOnOnceAllHaveContributed) {
  Exchanges relay(3, false);
  EXPECT_FALSE(relay.add(part("a")));
  EXPECT_FALSE(relay.add(part("x", 1, 2)));  // a fast node is one exchange ahead
  EXPECT_FALSE(relay.add(part("b")));
  const auto whole = relay.add(part("c"));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->data(), "abc");
  EXPECT_EQ(whole->nodes(), 3U);
  EXPECT_FALSE(relay.add(part("y", 1, 2)));
  EXPECT_EQ(relay.add(part("z", 1, 2))->data(), "xyz");
}

TEST(Exchanges, ARelaysShareCountsAsItsNodes) {
  Exchanges root(5, true);
  EXPECT_FALSE(root.add(part("abc", 3)));
  EXPECT_FALSE(root.add(part("d")));
  EXPECT_EQ(root.add(part("e"))->data(), "abcde");
}

TEST(Exchanges, AnExchangeOfSomeMeetsAtTheRoot) {
  Exchanges relay(3, false);
  ASSERT_TRUE(relay.add(part("a", 1, 1, "0,4", 2)));  // goes on at once
  Exchanges root(5, true);
  EXPECT_FALSE(root.add(part("a", 1, 1, "0,4", 2)));
  EXPECT_FALSE(root.add(part("q", 1, 1, "1,2", 2)));  // of others
  EXPECT_EQ(root.add(part("b", 1, 1, "0,4", 2))->data(), "ab");
}

}  // namespace
}  // namespace berth::launch
