// A space of keys and values, and how one travels: contributions of several nodes, one after the
// other in any order, are the contribution of all of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::pmi {

class Kvs {
 public:
  Kvs() = default;
  Kvs(Kvs&&) = default;
  Kvs& operator=(Kvs&&) = default;
  Kvs(const Kvs&) = delete;  // order_ points into values_
  Kvs& operator=(const Kvs&) = delete;
  ~Kvs() = default;

  /// A key that is there already gets the new value, and keeps its place.
  void put(std::string_view key, std::string_view value);
  /// nullptr: not there.
  [[nodiscard]] const std::string* find(std::string_view key) const;
  /// Pairs in the order in which their keys came first.
  [[nodiscard]] std::size_t size() const { return order_.size(); }
  [[nodiscard]] const std::pair<const std::string, std::string>& at(std::size_t place) const {
    return *order_[place];
  }

  /// Memory that it stands for, about.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// What bytes() would be after that put.
  [[nodiscard]] std::size_t bytes_with(std::string_view key, std::string_view value) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> values_;
  std::vector<const std::pair<const std::string, std::string>*> order_;
  std::size_t bytes_ = 0;
};

/// Appends all pairs.
void encode(const Kvs& kvs, std::string& out);
/// The pairs of one or more contributions; they point into `bytes`.
Result<std::vector<std::pair<std::string_view, std::string_view>>> decode(std::string_view bytes);

}  // namespace berth::pmi
