// Simple commands: assignments, builtins that matter for what runs later, and the record of
// everything else.
#include <algorithm>
#include <array>

#include "script/reader.h"
#include "script/scan.h"
#include "script/substitution.h"
#include "text/number.h"

namespace berth::script {
namespace {

struct Assignment {
  std::string name;
  std::string_view subscript;  // a[…]=
  std::string_view value;
  bool append = false;
};

std::optional<Assignment> as_assignment(std::string_view word) {
  const std::size_t n = name_length(word);
  if (n == 0) return std::nullopt;
  Assignment result{std::string(word.substr(0, n)), {}, {}, false};
  word.remove_prefix(n);
  if (word.starts_with('[')) {
    const std::size_t close = word.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    result.subscript = word.substr(1, close - 1);
    word.remove_prefix(close + 1);
  }
  if (word.starts_with('+')) {
    result.append = true;
    word.remove_prefix(1);
  }
  if (!word.starts_with('=')) return std::nullopt;
  result.value = word.substr(1);
  return result;
}

bool is_declaration(std::string_view word) {
  return word == "export" || word == "declare" || word == "typeset" || word == "local" ||
         word == "readonly";
}

/// Commands that set variables nobody here can see.
bool is_opaque(std::string_view word) {
  constexpr std::array<std::string_view, 7> known = {"source", ".",     "module", "ml",
                                                     "spack",  "conda", "mamba"};
  return std::find(known.begin(), known.end(), word) != known.end();
}

bool is_shell_program(std::string_view name) {
  return name == "bash" || name == "sh" || name == "dash" || name == "zsh" || name == "ksh";
}

}  // namespace

void Reader::run_assignment(std::string_view word, int line, bool exported) {
  const auto assignment = as_assignment(word);
  if (!assignment) return;
  const Value* old = variables_.find(assignment->name);
  Value value = Value::of("");
  if (assignment->value.starts_with('(')) {
    value.items.clear();
    value.array = true;
    std::string_view inside = assignment->value.substr(1);
    if (inside.ends_with(')')) inside.remove_suffix(1);
    // The elements are words like any others: let the parser find them.
    if (!limits_.spend_work(inside.size() + 1)) return;
    const Tree tree = parse_shell(std::string("x ") + std::string(inside), line);
    for (const Node& part : tree.root.children) {
      for (std::size_t i = &part == &tree.root.children.front() ? 1 : 0; i < part.words.size();
           ++i) {
        for (const Field& field : expander_.fields(part.words[i], line)) {
          value.items.push_back(field.text);
          value.known = value.known && field.known && !field.glob;
        }
      }
    }
    if (tree.error) value.known = false;
  } else {
    const Field field = expander_.single(assignment->value, line);
    value.items = {field.text};
    value.known = field.known;
  }
  old = variables_.find(assignment->name);
  if (!assignment->subscript.empty()) {
    const auto index = expander_.arithmetic(assignment->subscript, line);
    old = variables_.find(assignment->name);
    Value whole = old != nullptr ? *old : Value{{}, true, true, false};
    whole.array = true;
    const std::size_t size = whole.items.size();
    if (!index || *index < 0 || static_cast<std::uint64_t>(*index) > size + 64 || !value.known) {
      whole.known = false;  // sparse and associative arrays are not followed
    } else {
      const auto at = static_cast<std::size_t>(*index);
      if (at >= size) whole.items.resize(at + 1);
      whole.items[at] = value.items.front();
    }
    value = std::move(whole);
  } else if (assignment->append && old != nullptr) {
    Value whole = *old;
    whole.known = whole.known && value.known;
    if (value.array) {
      whole.array = true;
      whole.items.insert(whole.items.end(), value.items.begin(), value.items.end());
    } else if (whole.items.empty()) {
      whole.items = value.items;
    } else {
      whole.items.front() += value.text();
    }
    value = std::move(whole);
  }
  std::size_t bytes = 0;
  for (const std::string& item : value.items) bytes += item.size() + 1;
  if (!limits_.spend_work(bytes) || bytes > kMaxExpansion) return limits_.stop();
  value.exported = exported || value.exported;
  variables_.set(assignment->name, std::move(value));
}

void Reader::declare(const Node& node, std::size_t first, const std::string& name) {
  bool exported = name == "export";
  for (std::size_t i = first + 1; i < node.words.size() && !stopped(); ++i) {
    const std::string& word = node.words[i];
    if (word.starts_with('-')) {
      exported = exported || word.find('x') != std::string::npos;
      if (name == "export" && word.find('n') != std::string::npos) exported = false;
      continue;
    }
    const std::string variable = word.substr(0, name_length(word));
    if (name == "local" && !locals_.empty() && !variable.empty()) {
      const Value* old = variables_.find(variable);
      locals_.back().try_emplace(variable, old == nullptr ? std::nullopt : std::optional(*old));
    }
    if (as_assignment(word)) {
      run_assignment(word, node.word_lines[i], exported);
    } else if (exported && variable == word) {
      variables_.mark_exported(variable);
    } else if (exported) {  // export $pairs
      for (const Field& field : expander_.fields(word, node.word_lines[i])) {
        if (field.known && as_assignment(field.text)) run_assignment(field.text, node.line, true);
      }
    }
  }
}

void Reader::run_unset(std::span<const Field> arguments) {
  for (const Field& argument : arguments) {
    if (argument.text.starts_with('-')) continue;
    variables_.unset(argument.text);
    functions_.erase(argument.text);
  }
}

void Reader::run_shift(std::span<const Field> arguments) {
  std::uint64_t count = 1;
  if (!arguments.empty()) count = text::parse_number(arguments[0].text, 1'000'000).value_or(1);
  auto& values = expander_.arguments;
  if (count > values.size()) return;
  if (!limits_.spend_work(values.size())) return;
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
}

void Reader::run_set(std::span<const Field> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool names_option = arguments[i].text.ends_with('o') && arguments[i].text.size() > 1;
    const bool option = arguments[i].text.starts_with('-') || arguments[i].text.starts_with('+');
    if (option && arguments[i].text != "--") {
      if (names_option) ++i;  // -o pipefail, -euo pipefail
      continue;
    }
    expander_.arguments.clear();
    for (std::size_t k = i + (option ? 1 : 0); k < arguments.size(); ++k) {
      expander_.arguments.push_back(arguments[k].text);
    }
    return;
  }
}

