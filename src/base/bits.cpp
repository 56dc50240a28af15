#include "base/bits.h"

#include <algorithm>
#include <initializer_list>

namespace berth {

Bits Bits::range(std::size_t first, std::size_t last) {
  Bits bits;
  for (std::size_t i = first; i <= last && last != npos; ++i) bits.set(i);
  return bits;
}

Bits Bits::of(std::initializer_list<std::size_t> members) {
  Bits bits;
  for (std::size_t i : members) bits.set(i);
  return bits;
}

std::uint64_t& Bits::word_ref(std::size_t w) {
  if (w < kInline) return inline_[w];
  if (more_.size() <= w - kInline) more_.resize(w - kInline + 1);
  return more_[w - kInline];
}

void Bits::set(std::size_t i) {
  word_ref(i / 64) |= std::uint64_t{1} << (i % 64);
}

void Bits::reset(std::size_t i) {
  if (i / 64 < words()) word_ref(i / 64) &= ~(std::uint64_t{1} << (i % 64));
}

bool Bits::test(std::size_t i) const {
  return (word(i / 64) >> (i % 64)) & 1;
}

void Bits::clear() {
  inline_.fill(0);
  more_.clear();
}

std::size_t Bits::count() const {
  std::size_t n = 0;
  for (std::size_t w = 0; w < words(); ++w) n += static_cast<std::size_t>(std::popcount(word(w)));
  return n;
}

bool Bits::empty() const {
  for (std::size_t w = 0; w < words(); ++w) {
    if (word(w) != 0) return false;
  }
  return true;
}

std::size_t Bits::next(std::size_t from) const {
  for (std::size_t w = from / 64; w < words(); ++w) {
    std::uint64_t rest = word(w);
    if (w == from / 64) rest &= ~std::uint64_t{0} << (from % 64);
    if (rest != 0) return w * 64 + static_cast<std::size_t>(std::countr_zero(rest));
  }
  return npos;
}

std::size_t Bits::last() const {
  for (std::size_t w = words(); w-- > 0;) {
    if (word(w) != 0) return w * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word(w)));
  }
  return npos;
}

std::size_t Bits::count_in(std::size_t first, std::size_t last) const {
  if (first > last) return 0;
  std::size_t n = 0;
  for (std::size_t w = first / 64; w < words() && w <= last / 64; ++w) {
    std::uint64_t bits = word(w);
    if (w == first / 64) bits &= ~std::uint64_t{0} << (first % 64);
    if (w == last / 64 && last % 64 != 63) bits &= (std::uint64_t{1} << (last % 64 + 1)) - 1;
    n += static_cast<std::size_t>(std::popcount(bits));
  }
  return n;
}

bool Bits::intersects(const Bits& other) const {
  const std::size_t n = std::min(words(), other.words());
  for (std::size_t w = 0; w < n; ++w) {
    if ((word(w) & other.word(w)) != 0) return true;
  }
  return false;
}

bool Bits::contains(const Bits& other) const {
  for (std::size_t w = 0; w < other.words(); ++w) {
    if ((other.word(w) & ~word(w)) != 0) return false;
  }
  return true;
}

Bits& Bits::operator|=(const Bits& other) {
  for (std::size_t w = 0; w < other.words(); ++w) {
    if (other.word(w) != 0) word_ref(w) |= other.word(w);
  }
  return *this;
}

Bits& Bits::operator&=(const Bits& other) {
  for (std::size_t w = 0; w < words(); ++w) word_ref(w) &= other.word(w);
  return *this;
}

Bits& Bits::operator-=(const Bits& other) {
  for (std::size_t w = 0; w < words(); ++w) word_ref(w) &= ~other.word(w);
  return *this;
}

bool operator==(const Bits& a, const Bits& b) {
  const std::size_t n = std::max(a.words(), b.words());
  for (std::size_t w = 0; w < n; ++w) {
    if (a.word(w) != b.word(w)) return false;
  }
  return true;
}

std::vector<std::size_t> Bits::members() const {
  std::vector<std::size_t> out;
  out.reserve(count());
  each([&](std::size_t i) { out.push_back(i); });
  return out;
}

std::string Bits::ranges() const {
  std::string out;
  // Whole words at a time: an array may have a million elements.
  const auto last_of_run = [&](std::size_t first) {
    for (std::size_t w = first / 64; w < words(); ++w) {
      std::uint64_t missing = ~word(w);
      if (w == first / 64) missing &= ~std::uint64_t{0} << (first % 64);
      if (missing != 0) return w * 64 + static_cast<std::size_t>(std::countr_zero(missing)) - 1;
    }
    return words() * 64 - 1;
  };
  for (std::size_t first = next(); first != npos;) {
    const std::size_t last = last_of_run(first);
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last > first) out.append("-").append(std::to_string(last));
    first = next(last + 1);
  }
  return out;
}

std::string Bits::list() const {
  std::string out;
  each([&](std::size_t i) {
    if (!out.empty()) out += ',';
    out += std::to_string(i);
  });
  return out;
}

std::string Bits::hex_padded(std::size_t digits) const {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (std::size_t nibble = words() * 16; nibble-- > 0;) {
    const auto value = (word(nibble / 16) >> (nibble % 16 * 4)) & 0xF;
    if (value != 0 || !out.empty() || nibble < digits) out += kDigits[value];
  }
  if (out.size() < digits) out.insert(0, digits - out.size(), '0');
  return out;
}

std::string Bits::hex() const {
  std::string out = hex_padded(1);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c >= 'A' ? static_cast<char>(c - 'A' + 'a') : c; });
  return "0x" + out;
}

std::uint64_t Bits::hash() const {
  std::uint64_t h = 0x9E3779B97F4A7C15ULL;
  for (std::size_t w = 0; w < words(); ++w) {
    if (word(w) == 0) continue;
    h ^= (word(w) + w) * 0xBF58476D1CE4E5B9ULL;
    h = std::rotl(h, 27) * 0x94D049BB133111EBULL;
  }
  return h;
}

}  // namespace berth
