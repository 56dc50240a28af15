// srun --multi-prog: the program of each rank, from the lines of the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::command {

/// argv of every rank below `ntasks`; empty where no line names the rank (check_multi_prog has told
/// about that). %t is the rank, %o its place in the list of its line (for "*": the rank).
std::vector<std::vector<std::string>> multi_prog_commands(std::string_view content,
                                                          std::uint32_t ntasks);

/// What to tell whose file holds double quotes, which mean nothing there; "" when it holds none.
std::string multi_prog_advice(std::string_view content);

}  // namespace berth::command
