// Control flow of a script: lists, pipelines, branches, loops, functions, background jobs.
#include "script/reader.h"

#include <algorithm>

#include "script/arithmetic.h"
#include "script/glob.h"
#include "script/scan.h"

namespace berth::script {
namespace {

constexpr std::size_t kMaxNotes = 100;
constexpr int kMaxIterations = 10'000;

std::string at_line(int line) {
  return "line " + std::to_string(line);
}

}  // namespace

Reader::Reader(const std::map<std::string, std::string>& variables,
               const std::vector<std::string>& arguments)
    : variables_(variables),
      expander_(variables_, limits_,
                [this](std::string_view text, int line) { return substitute(text, line); }) {
  expander_.arguments = arguments;
}

Script Reader::read(std::string_view text) {
  const Tree& tree = trees_.emplace_back(parse_shell(text, 1));
  out_.syntax_error = tree.error;
  if (tree.error) note(tree.error->line, "cannot be read as shell: " + tree.error->what);
  run_list(tree.root);
  out_.truncated = limits_.exceeded() || tree.truncated;
  if (out_.truncated) {
    out_.notes.emplace_back(
        "the script is too long or repeats too much: only its beginning was read");
  }
  return std::move(out_);
}

void Reader::note(int line, std::string text) {
  std::string whole = at_line(line) + ": " + std::move(text);
  const bool known = std::find(out_.notes.begin(), out_.notes.end(), whole) != out_.notes.end();
  if (!known && out_.notes.size() < kMaxNotes) out_.notes.push_back(std::move(whole));
}

Reader::Status Reader::run(const Node& node) {
  if (stopped() || !limits_.spend_work(1)) return Status::undecided;
  if (++depth_ > kMaxDepth * 4) {
    limits_.stop();
    return Status::undecided;
  }
  Status status = Status::assumed;
  switch (node.kind) {
    case Node::Kind::simple:
      status = run_simple(node);
      break;
    case Node::Kind::pipeline:
      status = run_pipeline(node);
      break;
    case Node::Kind::and_or:
      status = run_and_or(node);
      break;
    case Node::Kind::list:
      status = run_list(node);
      break;
    case Node::Kind::subshell:
      run_isolated(node.children[0]);
      break;
    case Node::Kind::group:
      status = run_list(node.children[0]);
      break;
    case Node::Kind::for_words:
      status = run_for(node);
      break;
    case Node::Kind::for_arith:
      status = run_for_arithmetic(node);
      break;
    case Node::Kind::loop:
      status = run_loop(node);
      break;
    case Node::Kind::branch:
      status = run_branch(node);
      break;
    case Node::Kind::choice:
      status = run_choice(node);
      break;
    case Node::Kind::function:
      functions_[node.name] = &node.children[0];
      break;
    case Node::Kind::test: {
      const Truth truth = decide_extended_test(node.words, node.line, expander_);
      status = truth == Truth::unknown ? Status::undecided
               : truth == Truth::yes   ? Status::success
                                       : Status::failure;
      break;
    }
    case Node::Kind::arithmetic: {
      const auto value = expander_.arithmetic(node.words[0], node.line);
      status = !value ? Status::undecided : *value != 0 ? Status::success : Status::failure;
      break;
    }
  }
  --depth_;
  return status;
}

/// A subshell: what it changes is lost, and `exit` leaves only it.
void Reader::run_isolated(const Node& node) {
  const std::vector<std::string> arguments = expander_.arguments;
  if (!limits_.spend_work(arguments.size())) return;
  variables_.push_frame();
  run(node);
  variables_.pop_frame();
  expander_.arguments = arguments;
  flow_ = Flow::on;
}

std::size_t Reader::open_chain(int line) {
  const std::size_t chain = next_chain_++;
  out_.events.push_back({Event::Kind::start, 0, line, chain_, {chain}});
  return chain;
}

void Reader::wait_for(std::vector<std::size_t> chains, int line) {
  out_.events.push_back({Event::Kind::wait_for, 0, line, chain_, std::move(chains)});
}

Reader::Status Reader::run_in_background(const Node& node) {
  if (!limits_.spend_command()) return Status::assumed;
  const std::size_t parent = chain_;
  const bool outer = background_;
  const std::size_t chain = open_chain(node.line);
  chain_ = chain;
  background_ = true;
  run_isolated(node);
  background_ = outer;
  chain_ = parent;
  expander_.last_job = std::to_string(kFirstJob + chain);
  return Status::assumed;
}

Reader::Status Reader::run_list(const Node& node) {
  Status status = Status::assumed;
  for (const Node& child : node.children) {
    if (stopped()) break;
    status = child.background ? run_in_background(child) : run(child);
  }
  return status;
}

Reader::Status Reader::run_and_or(const Node& node) {
  Status status = run(node.children[0]);
  for (std::size_t i = 1; i < node.children.size() && !stopped(); ++i) {
    const bool both = node.operators[i - 1] == '&';
    const Node& right = node.children[i];
    const Status runs = both ? Status::success : Status::failure;
    const Status skips = both ? Status::failure : Status::success;
    if (status == skips) continue;
    if (status == runs || (both && status == Status::assumed)) {
      status = run(right);
      continue;
    }
    run_alternatives(
        {&right}, false,
        at_line(right.line) + (both ? ": after &&" : ": only if the command before || fails"));
    status = Status::assumed;
  }
  return status;
}

Reader::Status Reader::run_pipeline(const Node& node) {
  if (node.children.size() == 1) {
    const Status status = run(node.children[0]);
    if (!node.negated) return status;
    if (status == Status::success) return Status::failure;
    return status == Status::failure ? Status::success : Status::undecided;
  }
  std::vector<std::size_t> chains;
  for (std::size_t i = 0; i + 1 < node.children.size() && !stopped(); ++i) {
    if (!limits_.spend_command()) break;
    const std::size_t parent = chain_;
    const std::size_t chain = open_chain(node.line);
    chains.push_back(chain);
    chain_ = chain;
    run_isolated(node.children[i]);
    chain_ = parent;
  }
  run_isolated(node.children.back());
  wait_for(std::move(chains), node.line);
  return node.negated ? Status::undecided : Status::assumed;
}

void Reader::run_alternatives(const std::vector<const Node*>& nodes, bool complete,
                              std::string why) {
  using Ended = std::map<std::string, std::optional<Value>>;
  std::vector<Ended> ends;
  const bool certain = why.empty();
  if (!certain) reasons_.push_back(std::move(why));
  bool all_leave = complete;
  Flow last = Flow::on;
  for (const Node* node : nodes) {
    const std::vector<std::string> arguments = expander_.arguments;
    if (!limits_.spend_work(arguments.size() + 1)) break;
    variables_.push_frame();
    run(*node);
    Ended ended = variables_.pop_frame();
    if (flow_ == Flow::on) ends.push_back(std::move(ended));
    all_leave = all_leave && flow_ != Flow::on;
    last = flow_;
    flow_ = Flow::on;
    expander_.arguments = arguments;
  }
  if (!certain) reasons_.pop_back();
  if (all_leave) flow_ = last;

  std::map<std::string, std::size_t> changed;
  for (const Ended& ended : ends) {
    for (const auto& [name, value] : ended) ++changed[name];
  }
  for (const auto& [name, count] : changed) {
    std::optional<Value> common;
    bool agree = complete && count == ends.size();
    bool first = true;
    for (const Ended& ended : ends) {
      const auto at = ended.find(name);
      if (at == ended.end()) continue;
      if (first) {
        common = at->second;
      } else {
        agree = agree && common == at->second;
      }
      first = false;
    }
    if (agree && common) {
      variables_.set(name, *common);
    } else if (agree) {
      variables_.unset(name);
    } else {
      Value value = Value::unknown();
      value.exported = common && common->exported;
      variables_.set(name, std::move(value));
    }
  }
}

Reader::Status Reader::run_branch(const Node& node) {
  std::vector<const Node*> bodies;
  const std::size_t pairs = node.children.size() / 2;
  bool complete = false;
  for (std::size_t i = 0; i < pairs && !stopped(); ++i) {
    const Status status = run(node.children[2 * i]);
    if (status == Status::failure) continue;
    bodies.push_back(&node.children[2 * i + 1]);
    complete = status == Status::success;
    if (complete) break;
  }
  if (!complete && node.has_else) {
    bodies.push_back(&node.children.back());
    complete = true;
  }
  if (stopped() || bodies.empty()) return Status::assumed;
  if (complete && bodies.size() == 1) return run(*bodies.front());
  run_alternatives(bodies, complete, at_line(node.line) + ": inside an if");
  return Status::assumed;
}

Reader::Status Reader::run_choice(const Node& node) {
  const Field subject = expander_.single(node.words[0], node.line);
  std::vector<const Node*> bodies;
  bool complete = false;
  bool falls = false;
  for (const Node& body : node.children) {
    bool matches = falls || !subject.known;
    bool every = falls;
    for (const std::string& word : body.words) {
      const Field pattern = expander_.pattern(word, body.line);
      every = every || pattern.text == "*";
      if (subject.known && pattern.known && limits_.spend_work(subject.text.size())) {
        const bool found = glob_match(pattern.text, subject.text);
        matches = matches || found;
        every = every || found;
      } else {
        matches = true;
      }
    }
    if (!matches && !every) continue;
    bodies.push_back(&body);
    falls = body.negated;
    complete = complete || every;
    if (complete && !falls) break;
  }
  if (bodies.empty() || stopped()) return Status::assumed;
  if (complete && bodies.size() == 1) return run_list(*bodies.front());
  run_alternatives(bodies, complete, at_line(node.line) + ": inside a case");
  return Status::assumed;
}

/// Decides about the loop after its body ran once.
Reader::Loop Reader::after_body() {
  if (limits_.exceeded()) return Loop::done;
  if (flow_ == Flow::on) return Loop::next;
  if (flow_ != Flow::break_loop && flow_ != Flow::continue_loop) return Loop::done;
  const bool ends = flow_ == Flow::break_loop || loops_to_leave_ > 1;
  if (loops_to_leave_ > 1) {
    --loops_to_leave_;
  } else {
    flow_ = Flow::on;
  }
  return ends ? Loop::done : Loop::next;
}

Reader::Status Reader::run_for(const Node& node) {
  std::vector<Field> values;
  if (node.has_words) {
    for (std::size_t i = 0; i < node.words.size() && !stopped(); ++i) {
      for (Field& field : expander_.fields(node.words[i], node.word_lines[i])) {
        values.push_back(std::move(field));
      }
    }
  } else {
    for (const std::string& argument : expander_.arguments)
      values.push_back({argument, true, false});
  }
  const bool unsure = node.negated || std::any_of(values.begin(), values.end(), [](const Field& f) {
                        return !f.known || f.glob;
                      });
  if (stopped()) return Status::assumed;
  if (unsure) {
    note(node.line, "the words of the for loop are not known; its body is read once");
    variables_.set(node.name, Value::unknown());
    run_alternatives({&node.children[0]}, false, at_line(node.line) + ": inside a for loop");
    return Status::assumed;
  }
  ++loop_depth_;
  for (const Field& value : values) {
    if (!limits_.spend_work(1)) break;
    variables_.set(node.name, Value::of(value.text));
    run(node.children[0]);
    if (after_body() == Loop::done) break;
  }
  --loop_depth_;
  return Status::assumed;
}

Reader::Status Reader::run_for_arithmetic(const Node& node) {
  expander_.arithmetic(node.words[0], node.line);
  ++loop_depth_;
  for (int i = 0; !stopped(); ++i) {
    const bool endless = node.words[1].find_first_not_of(" \t\n") == std::string::npos;
    const auto condition = endless ? std::nullopt : expander_.arithmetic(node.words[1], node.line);
    if (condition && *condition == 0) break;
    if (!condition || i >= kMaxIterations) {
      note(node.line, "the end of the for loop is not known; its body is read once");
      run_alternatives({&node.children[0]}, false, at_line(node.line) + ": inside a for loop");
      break;
    }
    run(node.children[0]);
    if (after_body() == Loop::done) break;
    expander_.arithmetic(node.words[2], node.line);
    if (!limits_.spend_work(16)) break;
  }
  --loop_depth_;
  return Status::assumed;
}

Reader::Status Reader::run_loop(const Node& node) {
  const char* word = node.negated ? "until" : "while";
  // `while true` says nothing about how often: read once, like a condition that is not known.
  const Node& condition = node.children[0];
  const bool constant = condition.children.size() == 1 &&
                        condition.children[0].kind == Node::Kind::simple &&
                        condition.children[0].words.size() == 1;
  ++loop_depth_;
  for (int i = 0; !stopped(); ++i) {
    Status status = run(condition);
    if (node.negated && status == Status::success) {
      status = Status::failure;
    } else if (node.negated && status == Status::failure) {
      status = Status::success;
    }
    if (status == Status::failure) break;
    if (status != Status::success || constant || i >= kMaxIterations) {
      note(node.line, std::string(word) + " loop read once");
      const bool runs = constant && status == Status::success;  // `while true` begins, for certain
      run_alternatives({&node.children[1]}, false,
                       runs ? std::string()
                            : at_line(node.line) + (node.negated ? ": inside an " : ": inside a ") +
                                  word + " loop");
      break;
    }
    run(node.children[1]);
    if (after_body() == Loop::done) break;
    if (!limits_.spend_work(16)) break;
  }
  --loop_depth_;
  return Status::assumed;
}

Reader::Status Reader::run_text(std::string_view text, int line) {
  // Dear, because the tree is kept: functions may have been defined in it.
  if (!limits_.spend_work(256 * (text.size() + 16))) return Status::undecided;
  const Tree& tree = trees_.emplace_back(parse_shell(text, line));
  if (tree.error) note(line, "the text it runs cannot be read as shell: " + tree.error->what);
  return run(tree.root);
}

Reader::Status Reader::call(const Node& function, std::vector<std::string> arguments, int line) {
  if (locals_.size() >= kMaxDepth) {
    note(line, "functions call each other too deeply");
    limits_.stop();
    return Status::undecided;
  }
  std::swap(expander_.arguments, arguments);
  const int outer = called_from_;
  if (called_from_ == 0) called_from_ = line;
  locals_.emplace_back();
  const Status status = run(function);
  for (const auto& [name, value] : locals_.back()) {
    value ? variables_.set(name, *value) : variables_.unset(name);
  }
  locals_.pop_back();
  called_from_ = outer;
  std::swap(expander_.arguments, arguments);
  if (flow_ == Flow::return_call) flow_ = Flow::on;
  return status;
}

}  // namespace berth::script
