// Variables of a process: what many tasks have in common, what one has on top, and both as execve
// wants them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::step {

using Environment = std::map<std::string, std::string, std::less<>>;

/// Variables that many tasks have, written down once as execve wants them.
class CommonVariables {
 public:
  CommonVariables() = default;
  explicit CommonVariables(const Environment& variables);
  CommonVariables(CommonVariables&&) = default;  // entries point into the text: no copies
  CommonVariables& operator=(CommonVariables&&) = default;
  struct Entry {
    std::string_view name;
    char* assignment;  // "NAME=value"
  };
  /// In the order of names.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;

 private:
  std::vector<char> text_;
  std::vector<Entry> entries_;
};

/// The variables of one task: what it has in common with the others, and its own on top. Copies of
/// all of them, task by task, were a good part of what a supervisor cost.
class TaskEnvironment {
 public:
  /// Keeps a reference to `common`.
  explicit TaskEnvironment(const CommonVariables& common) : common_(&common) {}

  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  void set(std::string_view name, std::string value);
  /// Returns whether it was not set before.
  bool set_if_unset(std::string_view name, std::string value);
  void unset(std::string_view name);
  /// All of them.
  [[nodiscard]] Environment whole() const;
  /// These and no others.
  void replace_all(Environment variables);

 private:
  friend class EnvironmentBlock;
  const CommonVariables* common_;
  std::map<std::string, std::optional<std::string>, std::less<>> own_;  // none = not set here
};

/// For execve: pointers into text that lives in this object, or where the common variables are.
class EnvironmentBlock {
 public:
  EnvironmentBlock() : pointers_{nullptr} {}
  explicit EnvironmentBlock(const TaskEnvironment& environment);
  EnvironmentBlock(EnvironmentBlock&&) = default;
  EnvironmentBlock& operator=(EnvironmentBlock&&) = default;
  [[nodiscard]] char** get() { return pointers_.data(); }
  /// Another "NAME=value" for a name that is there; it is not copied.
  void replace(char* assignment);

 private:
  std::vector<char> text_;
  std::vector<char*> pointers_;
};

}  // namespace berth::step
