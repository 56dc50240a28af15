// What variables.h promises.
#include "step/variables.h"

#include <algorithm>

namespace berth::step {
namespace {

/// Room for "NAME=value" texts, filled one after the other.
class AssignmentText {
 public:
  explicit AssignmentText(std::size_t size) : text_(size), at_(text_.data()) {}
  char* add(std::string_view name, std::string_view value) {
    char* const begin = at_;
    put(name, '=');
    put(value, '\0');
    return begin;
  }
  static std::size_t size_of(std::string_view name, std::string_view value) {
    return name.size() + value.size() + 2;
  }
  std::vector<char> take() { return std::move(text_); }

 private:
  void put(std::string_view what, char end) {
    at_ = std::ranges::copy(what, at_).out;
    *at_++ = end;
  }
  std::vector<char> text_;
  char* at_;
};

}  // namespace

CommonVariables::CommonVariables(const Environment& variables) {
  std::size_t size = 0;
  for (const auto& [name, value] : variables) size += AssignmentText::size_of(name, value);
  AssignmentText text(size);
  entries_.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    char* const assignment = text.add(name, value);
    entries_.push_back({.name = {assignment, name.size()}, .assignment = assignment});
  }
  text_ = text.take();
}

std::optional<std::string_view> CommonVariables::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(entries_, name, {}, &Entry::name);
  if (at == entries_.end() || at->name != name) return std::nullopt;
  return std::string_view(at->assignment + name.size() + 1);
}

std::optional<std::string_view> TaskEnvironment::find(std::string_view name) const {
  if (const auto own = own_.find(name); own != own_.end()) {
    if (!own->second) return std::nullopt;
    return std::string_view(*own->second);
  }
  return common_->find(name);
}

void TaskEnvironment::set(std::string_view name, std::string value) {
  const auto at = own_.lower_bound(name);
  if (at != own_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    own_.emplace_hint(at, name, std::move(value));
  }
}

bool TaskEnvironment::set_if_unset(std::string_view name, std::string value) {
  if (find(name)) return false;
  set(name, std::move(value));
  return true;
}

void TaskEnvironment::unset(std::string_view name) {
  if (common_->find(name)) {
    own_.insert_or_assign(std::string(name), std::nullopt);
  } else if (const auto own = own_.find(name); own != own_.end()) {
    own_.erase(own);
  }
}

Environment TaskEnvironment::whole() const {
  Environment all;
  for (const auto& [name, assignment] : common_->entries()) {
    all.emplace_hint(all.end(), name, assignment + name.size() + 1);
  }
  for (const auto& [name, value] : own_) {
    if (value) {
      all.insert_or_assign(name, *value);
    } else {
      all.erase(name);
    }
  }
  return all;
}

void TaskEnvironment::replace_all(Environment variables) {
  own_.clear();
  for (const auto& [name, assignment] : common_->entries()) own_.try_emplace(std::string(name));
  for (auto& [name, value] : variables) own_.insert_or_assign(name, std::move(value));
}

EnvironmentBlock::EnvironmentBlock(const TaskEnvironment& environment) {
  const auto& common = environment.common_->entries();
  std::size_t size = 0;
  for (const auto& [name, value] : environment.own_) {
    if (value) size += AssignmentText::size_of(name, *value);
  }
  AssignmentText text(size);
  pointers_.reserve(common.size() + environment.own_.size() + 1);
  // Both are in the order of names.
  auto next = common.begin();
  for (const auto& [name, value] : environment.own_) {
    while (next != common.end() && next->name < name) pointers_.push_back((next++)->assignment);
    if (next != common.end() && next->name == name) ++next;
    if (value) pointers_.push_back(text.add(name, *value));
  }
  while (next != common.end()) pointers_.push_back((next++)->assignment);
  pointers_.push_back(nullptr);
  text_ = text.take();
}

void EnvironmentBlock::replace(char* assignment) {
  const std::string_view whole = assignment;
  const std::string_view name = whole.substr(0, std::min(whole.find('=') + 1, whole.size()));
  for (char*& pointer : pointers_) {
    if (pointer != nullptr && std::string_view(pointer).starts_with(name)) pointer = assignment;
  }
}

}  // namespace berth::step
