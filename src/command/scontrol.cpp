// What scontrol.h promises: flags, the table of sub-commands, the prompt.
#include "command/scontrol.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "base/printable.h"
#include "command/help_text.h"
#include "command/option_words.h"
#include "command/print.h"
#include "command/scontrol_session.h"
#include "command/version.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::command {
namespace scontrol {
namespace {

using Run = int (*)(Session&, Words);

template <const char* Action>
int act_as(Session& session, Words words) {
  return act(session, Action, words);
}
constexpr char kHold[] = "hold";
constexpr char kUserHold[] = "uhold";
constexpr char kRelease[] = "release";
constexpr char kRequeue[] = "requeue";
constexpr char kRequeueHold[] = "requeuehold";
constexpr char kSuspend[] = "suspend";
constexpr char kResume[] = "resume";
constexpr char kTop[] = "top";

int version(Session& session, Words) {
  session.out += fmt::format("{}\n", kSlurmVersion);
  return 0;
}
int help(Session& session, Words) {
  session.out += scontrol_help();
  return 0;
}
int do_all(Session& session, Words) {
  session.all = true;
  return 0;
}
int do_hide(Session& session, Words) {
  session.all = false;
  return 0;
}
int do_detail(Session& session, Words) {
  session.style.detail = true;
  return 0;
}
int do_one_line(Session& session, Words) {
  session.style.one_line = true;
  return 0;
}
int do_quiet(Session& session, Words) {
  session.quiet = true;
  return 0;
}

/// A sub-command: the name, how many letters of it are enough, how many words it takes.
struct ScontrolRow {
  std::string_view name;
  std::size_t letters;
  std::size_t least;
  std::size_t most;
  Run run;
};
constexpr std::size_t kAny = SIZE_MAX;

constexpr std::array kScontrolRows = {
    ScontrolRow{"show", 2, 1, kAny, show},
    ScontrolRow{"update", 1, 1, kAny, update},
    ScontrolRow{"create", 2, 1, kAny, create},
    ScontrolRow{"delete", 3, 1, kAny, remove},
    ScontrolRow{"hold", 2, 1, kAny, act_as<kHold>},
    ScontrolRow{"holdu", 5, 1, kAny, act_as<kUserHold>},
    ScontrolRow{"uhold", 2, 1, kAny, act_as<kUserHold>},
    ScontrolRow{"release", 3, 1, kAny, act_as<kRelease>},
    ScontrolRow{"requeue", 3, 1, kAny, act_as<kRequeue>},
    ScontrolRow{"requeuehold", 8, 1, kAny, act_as<kRequeueHold>},
    ScontrolRow{"suspend", 2, 1, kAny, act_as<kSuspend>},
    ScontrolRow{"resume", 3, 1, kAny, act_as<kResume>},
    ScontrolRow{"top", 3, 1, 1, act_as<kTop>},
    ScontrolRow{"notify", 1, 2, kAny, notify},
    ScontrolRow{"wait_job", 2, 1, 1, wait_job},
    ScontrolRow{"write", 2, 1, 3, write},
    ScontrolRow{"explain", 3, 1, 2, explain},
    ScontrolRow{"ping", 3, 0, 0, ping},
    ScontrolRow{"reconfigure", 3, 0, 0, reconfigure},
    ScontrolRow{"shutdown", 8, 0, 1, shutdown},
    ScontrolRow{"setdebug", 8, 1, 1, set_debug},
    ScontrolRow{"token", 2, 0, kAny, token},
    ScontrolRow{"revoke", 3, 1, kAny, revoke},
    ScontrolRow{"errnumstr", 2, 1, 1, error_text},
    ScontrolRow{"completing", 2, 0, 0, completing},
    ScontrolRow{"listjobs", 5, 0, 1, list_jobs},
    ScontrolRow{"liststeps", 5, 0, 1, list_steps},
    ScontrolRow{"power", 3, 2, kAny, power},
    ScontrolRow{"version", 4, 0, 0, version},
    ScontrolRow{"help", 2, 0, 0, help},
    ScontrolRow{"all", 3, 0, 0, do_all},
    ScontrolRow{"hide", 2, 0, 0, do_hide},
    ScontrolRow{"details", 1, 0, 0, do_detail},
    ScontrolRow{"oneliner", 1, 0, 0, do_one_line},
    ScontrolRow{"quiet", 4, 0, 0, do_quiet},
};

const ScontrolRow* find_row(std::string_view word) {
  const std::string lower = text::to_lower(word);
  for (const ScontrolRow& row : kScontrolRows) {
    if (row.name == lower) return &row;
  }
  for (const ScontrolRow& row : kScontrolRows) {
    if (lower.size() >= row.letters && row.name.starts_with(lower)) return &row;
  }
  return nullptr;
}

int run_words(Session& session, Words words) {
  const std::string& word = words.front();
  const ScontrolRow* row = find_row(word);
  if (row == nullptr) {
    const std::string lower = text::to_lower(word);
    if (const std::string_view instead = instead_of("command", lower); !instead.empty()) {
      return session.refuse(fmt::format("{} is not supported by berth", lower), instead);
    }
    std::vector<std::string_view> names;
    for (const ScontrolRow& known : kScontrolRows) names.push_back(known.name);
    const std::string nearest = text::nearest(lower, names);
    return session.refuse(fmt::format("invalid keyword: {}", word),
                          nearest.empty() ? "`scontrol help` lists the commands"
                                          : fmt::format("did you mean {}?", nearest));
  }
  const Words rest = words.subspan(1);
  if (rest.size() < row->least) {
    return session.complain(fmt::format("too few arguments for keyword:{}", word));
  }
  if (rest.size() > row->most) {
    return session.complain(fmt::format("too many arguments for keyword:{}", word));
  }
  const int code = row->run(session, rest);
  session.hang_up();
  session.verbatim ? print_table(session.out) : print_text(session.out);
  session.out.clear();
  session.verbatim = false;
  return code;
}

/// Words of a line at the prompt; quotes keep blanks together.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? '\0' : c;
      inside = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (inside) words.push_back(std::exchange(word, {}));
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(word);
  return words;
}

int converse(Session& session) {
  int code = 0;
  std::vector<std::string> last;
  std::string line;
  for (;;) {
    std::fputs("scontrol: ", stdout);
    std::fflush(stdout);
    if (!std::getline(std::cin, line)) {
      std::fputs("\n", stdout);
      return code;
    }
    std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words.size() == 1 && words.front() == "!!") words = last;
    if (words.empty()) continue;
    if (words.front() == "quit" || words.front() == "exit") return code;
    code = run_words(session, words);
    last = std::move(words);
  }
}

