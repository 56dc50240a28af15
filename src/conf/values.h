// Values of configuration keys, checked: a wrong one is an error that says what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conf/lines.h"
#include "text/duration.h"

namespace berth::conf {

/// The pair has this key; case does not matter.
bool is(const Pair& pair, std::string_view key);
/// YES/NO, TRUE/FALSE, 1/0.
std::optional<Located<bool>> boolean(const Pair& pair, Complaints& complaints);
/// A whole number of min … max.
std::optional<Located<std::uint32_t>> number(const Pair& pair, std::uint32_t min, std::uint32_t max,
                                             Complaints& complaints);
/// MiB, with K, M, G, T allowed.
std::optional<Located<std::uint64_t>> megabytes(const Pair& pair, Complaints& complaints);
/// As megabytes, but 0 and UNLIMITED mean no limit and give nullopt.
std::optional<Located<std::uint64_t>> memory_limit(const Pair& pair, Complaints& complaints);
/// A time limit in one of the forms of -t.
std::optional<Located<text::TimeLimit>> time_limit(const Pair& pair, Complaints& complaints);
/// One of `allowed`, in the spelling of the list; case does not matter.
std::optional<Located<std::string>> one_of(const Pair& pair,
                                           std::span<const std::string_view> allowed,
                                           Complaints& complaints);
/// Words between commas, each one of `allowed`, in the spelling of the list.
std::optional<Located<std::vector<std::string>>> some_of(const Pair& pair,
                                                         std::span<const std::string_view> allowed,
                                                         Complaints& complaints);
/// Words between commas, as written; empty ones are dropped.
Located<std::vector<std::string>> word_list(const Pair& pair);

/// Assigns when there is a value: a bad one leaves what was there.
template <class T>
void put(std::optional<T>& to, std::optional<T> value) {
  if (value) to = std::move(value);
}

}  // namespace berth::conf
