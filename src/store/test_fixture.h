// A store in a folder of its own.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "store/store.h"

namespace berth::store {

class StoreTest : public ::testing::Test {
 protected:
  explicit StoreTest(const std::string& place = "/tmp") {
    std::string name = place + "/berth-test-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] const std::string& folder() const { return folder_; }
  Store open() {
    auto store = Store::open(folder_);
    EXPECT_TRUE(store) << (store ? "" : store.error().what());
    return std::move(*store);
  }
  static JobRow job(std::uint32_t id, const std::string& state, std::int64_t end = 0) {
    JobRow row;
    row.record.set_id(id);
    row.record.set_uid(1000);
    row.record.set_state(state);
    row.record.set_end_time(end);
    row.record.set_attempt(1);
    row.name = fmt::format("name{}", id);
    row.account = "acct";
    return row;
  }
  static std::vector<std::uint32_t> ids(const std::vector<JobRow>& rows) {
    std::vector<std::uint32_t> all;
    for (const JobRow& row : rows) all.push_back(row.record.id());
    return all;
  }

 private:
  std::string folder_;
};

}  // namespace berth::store
