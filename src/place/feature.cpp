#include "place/feature.h"

#include <algorithm>
#include <cctype>

namespace berth::place {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::uint32_t kMaxCount = 1U << 20;

/// Recursive descent over the expression; any error leaves ok() false.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<FeatureAsk> run() {
    FeatureAsk ask;
    ask.filter.kind = FeatureExpr::Kind::all;
    if (text_.empty()) return std::nullopt;
    FeatureExpr whole = alternatives(0, &ask);
    if (!ok_ || at_ != text_.size()) return std::nullopt;
    ask.filter = std::move(whole);
    return ask;
  }

 private:
  FeatureExpr bad() {
    ok_ = false;
    return {};
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  FeatureExpr alternatives(int depth, FeatureAsk* top) {
    if (depth > kMaxDepth) return bad();
    FeatureExpr any{FeatureExpr::Kind::any, {}, {}};
    any.parts.push_back(conjunction(depth, top));
    while (ok_ && peek() == '|') {
      ++at_;
      any.parts.push_back(conjunction(depth, top));
      // "a|[b|c]" and "a|b*2" would say nothing that could be met node by node.
      if (top != nullptr && (!top->alternatives.empty() || !top->counted.empty())) return bad();
    }
    return any.parts.size() == 1 ? std::move(any.parts.front()) : any;
  }

  FeatureExpr conjunction(int depth, FeatureAsk* top) {
    FeatureExpr all{FeatureExpr::Kind::all, {}, {}};
    add(all, item(depth, top));
    while (ok_ && (peek() == '&' || peek() == ',')) {
      ++at_;
      add(all, item(depth, top));
    }
    return all.parts.size() == 1 ? std::move(all.parts.front()) : all;
  }

  static void add(FeatureExpr& all, std::optional<FeatureExpr> part) {
    if (part) all.parts.push_back(std::move(*part));
  }

  /// A name, a parenthesis, or (at the top only) one bracket, which filters nothing by itself.
  std::optional<FeatureExpr> item(int depth, FeatureAsk* top) {
    if (peek() == '(') {
      ++at_;
      FeatureExpr inner = alternatives(depth + 1, nullptr);
      if (peek() != ')') return bad();
      ++at_;
      return inner;
    }
    if (peek() == '[') {
      if (top == nullptr || !top->alternatives.empty() || !top->counted.empty()) return bad();
      bracket(*top);
      return std::nullopt;
    }
    FeatureExpr leaf = name();
    if (peek() != '*') return leaf;
    // "a*2&b*1" without a bracket counts in the same way, and filters nothing.
    if (top == nullptr) return bad();
    const std::uint32_t n = count();
    top->counted.push_back({std::move(leaf), n});
    return std::nullopt;
  }

  void bracket(FeatureAsk& ask) {
    ++at_;
    char joint = '\0';
    bool counts = false;
    std::vector<FeatureAsk::Counted> items;
    while (ok_) {
      FeatureAsk::Counted part;
      part.expr = peek() == '(' ? *item(1, nullptr) : name();
      if (peek() == '*') {
        part.count = count();
        counts = true;
      }
      items.push_back(std::move(part));
      if (peek() == ']') break;
      if (peek() != '|' && peek() != '&') {
        bad();
        return;
      }
      if (joint != '\0' && joint != peek()) {
        bad();
        return;
      }
      joint = peek();
      ++at_;
    }
    if (peek() != ']') {
      bad();
      return;
    }
    ++at_;
    if (joint == '&' || (counts && joint != '|')) {
      ask.counted = std::move(items);
    } else {
      for (auto& part : items) ask.alternatives.push_back(std::move(part.expr));
    }
  }

  FeatureExpr name() {
    const std::size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
            std::string_view("_-.:=/+@%").find(text_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    if (at_ == start) return bad();
    return {FeatureExpr::Kind::name, std::string(text_.substr(start, at_ - start)), {}};
  }

  std::uint32_t count() {
    ++at_;
    std::uint32_t value = 0;
    const std::size_t start = at_;
    while (std::isdigit(static_cast<unsigned char>(peek())) != 0 && value < kMaxCount) {
      value = value * 10 + static_cast<std::uint32_t>(peek() - '0');
      ++at_;
    }
    if (at_ == start || value == 0 || value > kMaxCount) bad();
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

bool FeatureExpr::matches(const cluster::Node& node) const {
  const auto match = [&](const FeatureExpr& part) { return part.matches(node); };
  switch (kind) {
    case Kind::name:
      return node.has_feature(name);
    case Kind::all:
      return std::ranges::all_of(parts, match);
    case Kind::any:
      return std::ranges::any_of(parts, match);
  }
  return false;
}

void FeatureExpr::collect_names(std::vector<std::string>& out) const {
  if (kind == Kind::name) out.push_back(name);
  for (const FeatureExpr& part : parts) part.collect_names(out);
}

std::vector<std::string> FeatureAsk::names() const {
  std::vector<std::string> out;
  filter.collect_names(out);
  for (const FeatureExpr& one : alternatives) one.collect_names(out);
  for (const Counted& one : counted) one.expr.collect_names(out);
  return out;
}

std::optional<FeatureAsk> parse_features(std::string_view text) {
  return Parser(text).run();
}

}  // namespace berth::place
