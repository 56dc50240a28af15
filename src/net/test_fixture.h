// A folder of its own for sockets and files of one test, and a loop that runs until something
// holds.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "net/loop.h"

namespace berth::net {

class LoopTest : public ::testing::Test {
 protected:
  LoopTest() {
    char name[] = "/tmp/berth-test-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~LoopTest() override { std::filesystem::remove_all(folder_); }

  /// Whether it held before a time that only a hang exceeds.
  template <class Condition>
  bool until(Condition&& holds) {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      if (Clock::now() > deadline) return false;
      loop.run_once(std::chrono::milliseconds(5));
    }
    return true;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  Loop loop;

 private:
  std::string folder_;
};

}  // namespace berth::net
