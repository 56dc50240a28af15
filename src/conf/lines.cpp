// The line reader. One pass over each file; Include nests with a bound on depth and on total size.
#include "conf/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "text/words.h"

namespace berth::conf {
namespace {

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/// A logical line while it is put together, with where each physical line begins in it.
struct Joined {
  std::string text;
  std::vector<std::pair<std::size_t, int>> starts;

  [[nodiscard]] int line_at(std::size_t offset) const {
    const auto after =
        std::ranges::upper_bound(starts, offset, {}, &std::pair<std::size_t, int>::first);
    return std::prev(after)->second;
  }
};

/// The pairs of one logical line.
class PairParser {
 public:
  PairParser(const Joined& joined, const std::string& file, Complaints& complaints)
      : joined_(joined), file_(file), complaints_(complaints) {}

  /// The file named by "Include name", when this is such a line.
  std::optional<Located<std::string>> include() {
    skip_blanks();
    const std::size_t start = at_;
    const std::string word = plain_word();
    if (!text::equal_ignoring_case(word, "include") || at_ == joined_.text.size() ||
        !blank(joined_.text[at_])) {
      at_ = start;
      return std::nullopt;
    }
    skip_blanks();
    if (at_ < joined_.text.size() && joined_.text[at_] == '=') {
      at_ = start;
      return std::nullopt;
    }
    Located<std::string> name{{}, here()};
    if (auto value = this->value()) name.value = std::move(*value);
    skip_blanks();
    if (at_ < joined_.text.size()) complaints_.error(here(), "Include takes one file name");
    return name;
  }

  Line line() {
    Line out;
    for (skip_blanks(); at_ < joined_.text.size(); skip_blanks()) {
      Pair pair;
      pair.at = here();
      pair.key = plain_word();
      skip_blanks();
      if (pair.key.empty() || at_ == joined_.text.size() || joined_.text[at_] != '=') {
        complaints_.error(pair.at, fmt::format("expected Key=Value, found \"{}\"",
                                               shown(pair.key.empty() ? rest() : pair.key)));
        return out;
      }
      ++at_;
      skip_blanks_before_value();
      auto value = this->value();
      if (!value) return out;
      pair.value = std::move(*value);
      if (out.pairs.size() == kMaxPairsPerLine) {
        complaints_.error(pair.at, fmt::format("more than {} keys on one line", kMaxPairsPerLine));
        return out;
      }
      out.pairs.push_back(std::move(pair));
    }
    return out;
  }

 private:
  [[nodiscard]] Location here() const { return {file_, joined_.line_at(at_)}; }
  [[nodiscard]] std::string_view rest() const { return std::string_view(joined_.text).substr(at_); }
  void skip_blanks() {
    while (at_ < joined_.text.size() && blank(joined_.text[at_])) ++at_;
  }
  /// "Key = value" is taken as "Key=value", but "Key= Other=x" leaves Key empty.
  void skip_blanks_before_value() {
    std::size_t next = at_;
    while (next < joined_.text.size() && blank(joined_.text[next])) ++next;
    std::size_t end = next;
    while (end < joined_.text.size() && !blank(joined_.text[end]) && joined_.text[end] != '=')
      ++end;
    const bool is_key = end < joined_.text.size() && joined_.text[end] == '=';
    if (!is_key || next == at_) at_ = next;
  }
  std::string plain_word() {
    const std::size_t start = at_;
    while (at_ < joined_.text.size() && !blank(joined_.text[at_]) && joined_.text[at_] != '=')
      ++at_;
    return joined_.text.substr(start, at_ - start);
  }
  /// Up to the next blank outside quotes; nullopt (and a complaint) when a quote stays open.
  std::optional<std::string> value() {
    std::string out;
    const Location start = here();
    bool quoted = false;
    for (; at_ < joined_.text.size(); ++at_) {
      const char c = joined_.text[at_];
      if (c == '"') {
        quoted = !quoted;
      } else if (blank(c) && !quoted) {
        break;
      } else {
        out += c;
      }
    }
    if (quoted) {
      complaints_.error(start,
                        "a quote is opened and not closed (a # inside a value is written \\#)");
      return std::nullopt;
    }
    return out;
  }

  const Joined& joined_;
  const std::string& file_;
  Complaints& complaints_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  Reader(const FileSource& source, std::string_view cluster_name, Complaints& complaints,
         const std::function<void(const Line&)>& take)
      : source_(source), cluster_name_(cluster_name), complaints_(complaints), take_(take) {}

