// The environment of a task: what the user sent, what the controller says of the step and the task,
// and what only this node knows.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "step/variables.h"
#include "wire/submit.pb.h"

namespace berth::step {

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

}  // namespace berth::step
