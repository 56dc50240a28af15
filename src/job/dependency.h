// --dependency: its syntax, and whether its clauses are met. Knows nothing of jobs but what it is
// told.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/types.h"

namespace berth::job {

enum class DependencyKind { after, afterany, afterok, afternotok, aftercorr, singleton };
enum class Met { no, yes, never };

struct Clause {
  DependencyKind kind = DependencyKind::afterany;
  JobId job = 0;
  std::optional<std::uint32_t> task;  // job_5
  bool all_tasks = false;             // job_*
  std::uint32_t minutes = 0;          // +n of after
  Met met = Met::no;
};

struct Dependency {
  std::vector<Clause> clauses;
  bool any = false;  // '?' between clauses: one is enough

  /// yes: the job may go on; never: it cannot any more.
  [[nodiscard]] Met met() const;
  /// "afterok:12(unfulfilled),afterany:13(failed)": what is met is left out.
  [[nodiscard]] std::string text() const;
};

/// As the user wrote it, or as text() did.
Result<Dependency> parse_dependency(std::string_view text);

}  // namespace berth::job
