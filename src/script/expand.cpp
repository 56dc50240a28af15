// Words into fields.
#include "script/expand.h"

#include "script/arithmetic.h"
#include "script/scan.h"

namespace berth::script {

/// Collects fields: quoted text goes to the current one, unquoted expansions are split at blanks.
class Expander::Builder {
 public:
  Builder(Limits& limits, bool split, bool escape)
      : limits_(limits), split_(split), escape_(escape) {}

  void literal(char c, bool quoted) {
    if (!limits_.spend_expansion(1)) return;
    if (quoted && escape_ && std::string_view("*?[\\").find(c) != std::string_view::npos) {
      current_.text += '\\';
    }
    if (!quoted && (c == '*' || c == '?' || c == '[')) current_.glob = true;
    current_.text += c;
    open_ = true;
  }

  void begin_quoted() { open_ = true; }

  void text(std::string_view s, bool quoted) {
    if (!limits_.spend_expansion(s.size())) return;
    if (quoted || !split_) {
      for (const char c : s) {
        if (quoted && escape_ && std::string_view("*?[\\").find(c) != std::string_view::npos) {
          current_.text += '\\';
        }
        current_.text += c;
      }
      open_ = open_ || !s.empty();
      return;
    }
    for (const char c : s) {
      if (c == ' ' || c == '\t' || c == '\n') {
        finish_field();
      } else {
        if (c == '*' || c == '?') current_.glob = true;
        current_.text += c;
        open_ = true;
      }
    }
  }

  void parameter(const Parameter& p, std::string_view source, bool quoted) {
    if (!p.known) return unknown(source);
    for (std::size_t i = 0; i < p.items.size(); ++i) {
      if (i > 0) {
        if (p.list && split_) {
          finish_field();
        } else {
          text(" ", quoted);
        }
      }
      if (quoted && (p.list ? split_ : true)) open_ = true;
      text(p.items[i], quoted);
    }
  }

  void unknown(std::string_view source) {
    if (!limits_.spend_expansion(source.size())) return;
    current_.text += source;
    current_.known = false;
    open_ = true;
  }

  std::vector<Field> take_fields() {
    finish_field();
    return std::move(done_);
  }

  Field take_single() { return std::move(current_); }

 private:
  void finish_field() {
    if (open_) done_.push_back(std::move(current_));
    current_ = Field();
    open_ = false;
  }

  Limits& limits_;
  bool split_;
  bool escape_;
  bool open_ = false;
  Field current_;
  std::vector<Field> done_;
};

namespace {

/// "$@" and "${a[@]}" alone: no elements make no field, not an empty one.
bool is_list(std::string_view inside) {
  if (inside == "$@" || inside == "${@}") return true;
  return inside.starts_with("${") && inside.ends_with("[@]}") &&
         inside.find('}') == inside.size() - 1;
}

char ansi_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    default:
      return c;
  }
}

}  // namespace

std::vector<Field> Expander::fields(std::string_view word, int line) {
  std::vector<Field> out;
  for (const std::string& part : expand_braces(word, limits_)) {
    Builder builder(limits_, true, false);
    expand_into(builder, part, line);
    for (Field& field : builder.take_fields()) out.push_back(std::move(field));
  }
  return out;
}

Field Expander::single(std::string_view word, int line) {
  Builder builder(limits_, false, false);
  expand_into(builder, word, line);
  return builder.take_single();
}

Field Expander::pattern(std::string_view word, int line) {
  Builder builder(limits_, false, true);
  expand_into(builder, word, line);
  return builder.take_single();
}

std::optional<std::int64_t> Expander::arithmetic(std::string_view expression, int line) {
  Builder builder(limits_, false, false);
  double_quoted(builder, expression, line);
  const Field field = builder.take_single();
  if (!field.known || limits_.exceeded()) return std::nullopt;
  return evaluate(field.text, variables_);
}