  /// False when there is no such file.
  bool file(const std::string& name, const Location& from) {
    auto text = source_.read(name);
    if (!text) {
      complaints_.error(from, text.error().what());
      return true;
    }
    if (!*text) return false;
    if (text->value().find('\0') != std::string::npos) {
      complaints_.error({name, 0}, "not a text file: it holds a NUL byte");
      return true;
    }
    total_ += text->value().size();
    if (total_ > kMaxTotalBytes) {
      complaints_.error(from, fmt::format("the configuration is larger than {} MiB in all",
                                          kMaxTotalBytes >> 20));
      return true;
    }
    open_.push_back(name);
    split_into_lines(name, text->value());
    open_.pop_back();
    return true;
  }

 private:
  void split_into_lines(const std::string& name, std::string_view text) {
    Joined joined;
    int number = 0;
    bool continues = false;
    while (!text.empty() && !done()) {
      const std::size_t end = text.find('\n');
      const std::string_view physical = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++number;
      if (!continues) joined = {};
      if (!joined.starts.empty() && joined.starts.back().first == joined.text.size()) {
        joined.starts.pop_back();  // the line before added nothing
      }
      joined.starts.emplace_back(joined.text.size(), number);
      continues = append(physical, joined.text);
      if (!continues) logical_line(name, joined);
    }
    if (continues && !done()) logical_line(name, joined);
  }

  /// Adds a physical line without its comment; true when it goes on in the next one.
  static bool append(std::string_view physical, std::string& out) {
    for (std::size_t i = 0; i < physical.size(); ++i) {
      const char c = physical[i];
      if (c == '\\' && i + 1 < physical.size() && physical[i + 1] == '#') {
        out += '#';
        ++i;
      } else if (c == '#') {
        return false;
      } else if (c == '\\' && text::trim(physical.substr(i + 1)).empty()) {
        return true;
      } else {
        out += c;
      }
    }
    return false;
  }

  void logical_line(const std::string& name, const Joined& joined) {
    if (text::trim(joined.text).empty()) return;
    PairParser parser(joined, name, complaints_);
    if (const auto included = parser.include()) {
      include(*included);
      return;
    }
    const Line line = parser.line();
    for (const Pair& pair : line.pairs) {
      if (text::equal_ignoring_case(pair.key, "ClusterName")) cluster_name_ = pair.value;
    }
    if (!line.pairs.empty()) take_(line);
  }

  void include(const Located<std::string>& wanted) {
    std::string name = wanted.value;
    if (name.empty()) {
      complaints_.error(wanted.at, "Include without a file name");
      return;
    }
    if (const std::size_t at = name.find("%c"); at != std::string::npos) {
      if (cluster_name_.empty()) {
        complaints_.error(wanted.at, "%c in Include needs ClusterName= above it");
        return;
      }
      name.replace(at, 2, cluster_name_);
    }
    if (std::ranges::find(open_, name) != open_.end()) {
      complaints_.error(wanted.at, fmt::format("{} includes itself", shown(name)));
      return;
    }
    if (open_.size() > static_cast<std::size_t>(kMaxIncludeDepth)) {
      complaints_.error(wanted.at,
                        fmt::format("Include is nested more than {} deep", kMaxIncludeDepth));
      return;
    }
    if (++included_ > kMaxIncludes) {
      complaints_.error(wanted.at, fmt::format("more than {} files are included", kMaxIncludes));
      stop_ = true;
      return;
    }
    if (!file(name, wanted.at)) {
      complaints_.error(wanted.at, fmt::format("Include {}: no such file", shown(name)));
    }
  }

  [[nodiscard]] bool done() const { return stop_ || complaints_.full(); }

  static constexpr int kMaxIncludes = 10000;

  const FileSource& source_;
  std::string cluster_name_;
  Complaints& complaints_;
  const std::function<void(const Line&)>& take_;
  std::vector<std::string> open_;
  std::size_t total_ = 0;
  int included_ = 0;
  bool stop_ = false;
};

}  // namespace

bool read_lines(const FileSource& source, std::string_view name, std::string_view cluster_name,
                Complaints& complaints, const std::function<void(const Line&)>& take) {
  Reader reader(source, cluster_name, complaints, take);
  const std::string file(name);
  return reader.file(file, {file, 0});
}

}  // namespace berth::conf
