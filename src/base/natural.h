// Natural order of names: digit runs compare as numbers, so n2 comes before n10. This is the order
// of nodes everywhere (node index, node lists, task layout).
#pragma once

#include <string_view>

namespace berth {

/// True when a sorts before b.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace berth