void Expander::expand_into(Builder& out, std::string_view word, int line) {
  if (!limits_.spend_work(word.size() + 1)) return;
  std::size_t i = 0;
  while (i < word.size() && !limits_.exceeded()) {
    const char c = word[i];
    if (c == '\\' && i + 1 < word.size()) {
      if (word[i + 1] != '\n') out.literal(word[i + 1], true);
      i += 2;
    } else if (c == '\'') {
      const std::size_t end = std::min(skip_single_quotes(word, i), word.size());
      out.begin_quoted();
      for (std::size_t k = i + 1; k + 1 < end; ++k) out.literal(word[k], true);
      i = end;
    } else if (c == '"') {
      const std::size_t end = std::min(skip_double_quotes(word, i), word.size());
      const std::string_view inside = word.substr(i + 1, end > i + 1 ? end - i - 2 : 0);
      if (!is_list(inside)) out.begin_quoted();
      double_quoted(out, inside, line);
      i = end;
    } else if (c == '`') {
      const std::size_t end = std::min(skip_backticks(word, i), word.size());
      substitution(out, word.substr(i, end - i), word.substr(i + 1, end > i + 1 ? end - i - 2 : 0),
                   line, false);
      i = end;
    } else if (c == '$') {
      i = dollar(out, word, i, line, false);
    } else if ((c == '<' || c == '>') && i + 1 < word.size() && word[i + 1] == '(') {
      out.unknown(word.substr(i));  // a pipe to a process
      return;
    } else {
      out.literal(c, false);
      ++i;
    }
  }
}

void Expander::double_quoted(Builder& out, std::string_view inside, int line) {
  if (!limits_.spend_work(inside.size() + 1)) return;
  std::size_t i = 0;
  while (i < inside.size() && !limits_.exceeded()) {
    const char c = inside[i];
    if (c == '\\' && i + 1 < inside.size()) {
      const char next = inside[i + 1];
      const bool escapes = next == '$' || next == '`' || next == '"' || next == '\\';
      if (!escapes && next != '\n') out.literal('\\', true);
      if (next != '\n') out.literal(next, true);
      i += 2;
    } else if (c == '`') {
      const std::size_t end = std::min(skip_backticks(inside, i), inside.size());
      substitution(out, inside.substr(i, end - i),
                   inside.substr(i + 1, end > i + 1 ? end - i - 2 : 0), line, true);
      i = end;
    } else if (c == '$') {
      i = dollar(out, inside, i, line, true);
    } else {
      out.literal(c, true);
      ++i;
    }
  }
}

/// Expands what begins with the '$' at `at`; returns the index after it.
std::size_t Expander::dollar(Builder& out, std::string_view word, std::size_t at, int line,
                             bool quoted) {
  const char next = at + 1 < word.size() ? word[at + 1] : '\0';
  if (next == '\0' || (quoted && (next == '\'' || next == '"'))) {
    out.literal('$', quoted);
    return at + 1;
  }
  const std::size_t end = std::min(skip_dollar(word, at), word.size());
  const std::string_view source = word.substr(at, end - at);
  if (source.size() == 1) {
    out.literal('$', quoted);
  } else if (next == '\'') {
    out.begin_quoted();
    for (std::size_t k = at + 2; k + 1 < end; ++k) {
      const bool escaped = word[k] == '\\' && k + 2 < end;
      out.literal(escaped ? ansi_escape(word[++k]) : word[k], true);
    }
  } else if (next == '"') {
    out.begin_quoted();
    double_quoted(out, source.substr(2, source.size() > 2 ? source.size() - 3 : 0), line);
  } else if (source.starts_with("$((") && source.ends_with("))") && source.size() >= 5) {
    const auto value = arithmetic(source.substr(3, source.size() - 5), line);
    value ? out.text(std::to_string(*value), quoted) : out.unknown(source);
  } else if (next == '(') {
    substitution(out, source, source.substr(2, source.size() > 2 ? source.size() - 3 : 0), line,
                 quoted);
  } else if (next == '{') {
    if (++depth_ > kMaxDepth) {
      limits_.stop();
    } else {
      out.parameter(braced(source.substr(2, source.size() > 2 ? source.size() - 3 : 0), line),
                    source, quoted);
    }
    --depth_;
  } else {
    out.parameter(named(source.substr(1)), source, quoted);
  }
  return end;
}

void Expander::substitution(Builder& out, std::string_view source, std::string_view inside,
                            int line, bool quoted) {
  if (++depth_ > kMaxDepth) {
    limits_.stop();
  } else if (const auto text = substitute_(inside, line)) {
    out.text(*text, quoted);
  } else {
    out.unknown(source);
  }
  --depth_;
}

}  // namespace berth::script