/// The uid and gid of a number or of a name in /etc/passwd (no name service in a static program).
std::optional<std::pair<uid_t, gid_t>> account_of(const std::string& who) {
  std::ifstream accounts("/etc/passwd");
  std::string line;
  while (std::getline(accounts, line)) {
    const auto fields = text::split(line, ':');
    if (fields.size() < 4 || (fields[0] != who && fields[2] != who)) continue;
    const auto uid = text::parse_number(fields[2], UINT32_MAX - 1);
    const auto gid = text::parse_number(fields[3], UINT32_MAX - 1);
    if (uid && gid) return std::pair(static_cast<uid_t>(*uid), static_cast<gid_t>(*gid));
  }
  if (const auto uid = text::parse_number(who, UINT32_MAX - 1)) {
    return std::pair(static_cast<uid_t>(*uid), static_cast<gid_t>(*uid));
  }
  return std::nullopt;
}

/// -u: the whole command runs as that user, so the controller judges it as theirs.
int become(const Session& session, const std::string& who) {
  const auto account = account_of(who);
  if (!account) return session.refuse(fmt::format("Invalid user id: {}", who), "");
  if (account->first == geteuid()) return 0;
  if (setgid(account->second) != 0 || setuid(account->first) != 0) {
    return session.refuse("Only root may act as another user", "run the command as that user");
  }
  return 0;
}

