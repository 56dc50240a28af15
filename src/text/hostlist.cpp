// What hostlist.h promises.
#include "text/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/natural.h"
#include "text/number.h"
#include "text/shown.h"

namespace berth::text {
namespace {

constexpr std::size_t kMaxDigits = 18;  // a run of digits that always fits 64 bits
constexpr std::size_t kMaxGroups = 16;

std::unexpected<Error> invalid(std::string_view item, std::string_view why) {
  return fail(Code::invalid_node_name,
              fmt::format("Invalid host list \"{}\": {}", shown(item), why));
}

std::unexpected<Error> too_many() {
  return fail(Code::limit, fmt::format("The host list names more than {} nodes", kMaxHosts));
}

bool separator(char c) {
  return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// One number or a-b inside brackets.
struct Span {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::size_t width = 1;  // of the first number; zeros fill up to it
};

/// What the brackets of an item stand for, with the text before each.
struct Group {
  std::string prefix;
  std::vector<Span> spans;
};

Result<std::vector<Span>> parse_spans(std::string_view item, std::string_view inside) {
  std::vector<Span> spans;
  for (bool more = true; more;) {
    const std::size_t comma = inside.find(',');
    const std::string_view text = inside.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) inside.remove_prefix(comma + 1);

    const std::size_t dash = text.find('-');
    const std::string_view low = text.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : text.substr(dash + 1);
    const auto first = parse_number(low);
    const auto last = parse_number(high);
    if (!first || !last || low.size() > kMaxDigits || high.size() > kMaxDigits) {
      return invalid(item, fmt::format("\"{}\" is not a number or a range like 1-4", shown(text)));
    }
    if (*last < *first) {
      return invalid(item, fmt::format("the range {} runs backwards", shown(text)));
    }
    if (*last - *first >= kMaxHosts || spans.size() >= kMaxHosts) return too_many();
    spans.push_back({*first, *last, low.size()});
  }
  return spans;
}

std::string padded(std::uint64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

/// Appends all names of groups[at…] behind `name`; the last group runs fastest.
bool append_names(const std::vector<Group>& groups, const std::string& tail, std::size_t at,
                  const std::string& name, std::uint64_t times, std::vector<std::string>& out) {
  if (at == groups.size()) {
    if (times > kMaxHosts - out.size()) return false;
    out.insert(out.end(), times, name + tail);
    return true;
  }
  for (const Span& span : groups[at].spans) {
    for (std::uint64_t n = span.first; n <= span.last; ++n) {
      const std::string next = name + groups[at].prefix + padded(n, span.width);
      if (!append_names(groups, tail, at + 1, next, times, out)) return false;
    }
  }
  return true;
}

Result<std::uint64_t> take_repeat(std::string_view item, std::string& tail) {
  const std::size_t star = tail.find('*');
  if (star == std::string::npos) return 1;
  const auto times = parse_number(std::string_view(tail).substr(star + 1));
  if (!times || *times == 0) return invalid(item, "after '*' comes how often, like gpu1*2");
  tail.resize(star);
  return *times;
}

Result<void> expand_item(std::string_view item, std::vector<std::string>& out) {
  std::vector<Group> groups;
  std::string text;
  std::size_t length = 0;
  for (std::size_t i = 0; i < item.size(); ++i) {
    const char c = item[i];
    if (c == ']') return invalid(item, "']' without '['");
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return invalid(item, "a control character is no part of a name");
    }
    if (c != '[') {
      text += c;
      if (++length > kMaxHostName + 8) return invalid(item, "the name is too long");
      continue;
    }
    const std::size_t close = item.find(']', i);
    if (close == std::string_view::npos) return invalid(item, "'[' without ']'");
    if (text.find('*') != std::string::npos) return invalid(item, "'*' must come last");
    if (groups.size() == kMaxGroups) return invalid(item, "too many brackets");
    auto spans = parse_spans(item, item.substr(i + 1, close - i - 1));
    if (!spans) return pass(std::move(spans.error()));
    groups.push_back({std::move(text), std::move(*spans)});
    text.clear();
    i = close;
  }
  auto times = take_repeat(item, text);
  if (!times) return pass(std::move(times.error()));
  if (groups.empty() && text.empty()) return invalid(item, "a name is missing");
  const std::size_t before = out.size();
  if (*times > kMaxHosts || !append_names(groups, text, 0, {}, *times, out)) return too_many();
  const bool long_name =
      std::any_of(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
                  [](const std::string& name) { return name.size() > kMaxHostName; });
  if (long_name) return invalid(item, "the name is too long");
  return {};
}

/// Where the item that starts at `from` ends: the next separator outside brackets.
std::size_t item_end(std::string_view list, std::size_t from) {
  bool inside = false;
  for (; from < list.size(); ++from) {
    if (list[from] == '[') inside = true;
    if (list[from] == ']') inside = false;
    if (!inside && separator(list[from])) break;
  }
  return from;
}

/// A name cut into what comes before its last number, and that number as written.
struct Parts {
  std::string_view prefix;
  std::string_view digits;  // "" when the name ends in no (usable) number
};

Parts parts_of(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
  if (name.size() - at > kMaxDigits) return {name, {}};
  return {name.substr(0, at), name.substr(at)};
}

/// Joins neighbours that share their prefix: a run of numbers becomes lo-hi.
std::string compress_in_order(std::span<const std::string> names) {
  std::string out;
  for (std::size_t i = 0; i < names.size();) {
    const Parts head = parts_of(names[i]);
    std::string inside;
    bool several = false;
    std::size_t end = i;
    while (end < names.size() && !head.digits.empty()) {
      const Parts low = parts_of(names[end]);
      if (low.digits.empty() || low.prefix != head.prefix) break;
      std::uint64_t number = parse_number(low.digits).value_or(0);
      std::size_t next = end + 1;
      while (next < names.size() && parts_of(names[next]).prefix == head.prefix &&
             parts_of(names[next]).digits == padded(number + 1, low.digits.size())) {
        ++number;
        ++next;
      }
      several = several || end > i || next > end + 1;
      if (!inside.empty()) inside += ',';
      inside += low.digits;
      if (next > end + 1) inside += '-' + padded(number, low.digits.size());
      end = next;
    }
    if (!out.empty()) out += ',';
    if (several) {
      out.append(head.prefix).append("[").append(inside).append("]");
      i = end;
    } else {
      out += names[i++];
    }
  }
  return out;
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view list) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < list.size();) {
    if (separator(list[at])) {
      ++at;
      continue;
    }
    const std::size_t end = item_end(list, at);
    if (auto done = expand_item(list.substr(at, end - at), out); !done) {
      return pass(std::move(done.error()));
    }
    at = end;
  }
  return out;
}

std::string compress_hostlist(std::span<const std::string> names) {
  std::vector<std::string> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end(), natural_less);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return compress_in_order(sorted);
}

std::string compress_hostlist_unsorted(std::span<const std::string> names) {
  return compress_in_order(names);
}

}  // namespace berth::text
