#include "auth/token.h"

#include <gtest/gtest.h>

#include "auth/random.h"

namespace berth::auth {
namespace {

TEST(Base64Url, ReadsOnlyWhatItWrites) {
  for (std::size_t size = 0; size < 70; ++size) {
    const std::string bytes = random_bytes(size);
    const std::string text = base64url(bytes);
    EXPECT_EQ(text.find_first_of("+/="), std::string::npos);
    EXPECT_EQ(from_base64url(text), bytes) << size;
  }
  for (const char* text : {"A", "AB==", "AB+/", "A B", "AB\n", "AR"}) {
    EXPECT_FALSE(from_base64url(text)) << text;
  }
}

TEST(JoinToken, SurvivesAsOneWord) {
  wire::JoinToken token;
  token.add_controllers("ctl:6817");
  token.set_fingerprint("00ff");
  token.set_id("id");
  token.set_secret("secret");
  const std::string text = join_token_text(token);
  EXPECT_EQ(text.find_first_of(" \t\n"), std::string::npos);
  const auto read = read_join_token(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->secret(), "secret");
  EXPECT_FALSE(read_join_token(text.substr(0, text.size() - 3)));
  EXPECT_FALSE(read_join_token(""));
  EXPECT_FALSE(read_join_token("berth-join-"));
}

TEST(UserToken, SpeaksForWhomItWasMadeUntilItEnds) {
  const std::string key = random_bytes(32);
  const std::string text =
      user_token({.uid = 1000, .gid = 100, .expires = 50, .generation = 3}, key);
  const auto claim = check_user_token(text, key, 50);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->uid, 1000U);
  EXPECT_EQ(claim->gid, 100U);
  EXPECT_EQ(claim->generation, 3U);
  EXPECT_FALSE(check_user_token(text, key, 51)) << "expired";
  EXPECT_FALSE(check_user_token(text, random_bytes(32), 0)) << "of another cluster";
}

TEST(UserToken, CannotBeChanged) {
  const std::string key = random_bytes(32);
  const std::string text = user_token({.uid = 1000, .gid = 100, .expires = 50}, key);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(check_user_token(changed, key, 0)) << i;
  }
  const std::string root = base64url("0:0:50");
  const std::string mac = text.substr(text.rfind('.'));
  EXPECT_FALSE(check_user_token("berth-user-" + root + mac, key, 0));
}

}  // namespace
}  // namespace berth::auth
