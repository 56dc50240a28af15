// A short array of numbers whose length is known when it is made: the first N live inside the
// object. For values that are made once for each of thousands of nodes.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace berth {

template <class T, std::size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  explicit SmallVector(std::size_t size, T value = T{}) { assign(size, value); }

  void assign(std::size_t size, T value = T{}) {
    size_ = size;
    if (size > N) {
      more_.assign(size, value);
    } else {
      for (std::size_t i = 0; i < size; ++i) few_[i] = value;
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T* data() { return size_ > N ? more_.data() : few_.data(); }
  const T* data() const { return size_ > N ? more_.data() : few_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  std::array<T, N> few_{};
  std::vector<T> more_;
  std::size_t size_ = 0;
};

}  // namespace berth
