// What launch_failure.h promises.
#include "step/launch_failure.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace berth::step {

bool is_the_nodes_fault(LaunchPart part, int why) {
  switch (part) {
    case LaunchPart::spool:
    case LaunchPart::supervisor:
    case LaunchPart::process:
    case LaunchPart::descriptor:
    case LaunchPart::fence:
    case LaunchPart::identity:
      return true;
    case LaunchPart::script_owner:
      return why != EDQUOT;  // his quota where the spool is
    case LaunchPart::other_user:
    case LaunchPart::directory:
    case LaunchPart::output:
    case LaunchPart::input:
    case LaunchPart::terminal:
      return false;
  }
  return false;
}

std::unexpected<Error> launch_failure(LaunchPart part, const std::string& what, int why) {
  return fail(is_the_nodes_fault(part, why) ? Code::node_unfit : Code::io,
              fmt::format("{}: {}", what, std::strerror(why)));
}

std::unexpected<Error> launch_failure(LaunchPart part, std::string text) {
  return fail(is_the_nodes_fault(part, 0) ? Code::node_unfit : Code::io, std::move(text));
}

Error once_begun(Error why) {
  if (why.code == Code::node_unfit) why.code = Code::io;
  return why;
}

Error failed_twice(Error why) {
  if (why.code != Code::node_unfit) return why;
  const std::string text(why.what());
  return fail(Code::node_unfit, "launch failed twice: " + text,
              "the node takes no more jobs until an administrator has mended and resumed it")
      .error();
}

}  // namespace berth::step
