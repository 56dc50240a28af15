// Parameters: $x, $1, $@, ${x:-default}, ${a[0]}, ${#x}, ${x%.*}, ${x/a/b}, ${x:1:2}.
#include <algorithm>

#include "script/expand.h"
#include "script/glob.h"
#include "script/scan.h"
#include "text/number.h"

namespace berth::script {
namespace {

constexpr std::size_t kMaxPatternText = 4096;  // longer values are not matched against patterns

Parameter unknown() {
  return {{}, false, true, false};
}
Parameter unset() {
  return {{}, true, false, false};
}
Parameter of(std::string text) {
  return {{std::move(text)}, true, true, false};
}

/// Length of the parameter's name at the start of ${…}.
std::size_t parameter_length(std::string_view inside) {
  if (inside.empty()) return 0;
  if (const std::size_t n = name_length(inside); n > 0) return n;
  if (is_digit(inside[0])) {
    return std::min(inside.find_first_not_of("0123456789"), inside.size());
  }
  return std::string_view("@*#?-$!").find(inside[0]) != std::string_view::npos ? 1 : 0;
}

/// ${x#pattern} and friends. `longest` for ## and %%.
std::string without(const std::string& text, std::string_view pattern, bool front, bool longest) {
  const std::size_t n = text.size();
  for (std::size_t k = 0; k <= n; ++k) {
    const std::size_t length = longest ? n - k : k;
    const std::string_view part = front ? std::string_view(text).substr(0, length)
                                        : std::string_view(text).substr(n - length);
    if (!glob_match(pattern, part)) continue;
    return front ? text.substr(length) : text.substr(0, n - length);
  }
  return text;
}

/// ${x/from/to} for a literal `from`.
std::string replaced(std::string text, const std::string& from, const std::string& to, bool all) {
  if (from.empty()) return text;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    if (text.size() > kMaxPatternText * 4) break;
    text.replace(at, from.size(), to);
    if (!all) break;
  }
  return text;
}

char changed_case(char c, bool upper) {
  if (upper) return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

Parameter Expander::positional(std::string_view name) {
  if (name == "@" || name == "*") {
    return {arguments, true, !arguments.empty(), name == "@"};
  }
  if (name == "#") return of(std::to_string(arguments.size()));
  if (name == "!") return last_job ? of(*last_job) : unset();
  const auto number = text::parse_number(name, 1'000'000);
  if (!number || *number == 0) return unknown();  // $?, $$, $-, $0
  return *number <= arguments.size() ? of(arguments[*number - 1]) : unset();
}

Parameter Expander::named(std::string_view name) {
  if (name.empty()) return unknown();
  if (!is_name_start(name[0])) return positional(name);
  const std::string key(name);
  const Value* value = variables_.find(key);
  if (value != nullptr) {
    if (!value->known) return unknown();
    if (value->items.empty()) return unset();
    return of(value->text());
  }
  if (key == "RANDOM" || key == "SECONDS" || key == "PPID" || key == "UID" || key == "EUID" ||
      key == "PWD" || key == "LINENO" || key == "BASH_SOURCE" || key == "EPOCHSECONDS" ||
      unset_is_unknown) {
    return unknown();
  }
  return unset();
}

Parameter Expander::subscripted(const std::string& name, std::string_view subscript, int line) {
  const Value* value = variables_.find(name);
  if (value == nullptr) return unset_is_unknown ? unknown() : unset();
  if (!value->known) return unknown();
  if (subscript == "@" || subscript == "*") {
    return {value->items, true, !value->items.empty(), subscript == "@"};
  }
  auto index = arithmetic(subscript, line);
  value = variables_.find(name);  // the subscript may have assigned
  if (!index || value == nullptr) return unknown();
  const auto size = static_cast<std::int64_t>(value->items.size());
  if (*index < 0) index = *index + size;
  if (*index < 0 || *index >= size) return unset();
  return of(value->items[static_cast<std::size_t>(*index)]);
}

Parameter Expander::braced(std::string_view inside, int line) {
  if (inside.empty()) return unknown();
  const bool length =
      inside[0] == '#' && inside.size() > 1 && parameter_length(inside.substr(1)) > 0;
  const bool indirect = inside[0] == '!' && inside.size() > 1 && is_name_start(inside[1]);
  if (length || indirect) inside.remove_prefix(1);
  const std::size_t n = parameter_length(inside);
  if (n == 0) return unknown();
  const std::string name(inside.substr(0, n));
  inside.remove_prefix(n);

  Parameter value;
  if (inside.starts_with('[') && is_name_start(name[0])) {
    const std::size_t close = inside.find(']');
    if (close == std::string_view::npos) return unknown();
    value = subscripted(name, inside.substr(1, close - 1), line);
    inside.remove_prefix(close + 1);
    if (indirect && value.known && value.list) {  // ${!a[@]}: the indices
      for (std::size_t i = 0; i < value.items.size(); ++i) value.items[i] = std::to_string(i);
      return value;
    }
  } else {
    value = named(name);
  }
  if (length) {
    if (!value.known || !inside.empty()) return unknown();
    const bool whole = value.list || name == "@" || name == "*";
    if (!value.set) return of("0");
    return of(std::to_string(whole ? value.items.size() : value.items.front().size()));
  }
  if (indirect) {
    if (!value.known || !value.set || value.items.size() != 1) return unknown();
    value = named(value.items.front());
  }
  if (inside.empty()) return value;
  if (std::string_view(":-=+?").find(inside[0]) != std::string_view::npos &&
      (inside[0] != ':' ||
       (inside.size() > 1 && std::string_view("-=+?").find(inside[1]) != std::string_view::npos))) {
    return alternative(std::move(value), name, inside, line);
  }
  return transformed(std::move(value), inside, line);
}

Parameter Expander::alternative(Parameter value, const std::string& name,
                                std::string_view operation, int line) {
  const bool empty_counts = operation[0] == ':';
  if (empty_counts) operation.remove_prefix(1);
  const char kind = operation[0];
  operation.remove_prefix(1);
  // After `source`, a variable that is not set here takes its default: the likeliest by far.
  const bool maybe_unset = !value.known && is_name_start(name[0]) &&
                           variables_.find(name) == nullptr && unset_is_unknown;
  if (!value.known && !maybe_unset) return kind == '+' ? unknown() : value;
  bool present = value.set && !maybe_unset;
  if (empty_counts && present && value.items.size() == 1 && value.items.front().empty()) {
    present = false;
  }
  if (kind == '?') return present ? value : unknown();
  if (kind == '+' ? !present : present) return kind == '+' ? unset() : value;
  const Field word = single(operation, line);
  if (kind == '=' && is_name_start(name[0])) {
    variables_.set(name, word.known ? Value::of(word.text) : Value::unknown());
  }
  return word.known ? of(word.text) : unknown();
}

std::string Expander::substring(const std::string& text, std::string_view range, bool& known,
                                int line) {
  const std::size_t colon = range.find(':');
  const auto offset = arithmetic(range.substr(0, colon), line);
  const auto size = static_cast<std::int64_t>(text.size());
  std::optional<std::int64_t> length = size;
  if (colon != std::string_view::npos) length = arithmetic(range.substr(colon + 1), line);
  if (!offset || !length) {
    known = false;
    return {};
  }
  const std::int64_t begin = *offset < 0
                                 ? std::max<std::int64_t>(0, size + std::max(*offset, -size))
                                 : std::min(*offset, size);
  std::int64_t end = 0;
  if (*length < 0) {
    end = std::max(begin, size + std::max(*length, -size));
  } else {
    end = begin + std::min(*length, size - begin);
  }
  return text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

Parameter Expander::transformed(Parameter value, std::string_view operation, int line) {
  if (!value.known) return value;
  const char kind = operation[0];
  const bool doubled = operation.size() > 1 && operation[1] == kind;
  std::string_view rest = operation.substr(doubled ? 2 : 1);
  if (std::string_view("#%/:^,").find(kind) == std::string_view::npos) return unknown();

  Field from;
  Field to;
  if (kind == '#' || kind == '%') {
    from = pattern(rest, line);
  } else if (kind == '/') {
    const std::size_t slash = rest.find('/');
    from = pattern(rest.substr(0, slash), line);
    if (slash != std::string_view::npos) to = single(rest.substr(slash + 1), line);
    if (has_glob(from.text) || from.text.find('\\') != std::string::npos) return unknown();
    if (from.text.starts_with('#') || from.text.starts_with('%')) return unknown();
  } else if (kind == ':' && value.list) {
    return unknown();
  }
  if (!from.known || !to.known) return unknown();
  for (std::string& item : value.items) {
    if (item.size() > kMaxPatternText || from.text.size() > 256) return unknown();
    if (!limits_.spend_work(item.size() * (from.text.size() + 1))) return unknown();
    if (kind == '#' || kind == '%') {
      if (!limits_.spend_work(item.size() * item.size())) return unknown();
      item = without(item, from.text, kind == '#', doubled);
    } else if (kind == '/') {
      item = replaced(std::move(item), from.text, to.text, doubled);
    } else if (kind == ':') {
      item = substring(item, rest, value.known, line);
    } else if (rest.empty()) {
      for (std::size_t i = 0; i < (doubled ? item.size() : std::min<std::size_t>(1, item.size()));
           ++i) {
        item[i] = changed_case(item[i], kind == '^');
      }
    } else {
      return unknown();
    }
  }
  return value;
}

}  // namespace berth::script