/// read NAME… and mapfile/readarray NAME (`lines`), when the input is known.
void Reader::run_read(const Node& node, std::span<const Field> arguments, bool lines) {
  std::optional<std::string> input;
  if (node.input.starts_with("<(") && node.input.ends_with(')')) {
    input = substitute(std::string_view(node.input).substr(2, node.input.size() - 3), node.line);
  } else if (!node.input.empty() && (node.input[0] == '"' || node.input[0] == '$')) {
    const Field field = expander_.single(node.input, node.line);
    if (field.known) input = field.text;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& text = arguments[i].text;
    if (text == "-d" || text == "-u" || text == "-n" ||
        (!lines && (text == "-p" || text == "-t"))) {
      ++i;
    } else if (name_length(text) == text.size() && !text.empty()) {
      names.push_back(text);
    }
  }
  if (lines && names.empty()) names.emplace_back("MAPFILE");
  for (const std::string& name : names) {
    Value value = Value::unknown();
    value.array = lines;
    if (input && (lines || names.size() == 1)) {
      value = Value::of(input->substr(0, input->find('\n')));
      if (lines) {
        value = {{}, true, true, false};
        for (std::size_t at = 0; at < input->size();) {
          const std::size_t end = std::min(input->find('\n', at), input->size());
          value.items.push_back(input->substr(at, end - at));
          at = end + 1;
        }
      }
    }
    variables_.set(name, std::move(value));
  }
}

void Reader::leave(const std::string& name, std::span<const Field> arguments) {
  if (name == "exit") {
    flow_ = Flow::exit_script;
  } else if (name == "return") {
    flow_ = locals_.empty() ? Flow::exit_script : Flow::return_call;
  } else if (loop_depth_ > 0) {
    flow_ = name == "break" ? Flow::break_loop : Flow::continue_loop;
    loops_to_leave_ = 1;
    if (!arguments.empty()) {
      loops_to_leave_ = text::parse_number(arguments[0].text, loop_depth_).value_or(1);
    }
  }
}

void Reader::run_wait(std::span<const Field> arguments, int line) {
  std::vector<std::size_t> chains;
  bool all = arguments.empty();
  for (const Field& argument : arguments) {
    if (argument.text == "-n") return wait_for({}, line);
    const auto job = argument.known ? text::parse_number(argument.text) : std::nullopt;
    if (job && *job > kFirstJob && *job - kFirstJob < next_chain_) {
      chains.push_back(*job - kFirstJob);
    } else {
      all = true;  // `wait %1`, `wait $(jobs -p)`: not followed, and all is the usual case
    }
  }
  if (!all) return wait_for(std::move(chains), line);
  out_.events.push_back({Event::Kind::wait_all, 0, line, chain_, {}});
}

