// What kvs.h promises. A pair travels as the lengths of key and value, 4 bytes each, the least
// significant first, then key and value.
#include "pmi/kvs.h"

#include <cstdint>
#include <optional>

#include "pmi/limits.h"

namespace berth::pmi {
namespace {

constexpr std::size_t kPerPair = 128;  // two strings, a node of the table, its place

void append_length(std::string& out, std::size_t length) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(length >> shift & 0xff);
}

std::optional<std::size_t> take_length(std::string_view& bytes, std::size_t most) {
  if (bytes.size() < 4) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    length |= std::size_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
  }
  bytes.remove_prefix(4);
  if (length > most) return std::nullopt;
  return length;
}

}  // namespace

void Kvs::put(std::string_view key, std::string_view value) {
  bytes_ = bytes_with(key, value);
  if (const auto found = values_.find(key); found != values_.end()) {
    found->second = value;
    return;
  }
  order_.push_back(&*values_.emplace(key, value).first);
}

const std::string* Kvs::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::size_t Kvs::bytes_with(std::string_view key, std::string_view value) const {
  const std::string* before = find(key);
  if (before != nullptr) return bytes_ - before->size() + value.size();
  return bytes_ + kPerPair + key.size() + value.size();
}

void encode(const Kvs& kvs, std::string& out) {
  for (std::size_t i = 0; i < kvs.size(); ++i) {
    const auto& [key, value] = kvs.at(i);
    append_length(out, key.size());
    append_length(out, value.size());
    out.append(key).append(value);
  }
}

Result<std::vector<std::pair<std::string_view, std::string_view>>> decode(std::string_view bytes) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  while (!bytes.empty()) {
    const auto key = take_length(bytes, kMaxKey);
    const auto value = key ? take_length(bytes, kMaxValue) : std::nullopt;
    if (!value || *key == 0 || bytes.size() < *key + *value) {
      return fail(Code::protocol, "the keys of a fence are damaged");
    }
    pairs.emplace_back(bytes.substr(0, *key), bytes.substr(*key, *value));
    bytes.remove_prefix(*key + *value);
  }
  return pairs;
}

}  // namespace berth::pmi
