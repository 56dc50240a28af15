// CPU maps, masks and sets: repeats, hex, the offending character, bounds.
#include "text/cpumask.h"

#include <gtest/gtest.h>

namespace berth::text {
namespace {

std::string shown(const std::optional<std::vector<Bits>>& list) {
  if (!list) return "bad";
  std::string out;
  for (const Bits& set : *list) out += (out.empty() ? "" : " ") + set.hex();
  return out;
}

TEST(IdMap, ReadsListsWithRepeats) {
  EXPECT_EQ(shown(parse_id_map("0,2*3,5")), "0x1 0x4 0x4 0x4 0x20");
  EXPECT_EQ(shown(parse_id_map("0x3")), "0x8");
  EXPECT_EQ(shown(parse_id_map("7")), "0x80");
  for (const char* text : {"", ",", "1,", "1,,2", "*2", "1*", "1*0", "65536", "-1", "1*65537",
                           "99999999999999999999"}) {
    EXPECT_EQ(shown(parse_id_map(text)), "bad") << text;
  }
}

TEST(MaskList, ReadsHexWithOrWithoutPrefix) {
  EXPECT_EQ(shown(parse_mask_list("0x3,ff*2")), "0x3 0xff 0xff");
  EXPECT_EQ(shown(parse_mask_list("0XF0")), "0xf0");
  EXPECT_EQ(shown(parse_mask_list("0")), "0x0");
  for (const char* text : {"", "0x", "zz", "0x1,", "1*x"}) {
    EXPECT_EQ(shown(parse_mask_list(text)), "bad") << text;
  }
}

TEST(Lists, NameTheOffendingCharacter) {
  char c = 0;
  EXPECT_FALSE(parse_id_map("0,z", &c));
  EXPECT_EQ(c, 'z');
  EXPECT_FALSE(parse_mask_list("0x1g", &c));
  EXPECT_EQ(c, 'g');
  EXPECT_FALSE(parse_id_map("1*q", &c));
  EXPECT_EQ(c, 'q');
}

TEST(Lists, StaySmall) {
  const std::string wide(16384, 'f');
  EXPECT_TRUE(parse_mask_list(wide + "*256"));
  EXPECT_FALSE(parse_mask_list(wide + "*257"));
  EXPECT_FALSE(parse_mask_list('f' + wide));
  EXPECT_TRUE(parse_mask_list(std::string(100000, '0') + "1"));
  EXPECT_FALSE(parse_id_map("65535*65536"));
}

TEST(IdSet, ReadsRanges) {
  ASSERT_TRUE(parse_id_set("0-7,16"));
  EXPECT_EQ(parse_id_set("0-7,16")->ranges(), "0-7,16");
  EXPECT_EQ(parse_id_set("3")->ranges(), "3");
  for (const char* text : {"", "-", "1-", "-1", "3-1", "0-65536", "a", "1,,2", "0-99999999999"}) {
    EXPECT_FALSE(parse_id_set(text)) << text;
  }
}

}  // namespace
}  // namespace berth::text
