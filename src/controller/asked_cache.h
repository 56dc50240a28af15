// What was submitted lately: a job that starts at once need not be read from the store again.
// Small: a job that waits is read from the store when it starts.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "wire/submit.pb.h"

namespace berth::controller {

class AskedCache {
 public:
  explicit AskedCache(std::size_t most_bytes = std::size_t{512} << 10) : most_(most_bytes) {}
  void put(std::uint64_t key, std::shared_ptr<const wire::Asked> asked, std::size_t bytes);
  [[nodiscard]] std::shared_ptr<const wire::Asked> find(std::uint64_t key);

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::shared_ptr<const wire::Asked> asked;
    std::size_t bytes = 0;
  };
  std::size_t most_;
  std::size_t held_ = 0;
  std::list<Entry> order_;  // least recently used last
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> entries_;
};

}  // namespace berth::controller
