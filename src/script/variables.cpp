// Shell variables: values, frames, exported changes.
#include "script/variables.h"

namespace berth::script {

const std::string& Value::text() const {
  static const std::string kEmpty;
  return items.empty() ? kEmpty : items.front();
}

Variables::Variables(const std::map<std::string, std::string>& start) : start_(&start) {
  for (const auto& [name, text] : start) {
    Value value = Value::of(text);
    value.exported = true;
    values_.emplace(name, std::move(value));
  }
}

const Value* Variables::find(const std::string& name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? nullptr : &at->second;
}

void Variables::assign(const std::string& name, std::optional<Value> value) {
  const auto at = values_.find(name);
  std::optional<Value> before;
  if (at != values_.end()) before = at->second;
  if (before == value) return;
  if (!frames_.empty()) frames_.back().try_emplace(name, before);
  if ((before && before->exported) || (value && value->exported)) {
    touched_.insert(name);
    changes_.reset();
  }
  if (value) {
    values_[name] = std::move(*value);
  } else {
    values_.erase(name);
  }
}

void Variables::set(const std::string& name, Value value) {
  const Value* old = find(name);
  if (old != nullptr && old->exported) value.exported = true;
  assign(name, std::move(value));
}

void Variables::unset(const std::string& name) {
  assign(name, std::nullopt);
}

void Variables::mark_exported(const std::string& name) {
  const Value* old = find(name);
  if (old == nullptr) return;
  Value value = *old;
  value.exported = true;
  assign(name, std::move(value));
}

void Variables::push_frame() {
  frames_.emplace_back();
}

std::map<std::string, std::optional<Value>> Variables::pop_frame() {
  const auto before = std::move(frames_.back());
  frames_.pop_back();
  std::map<std::string, std::optional<Value>> ended;
  for (const auto& [name, old] : before) {
    const Value* now = find(name);
    ended[name] = now == nullptr ? std::nullopt : std::optional<Value>(*now);
    if ((old && old->exported) || (now != nullptr && now->exported)) changes_.reset();
    if (old) {
      values_[name] = *old;
    } else {
      values_.erase(name);
    }
  }
  return ended;
}

std::shared_ptr<const Changes> Variables::changes() {
  if (changes_) return changes_;
  auto changes = std::make_shared<Changes>();
  for (const std::string& name : touched_) {
    const Value* now = find(name);
    const auto start = start_->find(name);
    const bool visible = now != nullptr && now->exported && !now->array;
    if (!visible) {
      if (start != start_->end()) (*changes)[name] = std::nullopt;
    } else if (now->known && (start == start_->end() || start->second != now->text())) {
      (*changes)[name] = now->text();
    }
  }
  changes_ = std::move(changes);
  return changes_;
}

}  // namespace berth::script
