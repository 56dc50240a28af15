// Precedence climbing over C-like expressions.
#include "script/arithmetic.h"

#include <array>
#include <charconv>
#include <string>

#include "script/scan.h"

namespace berth::script {
namespace {

using Number = std::optional<std::int64_t>;

struct Operator {
  std::string_view text;
  int level;  // higher binds tighter
};

// Longest first, so that << is not read as <.
constexpr std::array<Operator, 19> kBinary = {{{"**", 12},
                                               {"<<", 9},
                                               {">>", 9},
                                               {"<=", 8},
                                               {">=", 8},
                                               {"==", 7},
                                               {"!=", 7},
                                               {"&&", 3},
                                               {"||", 2},
                                               {"*", 11},
                                               {"/", 11},
                                               {"%", 11},
                                               {"+", 10},
                                               {"-", 10},
                                               {"<", 8},
                                               {">", 8},
                                               {"&", 6},
                                               {"^", 5},
                                               {"|", 4}}};

Number power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent && i < 64; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  }
  if (exponent > 63 && base != 0 && base != 1 && base != -1) return std::nullopt;
  if (exponent > 63 && base == -1) return exponent % 2 == 0 ? 1 : -1;
  return result;
}

Number divide(std::string_view op, std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
  return op == "/" ? a / b : a % b;
}

Number apply(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (op == "+") return __builtin_add_overflow(a, b, &r) ? Number() : r;
  if (op == "-") return __builtin_sub_overflow(a, b, &r) ? Number() : r;
  if (op == "*") return __builtin_mul_overflow(a, b, &r) ? Number() : r;
  if (op == "/" || op == "%") return divide(op, a, b);
  if (op == "**") return power(a, b);
  if (op == "<<" || op == ">>") {
    if (b < 0 || b > 62 || a < 0) return std::nullopt;
    if (op == ">>") return a >> b;
    return a > (INT64_MAX >> b) ? Number() : a << b;
  }
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "&") return a & b;
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "&&") return a != 0 && b != 0;
  if (op == "||") return a != 0 || b != 0;
  return std::nullopt;
}

class Evaluator {
 public:
  Evaluator(std::string_view text, Variables& variables) : rest_(text), variables_(variables) {}

  Number run() {
    Number value = comma();
    blanks();
    return bad_ || !rest_.empty() ? Number() : value;
  }

 private:
  void blanks() {
    while (!rest_.empty() && (is_blank(rest_[0]) || rest_[0] == '\n')) rest_.remove_prefix(1);
  }

  bool take(std::string_view text) {
    blanks();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  Number fail() {
    bad_ = true;
    return std::nullopt;
  }

  Number comma() {
    Number value = condition();
    while (!bad_ && take(",")) value = condition();
    return value;
  }

  Number condition() {
    if (++depth_ > static_cast<int>(kMaxDepth)) return fail();
    Number value = binary(1);
    if (!bad_ && take("?")) {
      const Number yes = condition();
      if (!take(":")) return fail();
      const Number no = condition();
      value = !value ? Number() : (*value != 0 ? yes : no);
    }
    --depth_;
    return value;
  }

  const Operator* next_operator() {
    blanks();
    for (const Operator& op : kBinary) {
      if (!rest_.starts_with(op.text)) continue;
      const bool assigns = rest_.substr(op.text.size()).starts_with('=') && op.level != 8;
      return assigns && op.level != 7 ? nullptr : &op;
    }
    return nullptr;
  }

  Number binary(int level) {
    if (++depth_ > static_cast<int>(kMaxDepth)) return fail();
    Number left = unary();
    while (!bad_) {
      const Operator* op = next_operator();
      if (op == nullptr || op->level < level) break;
      rest_.remove_prefix(op->text.size());
      const Number right = binary(op->level + (op->text == "**" ? 0 : 1));
      left = left && right ? apply(op->text, *left, *right) : Number();
    }
    --depth_;
    return left;
  }

  Number unary() {
    if (++depth_ > static_cast<int>(kMaxDepth)) return fail();
    Number value;
    if (take("++")) {
      value = step_before(1);
    } else if (take("--")) {
      value = step_before(-1);
    } else if (take("+")) {
      value = unary();
    } else if (take("-")) {
      value = unary();
      value = value ? apply("-", 0, *value) : value;
    } else if (take("!")) {
      value = unary();
      if (value) value = *value == 0;
    } else if (take("~")) {
      value = unary();
      if (value) value = ~*value;
    } else {
      value = primary();
    }
    --depth_;
    return value;
  }

  Number primary() {
    blanks();
    if (take("(")) {
      const Number value = comma();
      return take(")") ? value : fail();
    }
    if (!rest_.empty() && is_digit(rest_[0])) return literal();
    const std::size_t length = name_length(rest_);
    if (length == 0) return fail();
    const std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return variable(name);
  }

  Number literal() {
    int base = 10;
    if (rest_.starts_with("0x") || rest_.starts_with("0X")) {
      base = 16;
      rest_.remove_prefix(2);
    } else if (rest_.size() > 1 && rest_[0] == '0' && is_digit(rest_[1])) {
      base = 8;
    }
    return digits(base);
  }

  Number digits(int base) {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(rest_.begin(), rest_.end(), value, base);
    if (problem != std::errc() || end == rest_.begin()) return fail();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.begin()));
    if (base == 10 && value >= 2 && value <= 36 && take("#")) {
      return digits(static_cast<int>(value));
    }
    return !rest_.empty() && is_name_char(rest_[0]) ? fail() : Number(value);
  }

  Number value_of(const std::string& name) {
    const Value* value = variables_.find(name);
    if (value == nullptr) return 0;
    if (!value->known) return std::nullopt;
    const std::string& text = value->text();
    if (text.empty()) return 0;
    if (++depth_ > static_cast<int>(kMaxDepth) || text.size() > 64) return std::nullopt;
    Evaluator inner(text, variables_);
    inner.depth_ = depth_;
    const Number number = inner.run();
    --depth_;
    return number;
  }

  Number store(const std::string& name, Number number) {
    variables_.set(name, number ? Value::of(std::to_string(*number)) : Value::unknown());
    return number;
  }

  Number step_before(std::int64_t by) {
    blanks();
    const std::size_t length = name_length(rest_);
    if (length == 0) return fail();
    const std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    const Number old = value_of(name);
    return store(name, old ? apply("+", *old, by) : old);
  }

  Number variable(const std::string& name) {
    const Number old = value_of(name);
    if (take("++") || take("--")) {
      const bool up = rest_.data()[-1] == '+';
      store(name, old ? apply("+", *old, up ? 1 : -1) : old);
      return old;
    }
    blanks();
    if (rest_.starts_with("=") && !rest_.starts_with("==")) {
      rest_.remove_prefix(1);
      return store(name, condition());
    }
    for (const std::string_view op : {"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"}) {
      if (!rest_.starts_with(op) || !rest_.substr(op.size()).starts_with('=')) continue;
      rest_.remove_prefix(op.size() + 1);
      const Number right = condition();
      return store(name, old && right ? apply(op, *old, *right) : Number());
    }
    return old;
  }

  std::string_view rest_;
  Variables& variables_;
  int depth_ = 0;
  bool bad_ = false;
};

}  // namespace

std::optional<std::int64_t> evaluate(std::string_view expression, Variables& variables) {
  return Evaluator(expression, variables).run();
}

}  // namespace berth::script