constexpr std::array kScontrolOptions = {
    OptionRow{"all", 'a'},
    OptionRow{"details", 'd'},
    OptionRow{"future", 0},
    OptionRow{"federation", 'F'},
    OptionRow{"help", 'h'},
    OptionRow{"hide", 0},
    OptionRow{"json", 0, Takes::attached},
    OptionRow{"local", 0},
    OptionRow{"clusters", 'M', Takes::value},
    OptionRow{"cluster", 0, Takes::value},
    OptionRow{"oneliner", 'o'},
    OptionRow{"quiet", 'Q'},
    OptionRow{"sibling", 0},
    OptionRow{"uid", 'u', Takes::value},
    OptionRow{"usage", 0},
    OptionRow{"verbose", 'v'},
    OptionRow{"version", 'V'},
    OptionRow{"yaml", 0, Takes::attached},
};

/// An exit code when the flag ends the command.
std::optional<int> set_flag(Session& session, const GivenOption& given) {
  const std::string_view name = given.row->name;
  if (name == "help" || name == "usage") {
    fmt::print("{}", scontrol_help());
    return 0;
  }
  if (name == "version") {
    fmt::print("{}\n", kSlurmVersion);
    return 0;
  }
  if (name == "clusters" || name == "cluster" || name == "federation" || name == "sibling") {
    return session.refuse(fmt::format("--{} is not supported by berth", name),
                          "one berth serves one cluster; run the command there");
  }
  if (name == "yaml") return session.refuse("--yaml is not supported by berth", "use --json");
  if (name == "uid") {
    if (const int code = become(session, *given.value); code != 0) return code;
  }
  session.all = session.all || name == "all";
  session.all = session.all && name != "hide";
  session.style.detail = session.style.detail || name == "details";
  session.style.one_line = session.style.one_line || name == "oneliner";
  session.future = session.future || name == "future";
  session.quiet = session.quiet || name == "quiet";
  session.json = session.json || name == "json";
  return std::nullopt;  // local: always so; verbose: there is nothing more to say
}

}  // namespace

int Session::complain(std::string_view prefix, const Error& error) const {
  if (quiet) return 1;
  std::vector<std::string> lines;
  if (error.messages.empty()) lines.push_back(fmt::format("{}: {}", prefix, error.what()));
  for (const Message& message : error.messages) {
    lines.push_back(message.severity == Severity::error
                        ? fmt::format("{}: {}", prefix, message.text)
                        : render(message, "scontrol"));
  }
  if (!error.hint.empty()) lines.push_back("berth: " + error.hint);
  for (const std::string& line : lines) fmt::print(stderr, "{}\n", printable(line));
  return 1;
}

int Session::complain(std::string_view text) const {
  if (!quiet) fmt::print(stderr, "{}\n", printable(text));
  return 1;
}

int Session::refuse(std::string_view text, std::string_view hint) const {
  print_message({Severity::error, std::string(text)}, "scontrol");
  if (!hint.empty()) print_hint(hint);
  return 1;
}

}  // namespace scontrol

int run_scontrol(std::span<const std::string> words, const request::Environment& environment) {
  using namespace scontrol;
  Session session(environment);
  session.style.times = time_format(environment);
  session.all = environment.contains("SCONTROL_ALL");
  session.argv.assign(words.begin(), words.end());
  const Result<ReadWords> read = read_options("scontrol", kScontrolOptions, words);
  if (!read) return print_error(read.error(), "scontrol");
  for (const GivenOption& given : read->options) {
    if (const auto code = set_flag(session, given)) return *code;
  }
  return read->operands.empty() ? converse(session) : run_words(session, read->operands);
}

}  // namespace berth::command
