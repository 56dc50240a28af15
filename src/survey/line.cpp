// One line of a survey, both ways.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "survey/fields.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "text/shown.h"
#include "text/words.h"

namespace berth::survey {
namespace {

constexpr std::array<std::string_view, 6> kWays = {"board",       "pcie_switch", "pcie_switches",
                                                   "host_bridge", "numa_node",   "system"};
constexpr std::string_view kHex = "0123456789abcdef";

std::string encoded(std::string_view value) {
  std::string out;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '%' && c != '=') {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

std::optional<std::string> decoded(std::string_view value) {
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto byte = static_cast<unsigned char>(value[i]);
    if (byte <= 0x20 || byte >= 0x7f || byte == '=') return std::nullopt;
    if (byte != '%') {
      out += value[i];
      continue;
    }
    if (i + 2 >= value.size()) return std::nullopt;
    const std::size_t high = kHex.find(value[i + 1]);
    const std::size_t low = kHex.find(value[i + 2]);
    if (high == kHex.npos || low == kHex.npos) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

template <class T>
constexpr bool kMayBeMissing = false;
template <class T>
constexpr bool kMayBeMissing<std::optional<T>> = true;
template <>
constexpr bool kMayBeMissing<std::string> = true;
template <>
constexpr bool kMayBeMissing<Bits> = true;

bool take(std::string_view text, std::string& out) {
  auto value = decoded(text);
  if (!value || value->empty()) return false;
  out = std::move(*value);
  return true;
}
bool take(std::string_view text, Bits& out) {
  const auto set = text::parse_id_set(text);
  if (!set || set->empty()) return false;
  out = *set;
  return true;
}
bool take(std::string_view text, Way& out) {
  const auto at = std::ranges::find(kWays, text);
  if (at == kWays.end()) return false;
  out = static_cast<Way>(at - kWays.begin());
  return true;
}
template <class T>
  requires std::is_unsigned_v<T>
bool take(std::string_view text, T& out) {
  const auto number = text::parse_number(text, std::numeric_limits<T>::max());
  if (number) out = static_cast<T>(*number);
  return number.has_value();
}
template <class T>
bool take(std::string_view text, std::optional<T>& out) {
  return take(text, out.emplace());
}

std::string put(const std::string& value) {
  return encoded(value);
}
std::string put(const Bits& value) {
  return value.ranges();
}
std::string put(Way value) {
  return std::string(word_of(value));
}
template <class T>
  requires std::is_unsigned_v<T>
std::string put(T value) {
  return std::to_string(value);
}
template <class T>
std::string put(const std::optional<T>& value) {
  return value ? put(*value) : std::string();
}

struct Word {
  std::string_view key;
  std::string_view value;
  bool used = false;
};

std::unexpected<Error> bad(std::string_view line, std::string_view what) {
  return fail(Code::bad_value, fmt::format("\"{}\": {}", text::shown(line), what));
}

template <class Of>
Result<Line> read_as(std::string_view text, std::vector<Word>& words) {
  Of line;
  std::string wrong;
  each_field(line, static_cast<Of*>(nullptr), [&](std::string_view key, auto& value) {
    const auto word = std::ranges::find(words, key, &Word::key);
    if (word == words.end()) {
      if (!kMayBeMissing<std::remove_cvref_t<decltype(value)>> && wrong.empty()) {
        wrong = fmt::format("{}= is missing", key);
      }
      return;
    }
    word->used = true;
    if (!take(word->value, value) && wrong.empty()) {
      wrong = fmt::format("{}= has no meaning", text::shown(word->key));
    }
  });
  for (const Word& word : words) {
    if (!word.used && wrong.empty()) {
      wrong = fmt::format("{}= is not known, or there twice", text::shown(word.key));
    }
  }
  if (!wrong.empty()) return bad(text, wrong);
  return Line(std::move(line));
}

template <std::size_t I = 0>
Result<Line> read_named(std::string_view text, std::string_view name, std::vector<Word>& words) {
  if constexpr (I == std::variant_size_v<Line>) {
    return bad(text, "no such line is known");
  } else {
    using Of = std::variant_alternative_t<I, Line>;
    if (name == Named<Of>::word) return read_as<Of>(text, words);
    return read_named<I + 1>(text, name, words);
  }
}

}  // namespace

std::string_view word_of(Way way) {
  return kWays[static_cast<std::size_t>(way)];
}

Result<Line> read_line(std::string_view text) {
  if (text.size() > kMostLine) {
    return fail(Code::limit, fmt::format("a line of {} bytes; at most {}", text.size(), kMostLine));
  }
  const std::vector<std::string_view> parts = text::split(text, ' ');
  std::vector<Word> words;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals == std::string_view::npos || equals == 0) return bad(text, "not key=value");
    words.push_back({parts[i].substr(0, equals), parts[i].substr(equals + 1)});
  }
  if (words.size() > 16) return bad(text, "too many words");
  return read_named(text, parts.front(), words);
}

std::string write_line(const Line& line) {
  return std::visit(
      []<class Of>(const Of& of) {
        std::string out(Named<Of>::word);
        each_field(of, static_cast<Of*>(nullptr), [&](std::string_view key, const auto& value) {
          const std::string text = put(value);
          if (!text.empty()) out += fmt::format(" {}={}", key, text);
        });
        return out + '\n';
      },
      line);
}

}  // namespace berth::survey
