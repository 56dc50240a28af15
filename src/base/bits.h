// A set of small non-negative integers (core numbers, CPU ids, device indices). Grows on demand;
// up to 128 members live inside the object, so that placing on thousands of nodes allocates
// nothing.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace berth {

class Bits {
 public:
  Bits() = default;

  /// {first, first+1, … last}; empty when first > last.
  static Bits range(std::size_t first, std::size_t last);
  /// {0 … count-1}.
  static Bits first_n(std::size_t count) { return count == 0 ? Bits() : range(0, count - 1); }
  static Bits of(std::initializer_list<std::size_t> members);

  void set(std::size_t i);
  void reset(std::size_t i);
  [[nodiscard]] bool test(std::size_t i) const;
  void clear();

  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool any() const { return !empty(); }

  /// Smallest member >= from, or npos.
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  [[nodiscard]] std::size_t next(std::size_t from = 0) const;
  /// Largest member, or npos.
  [[nodiscard]] std::size_t last() const;
  /// How many members lie in [first, last].
  [[nodiscard]] std::size_t count_in(std::size_t first, std::size_t last) const;

  /// How many members of this are not in other.
  [[nodiscard]] std::size_t count_without(const Bits& other) const {
    std::size_t n = 0;
    for (std::size_t w = 0; w < words(); ++w) {
      n += static_cast<std::size_t>(std::popcount(word(w) & ~other.word(w)));
    }
    return n;
  }
  [[nodiscard]] bool intersects(const Bits& other) const;
  [[nodiscard]] bool contains(const Bits& other) const;  // other ⊆ this

  Bits& operator|=(const Bits& other);
  Bits& operator&=(const Bits& other);
  Bits& operator-=(const Bits& other);  // set difference
  friend Bits operator|(Bits a, const Bits& b) { return a |= b; }
  friend Bits operator&(Bits a, const Bits& b) { return a &= b; }
  friend Bits operator-(Bits a, const Bits& b) { return a -= b; }
  friend bool operator==(const Bits& a, const Bits& b);

  /// Calls fn(i) for each member in ascending order.
  template <class Fn>
  void each(Fn&& fn) const {
    for (std::size_t w = 0; w < words(); ++w) {
      for (std::uint64_t rest = word(w); rest != 0; rest &= rest - 1) {
        fn(w * 64 + static_cast<std::size_t>(std::countr_zero(rest)));
      }
    }
  }

  [[nodiscard]] std::vector<std::size_t> members() const;
  /// "0-3,8" ; "" when empty.
  [[nodiscard]] std::string ranges() const;
  /// "0,1,2" ; "" when empty.
  [[nodiscard]] std::string list() const;
  /// "0xf0f", lower case, no padding; "0x0" when empty.
  [[nodiscard]] std::string hex() const;
  /// Hex digits only, upper case, zero padded to at least `digits`.
  [[nodiscard]] std::string hex_padded(std::size_t digits) const;
  [[nodiscard]] std::uint64_t hash() const;

 private:
  static constexpr std::size_t kInline = 2;
  [[nodiscard]] std::size_t words() const { return kInline + more_.size(); }
  [[nodiscard]] std::uint64_t word(std::size_t w) const {
    if (w < kInline) return inline_[w];
    return w - kInline < more_.size() ? more_[w - kInline] : 0;
  }
  std::uint64_t& word_ref(std::size_t w);

  std::array<std::uint64_t, kInline> inline_{};
  std::vector<std::uint64_t> more_;
};

}  // namespace berth