/// Commands of the shell itself. nullopt: it is none, or it is recorded like any other.
std::optional<Reader::Status> Reader::run_builtin(const Node& node,
                                                  const std::vector<Field>& fields) {
  const std::string& name = fields[0].text;
  const std::span<const Field> arguments = std::span(fields).subspan(1);
  if (name == ":" || name == "true") return Status::success;
  if (name == "false") return Status::failure;
  if (name == "[" || name == "test") {
    const bool bracket = name == "[" && !arguments.empty() && arguments.back().text == "]";
    const Truth truth = decide_test(bracket ? arguments.first(arguments.size() - 1) : arguments);
    if (truth == Truth::unknown) return Status::undecided;
    return truth == Truth::yes ? Status::success : Status::failure;
  }
  if (name == "unset") return run_unset(arguments), Status::assumed;
  if (name == "shift") return run_shift(arguments), Status::assumed;
  if (name == "wait") return run_wait(arguments, node.line), Status::assumed;
  if (name == "exit" || name == "return" || name == "break" || name == "continue") {
    return leave(name, arguments), Status::assumed;
  }
  if (name == "read") return run_read(node, arguments, false), Status::undecided;
  if (name == "mapfile" || name == "readarray") {
    return run_read(node, arguments, true), Status::assumed;
  }
  if (name == "let") {
    for (const Field& argument : arguments) expander_.arithmetic(argument.text, node.line);
    return Status::assumed;
  }
  if (name == "eval") {
    std::string text;
    bool known = true;
    for (const Field& argument : arguments) {
      text += argument.text + " ";
      known = known && argument.known;
    }
    if (!known) expander_.unset_is_unknown = true;
    return known ? run_text(text, node.line) : Status::undecided;
  }
  return std::nullopt;
}

Reader::Status Reader::run_simple(const Node& node) {
  std::size_t first = 0;
  while (first < node.words.size() && as_assignment(node.words[first])) ++first;
  std::map<std::string, std::string> assignments;
  if (first == node.words.size() || is_declaration(node.words[first])) {
    for (std::size_t i = 0; i < first; ++i) {
      run_assignment(node.words[i], node.word_lines[i], false);
    }
    if (first < node.words.size()) declare(node, first, node.words[first]);
    for (std::size_t i = 0; i < node.words.size(); ++i) {
      const auto assignment = as_assignment(node.words[i]);
      if (!assignment) continue;
      const Value* value = variables_.find(assignment->name);
      if (value != nullptr && value->known) assignments[assignment->name] = value->text();
    }
    std::vector<Field> fields;
    for (std::size_t i = first; i < node.words.size(); ++i)
      fields.push_back({node.words[i], true, false});
    if (!node.words.empty()) record(node, fields, std::move(assignments));
    return Status::assumed;
  }
  for (std::size_t i = 0; i < first; ++i) {
    const auto assignment = as_assignment(node.words[i]);
    const Field value = expander_.single(assignment->value, node.word_lines[i]);
    assignments[assignment->name] = value.text;
  }
  std::vector<Field> fields;
  for (std::size_t i = first; i < node.words.size() && !stopped(); ++i) {
    for (Field& field : expander_.fields(node.words[i], node.word_lines[i])) {
      fields.push_back(std::move(field));
    }
  }
  if (stopped() || fields.empty()) return Status::assumed;
  const std::string name = fields[0].text;
  if (fields[0].known) {
    if (const auto function = functions_.find(name); function != functions_.end()) {
      std::vector<std::string> arguments;
      for (std::size_t i = 1; i < fields.size(); ++i) arguments.push_back(fields[i].text);
      return call(*function->second, std::move(arguments), node.line);
    }
    if (const auto status = run_builtin(node, fields)) return *status;
    if (name == "set") run_set(std::span(fields).subspan(1));
    if (is_opaque(name)) expander_.unset_is_unknown = true;
  }
  if (is_shell_program(base_name(name)) && fields.size() > 2 && fields[1].text.starts_with('-') &&
      fields[1].text.ends_with('c') && fields[2].known) {
    if (!limits_.spend_work(fields[2].text.size() + 16)) return Status::assumed;
    run_elsewhere(parse_shell(fields[2].text, node.line).root);
    return Status::assumed;
  }
  record(node, fields, std::move(assignments));
  if (name == "exec") flow_ = Flow::exit_script;
  return Status::assumed;
}

void Reader::describe(Command& command, const std::vector<Field>& fields) const {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].known) continue;
    command.unsure_words.push_back(i);
    if (command.why_uncertain.empty()) {
      command.why_uncertain = "the value of " + fields[i].text.substr(0, 200) + " is not known";
    }
  }
  command.conditional = !reasons_.empty();
  if (command.conditional) command.why_uncertain = reasons_.back();
  command.uncertain = command.conditional || !command.unsure_words.empty();
}

