// An explanation as text for people.
#pragma once

#include <string>

#include "explain/explain.h"

namespace berth::explain {

struct Style {
  bool colour = false;
  bool all_tasks = false;  // else long tables are shortened
};

std::string render_text(const Explanation& explanation, const Style& style);

}  // namespace berth::explain
