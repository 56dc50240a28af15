// Commands with known output.
#include "script/substitution.h"

#include <algorithm>
#include <array>

#include "script/arithmetic.h"
#include "script/launcher.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::script {
namespace {

using Words = std::vector<std::string>;
using Output = std::optional<std::string>;

constexpr std::uint64_t kMaxCount = 100'000;

std::vector<std::string_view> lines_of(std::string_view input) {
  if (input.ends_with('\n')) input.remove_suffix(1);
  if (input.empty()) return {};
  return text::split(input, '\n');
}

std::string join(const std::vector<std::string_view>& lines, std::size_t first, std::size_t last) {
  std::string out;
  for (std::size_t i = first; i < last; ++i) {
    out += lines[i];
    out += '\n';
  }
  return out;
}

Output seq(const Words& words) {
  std::vector<std::uint64_t> numbers;
  char separator = '\n';
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "-s" && i + 1 < words.size() && words[i + 1].size() == 1) {
      separator = words[++i][0];
      continue;
    }
    const auto n = text::parse_number(words[i], 1'000'000'000);
    if (!n) return std::nullopt;
    numbers.push_back(*n);
  }
  if (numbers.empty() || numbers.size() > 3) return std::nullopt;
  const std::uint64_t first = numbers.size() > 1 ? numbers.front() : 1;
  const std::uint64_t step = numbers.size() > 2 ? numbers[1] : 1;
  const std::uint64_t last = numbers.back();
  if (step == 0) return std::nullopt;
  std::string out;
  std::uint64_t count = 0;
  for (std::uint64_t i = first; i <= last && count < kMaxCount; i += step, ++count) {
    out += std::to_string(i);
    out += separator;
  }
  return out;
}

Output echo(const Words& words) {
  std::size_t i = 1;
  bool newline = true;
  if (i < words.size() && words[i] == "-n") {
    newline = false;
    ++i;
  }
  if (i < words.size() && words[i].starts_with("-e")) return std::nullopt;
  std::string out;
  for (std::size_t k = i; k < words.size(); ++k) out += (k > i ? " " : "") + words[k];
  return out + (newline ? "\n" : "");
}

/// head and tail: -n N, -nN, -N, --lines=N; for tail also +N.
Output part(const Words& words, const std::string& input, bool head) {
  std::string count = "10";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-n" && i + 1 < words.size()) {
      count = words[++i];
    } else if (word.starts_with("-n")) {
      count = word.substr(2);
    } else if (word.starts_with("--lines=")) {
      count = word.substr(8);
    } else if (word.size() > 1 && word[0] == '-') {
      count = word.substr(1);
    } else {
      return std::nullopt;
    }
  }
  const bool from = !head && count.starts_with('+');
  const auto n = text::parse_number(from ? count.substr(1) : count, kMaxCount);
  if (!n) return std::nullopt;
  const auto lines = lines_of(input);
  const std::size_t size = lines.size();
  if (head) return join(lines, 0, std::min<std::size_t>(*n, size));
  const std::size_t first = from ? std::min<std::size_t>(*n > 0 ? *n - 1 : 0, size)
                                 : size - std::min<std::size_t>(*n, size);
  return join(lines, first, size);
}

Output wc(const Words& words, const std::string& input) {
  if (words.size() != 2) return std::nullopt;
  if (words[1] == "-l") return std::to_string(lines_of(input).size()) + "\n";
  if (words[1] != "-w") return std::nullopt;
  std::size_t count = 0;
  bool inside = false;
  for (const char c : input) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    if (!blank && !inside) ++count;
    inside = !blank;
  }
  return std::to_string(count) + "\n";
}

std::optional<char> one_character(const std::string& word) {
  if (word == "\\n") return '\n';
  if (word == "\\t") return '\t';
  return word.size() == 1 ? std::optional<char>(word[0]) : std::nullopt;
}

Output tr(const Words& words, std::string input) {
  if (words.size() != 3) return std::nullopt;
  const auto to = one_character(words[2]);
  if (!to) return std::nullopt;
  if (words[1] == "-d") {
    std::erase(input, *to);
    return input;
  }
  const auto from = one_character(words[1]);
  if (!from) return std::nullopt;
  std::replace(input.begin(), input.end(), *from, *to);
  return input;
}

