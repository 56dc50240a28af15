#include "base/printable.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

namespace berth {
namespace {

using std::string_view_literals::operator""sv;

struct Row {
  std::string_view text;
  std::string_view value;
  std::string_view lines = {};  // where it is not the same
};

constexpr Row kRows[] = {
    {"", ""},
    {"plain text, 100 %", "plain text, 100 %"},
    {R"(C:\new\x1b "quoted" 'so')", R"(C:\new\x1b "quoted" 'so')"},
    {"Größe 大きさ 🐢 é", "Größe 大きさ 🐢 é"},
    {"eight by", "eight by"},
    {"a\nb\tc", R"(a\nb\tc)", "a\nb\tc"},
    {"a\rb", R"(a\rb)"},
    {"\x1b[2J\x07", R"(\x1b[2J\x07)"},
    {"\x1b]0;title\x1b\\", R"(\x1b]0;title\x1b\)"},
    {"nul\0end"sv, R"(nul\x00end)"},
    {"\x7f", R"(\x7f)"},
    {"\x1f\x20\x7e", R"(\x1f ~)"},
    // C1: as UTF-8 and as the single bytes that some terminals obey.
    {"\xc2\x9b"
     "31m",
     R"(\u009b31m)"},
    {"\xc2\x80\xc2\x9f\xc2\xa0", "\\u0080\\u009f\xc2\xa0"},
    {"\x9b"
     "31m",
     R"(\x9b31m)"},
    // What turns text round, and what breaks lines.
    {"\xe2\x80\xae"
     "gnp.sh",
     R"(\u202egnp.sh)"},
    {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", R"(\u200e\u200f\u061c)"},
    {"\xe2\x81\xa6\xe2\x81\xa9", R"(\u2066\u2069)"},
    {"\xe2\x80\xa8\xe2\x80\xa9", R"(\u2028\u2029)"},
    {"\xef\xbb\xbf", R"(\ufeff)"},
    {"\xf3\xa0\x80\x81", R"(\U000e0001)"},
    // Joiners are a part of words and pictures.
    {"\xe2\x80\x8d", "\xe2\x80\x8d"},
    // Not UTF-8: too long, half a surrogate, too high, cut off, out of place.
    {"\xc0\xaf", R"(\xc0\xaf)"},
    {"\xe0\x80\x8a", R"(\xe0\x80\x8a)"},
    {"\xf0\x80\x80\x8a", R"(\xf0\x80\x80\x8a)"},
    {"\xed\xa0\x80", R"(\xed\xa0\x80)"},
    {"\xf4\x90\x80\x80", R"(\xf4\x90\x80\x80)"},
    {"\xff\xfe", R"(\xff\xfe)"},
    {"a\xe5\xa4", R"(a\xe5\xa4)"},
    {"\xe5"
     "abc",
     R"(\xe5abc)"},
    {"\xa4", R"(\xa4)"},
    {"long enough for the quick way\x1b[m and \x7f after it \xff\n",
     R"(long enough for the quick way\x1b[m and \x7f after it \xff\n)",
     "long enough for the quick way\\x1b[m and \\x7f after it \\xff\n"},
};

TEST(Printable, EveryKindOfCharacter) {
  for (const Row& row : kRows) {
    EXPECT_EQ(printable(row.text), row.value);
    EXPECT_EQ(printable(row.text, Layout::lines), row.lines.empty() ? row.value : row.lines);
  }
}

TEST(Printable, OnlyWhatWasAppended) {
  std::string text = "\x1b[1m";
  text += "\x1b[2J";
  make_printable(text, 4);
  EXPECT_EQ(text, "\x1b[1m\\x1b[2J");
}

TEST(CutText, KeepsWholeCharacters) {
  EXPECT_EQ(cut_text("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_text("abcdefg", 6), "abc...");
  EXPECT_EQ(cut_text("ab\xc3\xa9"
                     "defg",
                     6),
            "ab...");
  EXPECT_EQ(cut_text("a\xc3\xa9"
                     "defgh",
                     6),
            "a\xc3\xa9...");
  EXPECT_EQ(cut_text("\xe2\x82\xac\xe2\x82\xac", 5), "...");
  EXPECT_EQ(cut_text(std::string(10, '\x80'), 9).size(), 6U) << "no text at all";
  EXPECT_EQ(cut_text("abcd", 3), "...");
}

TEST(Printable, EachByteAtEachPlaceOfAWord) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (std::size_t place = 0; place < 17; ++place) {
      std::string text(17, 'x');
      text[place] = static_cast<char>(byte);
      const bool stays = byte >= 0x20 && byte < 0x7f;
      EXPECT_EQ(printable(text) == text, stays) << byte << " at " << place;
    }
  }
}

/// Whatever goes in: what comes out has nothing to escape, so that escaping twice is harmless.
TEST(Printable, ComesToAnEnd) {
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 40, 0);
    for (char& c : text) {
      c = random() % 3 == 0 ? "\xe2\x80\xae\x1b\n\xc2\x9b\xf0\x9f"[random() % 8]
                            : static_cast<char>(random());
    }
    for (const Layout layout : {Layout::value, Layout::lines}) {
      const std::string once = printable(text, layout);
      EXPECT_EQ(printable(once, layout), once);
      for (const char c : once) {
        const auto byte = static_cast<unsigned char>(c);
        const bool fine = (byte >= 0x20 && byte != 0x7f) ||
                          (layout == Layout::lines && (byte == '\n' || byte == '\t'));
        EXPECT_TRUE(fine) << int{byte};
      }
    }
  }
}

}  // namespace
}  // namespace berth
