// Walks the tree of a script in the order it would run, keeping variables, and writes down the
// commands and events. Internal to the module.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "script/condition.h"
#include "script/expand.h"
#include "script/limits.h"
#include "script/syntax.h"
#include "script/variables.h"

namespace berth::script {

/// $! of chain n is kFirstJob + n, so that `wait $pid` can be followed.
inline constexpr std::size_t kFirstJob = 1'000'000;

class Reader {
 public:
  Reader(const std::map<std::string, std::string>& variables,
         const std::vector<std::string>& arguments);

  Script read(std::string_view text);

 private:
  /// How a command ended. `assumed`: it is an ordinary command, taken to succeed.
  enum class Status { success, failure, assumed, undecided };
  enum class Flow { on, break_loop, continue_loop, return_call, exit_script };
  enum class Loop { next, done };

  // reader.cpp: control flow
  Status run(const Node& node);
  Status run_in_background(const Node& node);
  Status run_list(const Node& node);
  Status run_and_or(const Node& node);
  Status run_pipeline(const Node& node);
  Status run_branch(const Node& node);
  Status run_choice(const Node& node);
  Status run_for(const Node& node);
  Status run_for_arithmetic(const Node& node);
  Status run_loop(const Node& node);
  Status run_text(std::string_view text, int line);
  Status call(const Node& function, std::vector<std::string> arguments, int line);
  Loop after_body();
  /// Runs the nodes as alternatives of which at most one runs (exactly one when `complete`), and
  /// keeps afterwards only what all of them agree on. `why` is empty when what runs is certain.
  void run_alternatives(const std::vector<const Node*>& nodes, bool complete, std::string why);
  void run_isolated(const Node& node);
  std::size_t open_chain(int line);
  void wait_for(std::vector<std::size_t> chains, int line);
  void note(int line, std::string text);
  [[nodiscard]] bool stopped() const { return limits_.exceeded() || flow_ != Flow::on; }

  // command.cpp: simple commands
  Status run_simple(const Node& node);
  void run_assignment(std::string_view word, int line, bool exported);
  std::optional<Status> run_builtin(const Node& node, const std::vector<Field>& fields);
  void declare(const Node& node, std::size_t first, const std::string& name);
  void run_wait(std::span<const Field> arguments, int line);
  void run_unset(std::span<const Field> arguments);
  void run_shift(std::span<const Field> arguments);
  void run_set(std::span<const Field> arguments);
  void run_read(const Node& node, std::span<const Field> arguments, bool lines);
  void leave(const std::string& name, std::span<const Field> arguments);
  void record(const Node& node, const std::vector<Field>& fields,
              std::map<std::string, std::string> assignments);
  void note_hidden_launcher(const Command& command);
  void describe(Command& command, const std::vector<Field>& fields) const;
  std::optional<std::string> substitute(std::string_view text, int line);
  std::optional<std::string> computed(const Node& node);
  void run_elsewhere(const Node& node);

  Limits limits_;
  Variables variables_;
  Expander expander_;
  Script out_;
  std::deque<Tree> trees_;  // functions point into them
  std::map<std::string, const Node*> functions_;
  std::vector<std::map<std::string, std::optional<Value>>> locals_;  // one for each call
  std::vector<std::string> reasons_;  // why what runs now may not run; outermost first
  Flow flow_ = Flow::on;
  std::uint64_t loops_to_leave_ = 0;
  std::size_t loop_depth_ = 0;
  std::size_t depth_ = 0;
  int called_from_ = 0;
  bool background_ = false;
  std::size_t chain_ = 0;
  std::size_t next_chain_ = 1;
  const Changes* snapshot_ = nullptr;  // the one charged last
};

}  // namespace berth::script