void Reader::record(const Node& node, const std::vector<Field>& fields,
                    std::map<std::string, std::string> assignments) {
  if (!limits_.spend_command()) return;
  Command command;
  command.line = node.line;
  command.called_from = called_from_;
  command.text = node.text;
  for (const Field& field : fields) command.words.push_back(field.text);
  command.assignments = std::move(assignments);
  command.background = background_;
  command.chain = chain_;
  const Launch launch = recognise(command.words);
  command.launcher = launch.launcher;
  command.launcher_at = launch.at;
  command.arguments_at = launch.arguments;
  for (const auto& [name, value] : launch.assignments) command.assignments[name] = value;
  describe(command, fields);
  if (command.launcher == Launcher::none) note_hidden_launcher(command);
  if (command.launcher != Launcher::none) {
    command.environment = variables_.changes();
    if (command.environment.get() != snapshot_) {
      snapshot_ = command.environment.get();
      std::size_t bytes = 0;
      for (const auto& [name, value] : *command.environment) {
        bytes += 64 + name.size() + (value ? value->size() : 0);
      }
      if (!limits_.spend_work(4 * bytes)) return;
    }
  }
  out_.events.push_back({Event::Kind::run, out_.commands.size(), node.line, chain_, {}});
  out_.commands.push_back(std::move(command));
}

/// `parallel srun …`, `xargs srun …`: how often that runs, and how, only running it would tell.
void Reader::note_hidden_launcher(const Command& command) {
  constexpr std::array<std::string_view, 10> kRunners = {
      "parallel", "xargs",  "singularity", "conda", "apptainer",
      "docker",   "podman", "ssh",         "flock", "watch"};
  if (command.launcher_at >= command.words.size()) return;
  const std::string_view runner = base_name(command.words[command.launcher_at]);
  if (std::find(kRunners.begin(), kRunners.end(), runner) == kRunners.end()) return;
  for (std::size_t i = command.launcher_at + 1; i < command.words.size(); ++i) {
    const std::string_view word = command.words[i];
    const std::string first(word.substr(0, word.find(' ')));  // 'srun -n1 app {}' is one word
    const Launcher launcher = recognise(std::span(&first, 1)).launcher;
    if (launcher == Launcher::none) continue;
    return note(command.line, std::string(launcher_name(launcher)) + " inside " +
                                  std::string(runner) + " is not followed");
  }
}

/// The output of a pipeline of commands whose output is known.
std::optional<std::string> Reader::computed(const Node& node) {
  const bool single = node.kind == Node::Kind::simple;
  if (!single && node.kind != Node::Kind::pipeline) return std::nullopt;
  const std::size_t count = single ? 1 : node.children.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Node& part = single ? node : node.children[i];
    if (part.kind != Node::Kind::simple || part.words.empty() || !part.input.empty() ||
        !has_known_output(part.words[0])) {
      return std::nullopt;
    }
  }
  std::optional<std::string> piped;
  for (std::size_t i = 0; i < count; ++i) {
    const Node& part = single ? node : node.children[i];
    std::vector<std::string> words;
    for (std::size_t k = 0; k < part.words.size(); ++k) {
      for (Field& field : expander_.fields(part.words[k], part.word_lines[k])) {
        if (!field.known || field.glob) return std::nullopt;
        words.push_back(std::move(field.text));
      }
    }
    piped = known_output(words, piped, variables_);
    if (!piped || !limits_.spend_work(piped->size() + 16)) return std::nullopt;
  }
  return piped;
}

std::optional<std::string> Reader::substitute(std::string_view text, int line) {
  if (++depth_ > kMaxDepth * 4 || !limits_.spend_work(text.size() + 16)) {
    limits_.stop();
    return std::nullopt;
  }
  const Tree tree = parse_shell(text, line);
  std::optional<std::string> output;
  if (!tree.error && tree.root.children.size() == 1) output = computed(tree.root.children[0]);
  if (output) {
    while (output->ends_with('\n')) output->pop_back();
  } else if (!tree.error) {
    run_elsewhere(tree.root);  // a step may stand inside: it runs, its output is not known
  }
  --depth_;
  return output;
}

/// In a shell of its own: neither variables nor functions come back from it.
void Reader::run_elsewhere(const Node& node) {
  if (!limits_.spend_work(32 * functions_.size())) return;
  const auto functions = functions_;
  run_isolated(node);
  functions_ = functions;
}

}  // namespace berth::script
