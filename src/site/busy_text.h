// The text that `scontrol show` prints, cut into records, lines and fields.
#pragma once

#include <string_view>
#include <vector>

namespace berth::site {

struct Field {
  std::string_view key;
  std::string_view value;
};

/// One line: Key=Value pairs; a value may hold blanks ("OS=Linux 6.1", "Reason=bad disk"): words
/// without '=' belong to the value before them.
std::vector<Field> fields_of(std::string_view line);

/// One item of GRES=: "gpu:a100:2(IDX:0-1)" → name gpu, type a100, count 2, inside "IDX:0-1".
struct GresText {
  std::string_view name;
  std::string_view type;
  std::string_view count;
  std::string_view inside;
};

/// Items between commas outside parentheses.
std::vector<GresText> gres_items(std::string_view list);

/// True when the key may begin a line of a job's or a node's record.
bool known_job_key(std::string_view key);
bool known_node_key(std::string_view key);

}  // namespace berth::site
