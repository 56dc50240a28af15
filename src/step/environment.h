// The environment of a task: what the user sent, what the controller says of the step and the task,
// and what only this node knows.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/submit.pb.h"

namespace berth::step {

using Environment = std::map<std::string, std::string, std::less<>>;

/// Variables that many tasks have, written down once as execve wants them.
class CommonVariables {
 public:
  CommonVariables() = default;
  explicit CommonVariables(const Environment& variables);
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

/// The variables of one task: what it has in common with the others, and its own on top. A copy of
/// all of them for each task took longer than the rest of what is done before its process is there.
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

/// Of all tasks of a step on this node.
class StepEnvironment {
 public:
  /// Keeps references to its arguments. `more`: what all tasks have on top of the user's variables
  /// and the controller's.
  StepEnvironment(const wire::StepSpec& spec, const wire::Program& program, const std::string& mark,
                  const std::function<void(Environment&)>& more = {});
  /// The pid and what a task prolog exports come later. Refers to this object.
  [[nodiscard]] TaskEnvironment of(const wire::TaskSpec& task) const;

 private:
  const wire::StepSpec& spec_;
  const wire::Program& program_;
  CommonVariables common_;
  std::string ranks_;  // on this node
};

/// Follows the lines a TaskProlog wrote: "export NAME=value", "unset NAME", "print text". Returns
/// what is to be printed.
std::string apply_task_prolog(std::string_view output, Environment& environment);

/// For execve: pointers into text that lives in this object, or where the common variables are.
class EnvironmentBlock {
 public:
  EnvironmentBlock() : pointers_{nullptr} {}
  explicit EnvironmentBlock(const Environment& environment);
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