/// cut -d X -f N
Output cut(const Words& words, const std::string& input) {
  char delimiter = '\t';
  std::optional<std::uint64_t> field;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with("-d") && !words[i].starts_with("-f")) return std::nullopt;
    const bool glued = words[i].size() > 2;
    if (!glued && i + 1 >= words.size()) return std::nullopt;
    const bool is_field = words[i][1] == 'f';
    const std::string value = glued ? words[i].substr(2) : words[++i];
    if (is_field) {
      field = text::parse_number(value, kMaxCount);
    } else if (value.size() == 1) {
      delimiter = value[0];
    } else {
      return std::nullopt;
    }
  }
  if (!field || *field == 0) return std::nullopt;
  std::string out;
  for (const std::string_view line : lines_of(input)) {
    const auto parts = text::split(line, delimiter);
    if (parts.size() == 1) {
      out += line;
    } else if (*field <= parts.size()) {
      out += parts[*field - 1];
    }
    out += '\n';
  }
  return out;
}

/// paste -sd, : all lines joined.
Output paste(const Words& words, const std::string& input) {
  std::string options;
  for (std::size_t i = 1; i < words.size(); ++i) options += words[i] == "-" ? "" : words[i];
  char separator = '\t';
  if (options == "-sd,") separator = ',';
  if (options == "-sd:") separator = ':';
  if (options == "-s-d,") separator = ',';
  if (separator == '\t' && options != "-s") return std::nullopt;
  std::string out;
  for (const std::string_view line : lines_of(input)) {
    if (!out.empty()) out += separator;
    out += line;
  }
  return out + "\n";
}

Output hostnames(const Words& words, const Variables& variables) {
  if (words.size() < 3 || words[1] != "show" || !words[2].starts_with("hostname")) {
    return std::nullopt;
  }
  std::string list;
  if (words.size() > 3) {
    list = words[3];
  } else if (const Value* value = variables.find("SLURM_JOB_NODELIST");
             value != nullptr && value->known) {
    list = value->text();
  }
  const auto names = text::expand_hostlist(list);
  if (list.empty() || !names) return std::nullopt;
  std::string out;
  for (const std::string& name : *names) out += name + "\n";
  return out;
}

Output node_name(const Words& words, const Variables& variables) {
  if (words.size() > 2 || (words.size() == 2 && words[1] != "-s")) return std::nullopt;
  const Value* value = variables.find("SLURMD_NODENAME");
  if (value == nullptr || !value->known) return std::nullopt;
  return value->text() + "\n";
}

Output path_part(const Words& words, bool directory) {
  if (words.size() < 2 || words.size() > 3 || words[1].starts_with('-')) return std::nullopt;
  std::string path = words[1];
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (directory) {
    if (slash == std::string::npos) return ".\n";
    return (slash == 0 ? "/" : path.substr(0, slash)) + "\n";
  }
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (words.size() == 3 && name.ends_with(words[2]) && name != words[2]) {
    name.resize(name.size() - words[2].size());
  }
  return name + "\n";
}

Output expr(const Words& words) {
  std::string expression;
  for (std::size_t i = 1; i < words.size(); ++i) expression += words[i] + " ";
  if (expression.find_first_not_of("0123456789+-*/%() ") != std::string::npos) return std::nullopt;
  const std::map<std::string, std::string> none;
  Variables variables(none);
  const auto value = evaluate(expression, variables);
  return value ? Output(std::to_string(*value) + "\n") : std::nullopt;
}

constexpr std::array<std::string_view, 13> kKnown = {
    "seq", "echo",  "head",     "tail",     "wc",      "tr",  "cut",
    "cat", "paste", "scontrol", "hostname", "dirname", "expr"};

}  // namespace

bool has_known_output(const std::string& name) {
  const std::string_view base = base_name(name);
  return base == "basename" || std::find(kKnown.begin(), kKnown.end(), base) != kKnown.end();
}

std::optional<std::string> known_output(const std::vector<std::string>& words,
                                        const std::optional<std::string>& piped,
                                        const Variables& variables) {
  if (words.empty()) return std::nullopt;
  const std::string_view name = base_name(words[0]);
  constexpr std::array<std::string_view, 7> filters = {"head", "tail", "wc",   "tr",
                                                       "cut",  "cat",  "paste"};
  const bool reads = std::find(filters.begin(), filters.end(), name) != filters.end();
  if (reads && !piped) return std::nullopt;
  const std::string input = piped.value_or("");
  if (name == "seq") return seq(words);
  if (name == "echo") return echo(words);
  if (name == "head" || name == "tail") return part(words, input, name == "head");
  if (name == "wc") return wc(words, input);
  if (name == "tr") return tr(words, input);
  if (name == "cut") return cut(words, input);
  if (name == "cat") return words.size() == 1 ? Output(input) : std::nullopt;
  if (name == "paste") return paste(words, input);
  if (name == "scontrol") return hostnames(words, variables);
  if (name == "hostname") return node_name(words, variables);
  if (name == "basename" || name == "dirname") return path_part(words, name == "dirname");
  if (name == "expr") return expr(words);
  return std::nullopt;
}

}  // namespace berth::script
