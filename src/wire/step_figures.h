// What the tasks of a step use, put together: tasks to a node, nodes to a step. The same whether
// the step runs or has ended.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/basic.pb.h"

namespace berth::wire {

/// One task more. `now` is added up and may be the least, `most` is the highest it has been.
void note(Spread& spread, std::uint32_t rank, std::uint64_t now, std::uint64_t most);
inline void note(Spread& spread, std::uint32_t rank, std::uint64_t value) {
  note(spread, rank, value, value);
}

/// The tasks of one more node, in any order. `node` "": there is no other one.
void add_figures(StepFigures& sum, const StepFigures& of_node, std::string_view node);

/// The mean of all tasks; 0 where nothing was measured.
std::uint64_t mean(const Spread& spread);

}  // namespace berth::wire
