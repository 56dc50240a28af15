#include "command/clusters.h"

#include <fmt/format.h>

#include "command/show_text.h"
#include "text/words.h"

namespace berth::command {

Result<void> check_clusters(const std::optional<std::string>& asked, std::string_view cluster) {
  if (!asked) return {};
  for (const std::string& name : list_of(*asked)) {
    if (text::equal_ignoring_case(name, "all") || name == cluster) continue;
    Error error;
    error.messages = {
        {Severity::error,
         fmt::format("'{}' can't be reached now, or it is an invalid entry for --cluster.  Use "
                     "'sacctmgr list clusters' to see available clusters.",
                     name)},
        {Severity::error, "Problem talking to database"}};
    error.hint = fmt::format("this cluster is called {}", cluster);
    return std::unexpected(std::move(error));
  }
  return {};
}

}  // namespace berth::command
