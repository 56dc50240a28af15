// What tres.h promises.
#include "text/tres.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "text/number.h"
#include "text/shown.h"
#include "text/words.h"

namespace berth::text {
namespace {

constexpr std::size_t kMaxTresText = 65536;

std::unexpected<Error> invalid(std::string hint) {
  return fail(Code::invalid_tres, std::string(slurm_text(Code::invalid_tres)), std::move(hint));
}

/// How a tail that may be a count reads.
enum class Tail { count, word, too_large };

struct Count {
  Tail tail = Tail::word;
  std::uint64_t value = 0;
  bool negative = false;
};

/// [-]digits[k|m|g|t|p], each letter × 1024 more.
Count read_count(std::string_view s) {
  Count out;
  if (!s.empty() && s.front() == '-') {
    out.negative = true;
    s.remove_prefix(1);
  }
  std::size_t digits = 0;
  while (digits < s.size() && s[digits] >= '0' && s[digits] <= '9') ++digits;
  const std::string_view suffix = s.substr(digits);
  if (digits == 0 || suffix.size() > 1) return out;
  unsigned shift = 0;
  if (!suffix.empty()) {
    const std::size_t unit = std::string_view("kmgtp").find(to_lower(suffix)[0]);
    if (unit == std::string_view::npos) return out;
    shift = 10 * (static_cast<unsigned>(unit) + 1);
  }
  const auto number = parse_number(s.substr(0, digits), kMaxTresCount >> shift);
  out.tail = number ? Tail::count : Tail::too_large;
  out.value = number ? *number << shift : 0;
  return out;
}

/// name[[:type]:count]; see spec: the last ':' or '=' separates the count, or a type without count.
Result<TresItem> parse_item(std::string_view whole, std::string_view example) {
  std::string_view s = whole;
  if (s.starts_with("gres/")) s.remove_prefix(5);
  TresItem item;
  item.kind = "gres";
  item.count = 1;
  std::string_view head = s;
  std::string_view type;
  if (const std::size_t at = s.find_last_of(":="); at != std::string_view::npos) {
    head = s.substr(0, at);
    const std::string_view tail = s.substr(at + 1);
    const Count count = read_count(tail);
    if (count.tail == Tail::too_large) {
      return invalid(
          fmt::format("in \"{}\", the count {} is too large", shown(whole), shown(tail)));
    }
    if (count.tail == Tail::count) {
      item.count = count.value;
      item.negative = count.negative && count.value > 0;
    } else if (tail.empty()) {
      return invalid(fmt::format("\"{}\" has no count after \"{}\"; write, for example, {}",
                                 shown(whole), s[at], example));
    } else if (s[at] == '=' || head.find(':') != std::string_view::npos) {
      return invalid(
          fmt::format("in \"{}\", the count must be a number and come last: \"{}\" is "
                      "none; write, for example, {}",
                      shown(whole), shown(tail), example));
    } else {
      type = tail;
    }
  }
  if (const std::size_t colon = head.find(':'); colon != std::string_view::npos) {
    type = head.substr(colon + 1);
    head = head.substr(0, colon);
    if (type.empty()) return invalid(fmt::format("\"{}\" has an empty type", shown(whole)));
  }
  if (head.empty()) {
    return invalid(fmt::format("\"{}\" does not begin with a name; write, for example, {}",
                               shown(whole), example));
  }
  item.name = head;
  item.type = type;
  return item;
}

/// The items between commas; empty ones are skipped. Error when there is none, or too much.
Result<std::vector<std::string_view>> items_of(std::string_view s, std::string_view example) {
  if (s.size() > kMaxTresText) return invalid("the list is too long");
  std::vector<std::string_view> items = split(s, ',');
  std::erase_if(items, [](std::string_view item) { return item.empty(); });
  if (items.empty())
    return invalid(fmt::format("the list is empty; write, for example, {}", example));
  if (items.size() > kMaxTresItems) {
    return invalid(
        fmt::format("the list has {} items; {} are allowed", items.size(), kMaxTresItems));
  }
  return items;
}

template <class ParseOne>
Result<std::vector<TresItem>> parse_list(std::string_view s, std::string_view example,
                                         ParseOne parse_one) {
  auto texts = items_of(s, example);
  if (!texts) return pass(std::move(texts.error()));
  std::vector<TresItem> out;
  for (const std::string_view text : *texts) {
    Result<TresItem> item = parse_one(text);
    if (!item) return pass(std::move(item.error()));
    out.push_back(std::move(*item));
  }
  return out;
}

Result<TresItem> parse_task_item(std::string_view text) {
  constexpr std::string_view kExample = "--tres-per-task=cpu=4,gres/gpu=1";
  const std::size_t end = text.find_first_of("/:=");
  const std::string_view kind = text.substr(0, end);
  if (kind == "gres" || kind == "license") {
    if (end == std::string_view::npos || text[end] != '/') {
      return invalid(fmt::format("\"{}\" names no {}; write, for example, {}", shown(text), kind,
                                 kind == "gres" ? "gres/gpu=1" : "license/matlab=1"));
    }
    auto item = parse_item(text.substr(end + 1), kExample);
    if (item) item->kind = kind;
    return item;
  }
  if (kind == "cpu" && end != std::string_view::npos && text[end] != '/') {
    const Count count = read_count(text.substr(end + 1));
    if (count.tail == Tail::count && !count.negative) {
      TresItem item;
      item.kind = kind;
      item.count = count.value;
      return item;
    }
  }
  if (kind == "cpu") {
    return invalid(fmt::format("\"{}\" needs a number of CPUs: cpu=4", shown(text)));
  }
  constexpr std::array<std::string_view, 8> kNever = {"bb",  "billing", "energy", "fs",
                                                      "mem", "node",    "pages",  "vmem"};
  if (std::ranges::find(kNever, kind) != kNever.end()) {
    return invalid(
        fmt::format("{} cannot be given for each task; cpu, gres/… and license/… can", kind));
  }
  return invalid(fmt::format("\"{}\" is not cpu, gres/… or license/…; for GPUs write gres/gpu=1",
                             shown(text)));
}

/// "gpu:a100:no_consume:4": drops the word, notes it.
std::string without_no_consume(std::string_view text, bool& found) {
  std::string out;
  for (const std::string_view part : split(text, ':')) {
    if (!out.empty() && equal_ignoring_case(part, "no_consume")) {
      found = true;
      continue;
    }
    if (part.data() != text.data()) out += ':';
    out += part;
  }
  return out;
}

}  // namespace

Result<std::vector<TresItem>> parse_gres(std::string_view s, bool& none) {
  constexpr std::string_view kExample = "gpu:2 or gpu:a100:2";
  none = equal_ignoring_case(s, "none");
  if (none) return std::vector<TresItem>();
  return parse_list(s, kExample, [&](std::string_view text) { return parse_item(text, kExample); });
}

Result<std::vector<TresItem>> parse_gpus(std::string_view s) {
  constexpr std::string_view kExample = "2 or a100:2";
  return parse_list(s, kExample, [&](std::string_view text) {
    auto item = parse_item(fmt::format("gpu:{}", text), kExample);
    if (!item) {
      const std::string_view tail = text.substr(text.rfind(':') + 1);
      item.error().hint = read_count(tail).tail == Tail::too_large
                              ? fmt::format("the count {} is too large", shown(tail))
                              : fmt::format("\"{}\" is not [type:]count; write, for example, {}",
                                            shown(text), kExample);
    }
    return item;
  });
}

bool is_part_of_gpu(std::string_view gres) {
  return gres == "shard" || gres == "mps" || gres == kGpuMemory;
}

Result<std::vector<TresItem>> parse_tres_per_task(std::string_view s) {
  return parse_list(s, "--tres-per-task=gres/gpu=1", parse_task_item);
}

Result<std::vector<TresItem>> parse_node_gres(std::string_view s) {
  constexpr std::string_view kExample = "Gres=gpu:a100:4";
  return parse_list(s, kExample, [&](std::string_view text) -> Result<TresItem> {
    bool no_consume = false;
    auto item = parse_item(without_no_consume(trim(text), no_consume), kExample);
    if (!item) return item;
    if (item->negative) return invalid(fmt::format("\"{}\" has a negative count", shown(text)));
    item->no_consume = no_consume;
    return item;
  });
}

}  // namespace berth::text
