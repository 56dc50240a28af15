// The environment of a task: what the user sent, what the controller says of the step and the task,
// and what only this node knows.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wire/submit.pb.h"

namespace berth::step {

using Environment = std::map<std::string, std::string, std::less<>>;

/// Of all tasks of a step on this node. What they have in common is put together once.
class StepEnvironment {
 public:
  /// Keeps references to its arguments.
  StepEnvironment(const wire::StepSpec& spec, const wire::Program& program,
                  const std::string& mark);
  /// The pid and what a task prolog exports come later.
  [[nodiscard]] Environment of(const wire::TaskSpec& task) const;

 private:
  const wire::StepSpec& spec_;
  const wire::Program& program_;
  Environment common_;
  std::string ranks_;  // on this node
};

/// Follows the lines a TaskProlog wrote: "export NAME=value", "unset NAME", "print text". Returns
/// what is to be printed.
std::string apply_task_prolog(std::string_view output, Environment& environment);

/// For execve: pointers into text that lives in this object.
class EnvironmentBlock {
 public:
  EnvironmentBlock() : pointers_{nullptr} {}
  explicit EnvironmentBlock(const Environment& environment);
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
