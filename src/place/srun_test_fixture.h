// A request as srun would make it of a line of options, for tests.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "request/parse.h"

namespace berth::place {

inline request::Request parse_srun(const std::string& options) {
  std::istringstream in(options + " true");
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  auto parsed = request::parse(request::Command::srun, words, "", {});
  EXPECT_TRUE(parsed) << options << ": " << (parsed ? "" : std::string(parsed.error().what()));
  return parsed ? parsed->components.front() : request::Request{};
}

}  // namespace berth::place
