// docs/lint.md is what the table of rules says. BERTH_UPDATE=1 writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "lint/lint.h"

namespace berth::lint {
namespace {

TEST(Document, IsUpToDate) {
  const std::string path = std::string(BERTH_SOURCE_DIR) + "/docs/lint.md";
  if (std::getenv("BERTH_UPDATE") != nullptr) {
    std::ofstream(path) << document();
  }
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), document()) << "run BERTH_UPDATE=1 lint_test";
}

TEST(Document, RulesAreNumberedOnceAndSpeak) {
  std::string_view last;
  for (const Rule& rule : rules()) {
    EXPECT_LT(last, rule.code);
    last = rule.code;
    EXPECT_EQ(rule.code.size(), 4U) << rule.code;
    EXPECT_EQ(rule.code[0], 'B') << rule.code;
    EXPECT_FALSE(rule.title.empty()) << rule.code;
    EXPECT_FALSE(rule.title.ends_with('.')) << rule.code;
    EXPECT_TRUE(rule.explanation.ends_with('.')) << rule.code;
    EXPECT_EQ(find_rule(rule.code), &rule);
  }
  EXPECT_EQ(find_rule("B000"), nullptr);
}

}  // namespace
}  // namespace berth::lint
