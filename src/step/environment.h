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

/// Of one task; the pid and what a task prolog exports come later.
Environment task_environment(const wire::StepSpec& spec, const wire::TaskSpec& task,
                             const wire::Program& program, const std::string& mark);

/// Follows the lines a TaskProlog wrote: "export NAME=value", "unset NAME", "print text". Returns
/// what is to be printed.
std::string apply_task_prolog(std::string_view output, Environment& environment);

/// For execve: pointers into strings that live in this object.
class EnvironmentBlock {
 public:
  explicit EnvironmentBlock(const Environment& environment);
  [[nodiscard]] char** get() { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

}  // namespace berth::step
