#include "text/licenses.h"

#include <gtest/gtest.h>

namespace berth::text {
namespace {

TEST(Licenses, CountsByName) {
  const auto read = parse_licenses(" matlab:2,cad, matlab=1,");
  ASSERT_TRUE(read);
  EXPECT_EQ(license_text(*read), "cad:1,matlab:3");
  EXPECT_EQ(parse_licenses("")->size(), 0U);
}

TEST(Licenses, WhatIsNoCountIsNamed) {
  for (const char* text : {"matlab:x", "matlab:", "matlab:0", ":2", "matlab:-1"}) {
    const auto read = parse_licenses(std::string("cad,") + text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().what(), "Invalid license specification");
    EXPECT_NE(read.error().hint.find(text), std::string::npos) << read.error().hint;
  }
}

}  // namespace
}  // namespace berth::text
