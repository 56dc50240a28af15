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
  EXPECT_FALSE(*relay.add(part("a")));
  EXPECT_FALSE(*relay.add(part("x", 1, 2)));  // a fast node is one exchange ahead
  EXPECT_FALSE(*relay.add(part("b")));
  const auto whole = *relay.add(part("c"));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->data(), "abc");
  EXPECT_EQ(whole->nodes(), 3U);
  EXPECT_FALSE(*relay.add(part("y", 1, 2)));
  EXPECT_EQ((*relay.add(part("z", 1, 2)))->data(), "xyz");
}

TEST(Exchanges, ARelaysShareCountsAsItsNodes) {
  Exchanges root(5, true);
  EXPECT_FALSE(*root.add(part("abc", 3)));
  EXPECT_FALSE(*root.add(part("d")));
  EXPECT_EQ((*root.add(part("e")))->data(), "abcde");
}

TEST(Exchanges, AnExchangeOfSomeMeetsAtTheRoot) {
  Exchanges relay(3, false);
  ASSERT_TRUE(*relay.add(part("a", 1, 1, "0,4", 2)));  // goes on at once
  Exchanges root(5, true);
  EXPECT_FALSE(*root.add(part("a", 1, 1, "0,4", 2)));
  EXPECT_FALSE(*root.add(part("q", 1, 1, "1,2", 2)));  // of others
  EXPECT_EQ((*root.add(part("b", 1, 1, "0,4", 2)))->data(), "ab");
}

TEST(Exchanges, MoreThanAMessageHoldsIsAnError) {
  Exchanges root(3, true);
  const std::string much(30 << 20, 'x');
  EXPECT_FALSE(*root.add(part(much.c_str())));
  EXPECT_FALSE(*root.add(part(much.c_str())));
  const auto too_much = root.add(part(much.c_str()));
  ASSERT_FALSE(too_much);
  EXPECT_THAT(std::string(too_much.error().what()), ::testing::HasSubstr("more than 63 MiB"));
}

TEST(Exchanges, AQuestionToNobodyIsAnsweredWithNothing) {
  wire::Errand question;
  question.set_from("n1");
  question.set_to("n2");
  question.set_channel("pmix");
  question.set_number(7);
  question.set_data("3");
  const wire::Errand answer = unanswered(question);
  EXPECT_EQ(answer.to(), "n1");
  EXPECT_EQ(answer.number(), 7U);
  EXPECT_TRUE(answer.answer());
  EXPECT_EQ(answer.data(), "");
}

}  // namespace
}  // namespace berth::launch
