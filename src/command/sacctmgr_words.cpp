#include "command/sacctmgr_words.h"

#include <fmt/format.h>

#include <array>

#include "command/builtin_account.h"
#include "command/option_words.h"
#include "command/show_text.h"

namespace berth::command {
namespace {

constexpr OptionRow kSacctmgrOptions[] = {
    {"associations", 's'},
    {"help", 'h'},
    {"immediate", 'i'},  // nothing asks
    {"json", 0, Takes::attached},
    {"noheader", 'n'},
    {"oneliner", 'o'},  // a record is one line
    {"parsable", 'p'},
    {"parsable2", 'P'},
    {"quiet", 'Q'},     // only errors are told
    {"readonly", 'r'},  // nothing is ever written
    {"usage", 0},
    {"verbose", 'v'},
    {"version", 'V'},
    {"yaml", 0, Takes::attached},
};

/// What else sacctmgr does in Slurm, and what to do here.
struct Refused {
  std::string_view word;
  std::string_view instead;
};
constexpr std::array kCommands = {
    Refused{"add", ""},
    Refused{"archive", "sacct shows old jobs: none are taken away"},
    Refused{"clear", "sdiag -r clears the controller's figures"},
    Refused{"create", ""},
    Refused{"delete", ""},
    Refused{"dump", "sacctmgr -P show assoc prints it"},
    Refused{"load", ""},
    Refused{"modify", ""},
    Refused{"ping", "scontrol ping asks the controller, which keeps the history itself"},
    Refused{"reconfigure", "scontrol reconfigure"},
    Refused{"remove", ""},
    Refused{"shutdown", "scontrol shutdown ends the controller, which keeps the history itself"},
    Refused{"update", "scontrol update JobId=… changes jobs"},
};
constexpr std::array kEntities = {
    Refused{"configuration", "scontrol show config"},
    Refused{"coordinators", "the account has none"},
    Refused{"events", "sinfo -R shows why nodes are down"},
    Refused{"federations", "one berth serves one cluster"},
    Refused{"instances", "there are no cloud instances to show"},
    Refused{"jobs", "sacct shows jobs"},
    Refused{"problems", "there are no associations that could have one"},
    Refused{"reservations", "scontrol show reservation"},
    Refused{"resources", "scontrol show licenses"},
    Refused{"runawayjobs", "the controller keeps the history itself: it cannot have any"},
    Refused{"stats", "sdiag"},
    Refused{"transactions", "nothing can be changed"},
    Refused{"tres", "scontrol show config | grep AccountingStorageTRES"},
    Refused{"wckeys", "sacct -o WCKey shows what jobs gave"},
};

struct Listed {
  std::string_view word;
  Entity entity;
};
constexpr std::array kListed = {
    Listed{"accounts", Entity::account}, Listed{"associations", Entity::association},
    Listed{"clusters", Entity::cluster}, Listed{"qos", Entity::qos},
    Listed{"users", Entity::user},
};

bool begins(std::string_view whole, std::string_view word, std::size_t least) {
  return word.size() >= least && word.size() <= whole.size() &&
         text::equal_ignoring_case(whole.substr(0, word.size()), word);
}

std::string what_there_is() {
  return fmt::format(
      "there is one built-in account, {}, to which every user belongs; it needs no "
      "care and cannot be changed",
      kAccount);
}

Result<Entity> entity_of(std::string_view word) {
  for (const Listed& row : kListed) {
    if (begins(row.word, word, row.word == "accounts" ? 2 : 1)) return row.entity;
  }
  for (const Refused& row : kEntities) {
    if (begins(row.word, word, 3)) {
      return fail(Code::unsupported, fmt::format("{}: not kept here", row.word),
                  std::string(row.instead));
    }
  }
  return fail(Code::bad_value, fmt::format("No valid entity in list command: {}", word),
              "what can be shown: account, association, cluster, qos, user");
}

/// true: the words after it say what to list. false: help or version were asked for.
Result<bool> read_command(std::string_view word, SacctmgrOptions& to) {
  if (begins("list", word, 2) || begins("show", word, 3)) return true;
  if (begins("help", word, 1)) {
    to.help = true;
    return false;
  }
  if (begins("version", word, 4)) {
    to.version = true;
    return false;
  }
  for (const Refused& row : kCommands) {
    if (!begins(row.word, word, 2)) continue;
    std::string instead = what_there_is();
    if (!row.instead.empty()) instead += fmt::format("; {}", row.instead);
    return fail(Code::unsupported, fmt::format("{}: accounts are not managed here", row.word),
                std::move(instead));
  }
  return fail(Code::bad_value, fmt::format("invalid keyword: {}", word),
              "sacctmgr show, or list, is what there is");
}

Result<void> read_flag(std::string_view word, SacctmgrOptions& to) {
  if (begins("withassoc", word, 5) || begins("withassociations", word, 5)) {
    to.with_associations = true;
  } else if (begins("withcoordinators", word, 5)) {
    to.with_coordinators = true;
  } else if (begins("onlydefaults", word, 4)) {
    to.only_defaults = true;
  } else if (text::equal_ignoring_case("tree", word)) {
    to.tree = true;
  } else if (begins("wolimits", word, 3) && to.entity == Entity::cluster) {
    to.without_limits = true;
  } else if (begins("withdeleted", word, 5) || begins("withsubaccounts", word, 5) ||
             begins("wopinfo", word, 4) || begins("woplimits", word, 4)) {
    // Nothing was ever deleted, is below another account, or inherits from one: the list is the
    // same.
  } else {
    return fail(Code::unsupported, fmt::format("{}: not known here", word),
                "format=… chooses what is shown; names come as NAME or KEY=NAME");
  }
  return {};
}

bool is_flag(std::string_view word) {
  return begins("with", word.substr(0, 4), 4) || begins("wo", word.substr(0, 2), 2) ||
         begins("onlydefaults", word, 4) || text::equal_ignoring_case("tree", word);
}

std::string_view own_name(Entity entity) {
  switch (entity) {
    case Entity::account:
      return "Account";
    case Entity::cluster:
      return "Cluster";
    case Entity::qos:
      return "Name";
    case Entity::association:
    case Entity::user:
      return "User";
  }
  return "User";
}

Result<void> read_spec(std::string_view word, SacctmgrOptions& to) {
  if (text::equal_ignoring_case(word, "where")) return {};
  if (text::equal_ignoring_case(word, "set")) {
    return fail(Code::unsupported, "set: accounts are not managed here", what_there_is());
  }
  const std::size_t equal = word.find('=');
  if (equal == word.npos) {
    if (is_flag(word)) return read_flag(word, to);
    if (to.entity == Entity::association) {
      return fail(Code::bad_value, fmt::format("Unknown condition: {}", word),
                  fmt::format("write user={} or account={}", word, word));
    }
    to.where.emplace_back(own_name(to.entity), list_of(word));
    return {};
  }
  const std::string_view key = word.substr(0, equal);
  const std::string_view value = word.substr(equal + 1);
  if (begins("format", key, 1)) {
    to.format = to.format ? fmt::format("{},{}", *to.format, value) : std::string(value);
    return {};
  }
  if (begins("names", key, 1)) {
    to.where.emplace_back(own_name(to.entity), list_of(value));
    return {};
  }
  to.where.emplace_back(key, list_of(value));
  return {};
}

Result<void> set(SacctmgrOptions& to, const GivenOption& given) {
  const std::string_view name = given.row->name;
  if (name == "associations") to.with_associations = true;
  if (name == "help") to.help = true;
  if (name == "usage") to.usage = true;
  if (name == "version") to.version = true;
  if (name == "noheader") to.style.header = false;
  if (name == "parsable") to.style.kind = TableStyle::Kind::parsable;
  if (name == "parsable2") to.style.kind = TableStyle::Kind::parsable2;
  if (name == "json" || name == "yaml") {
    return fail(Code::unsupported, fmt::format("--{} is not available", name),
                "use -P: columns separated by |");
  }
  return {};
}

}  // namespace

Result<SacctmgrOptions> parse_sacctmgr(std::span<const std::string> words) {
  Result<ReadWords> read = read_options("sacctmgr", kSacctmgrOptions, words);
  if (!read) return pass(std::move(read.error()));
  SacctmgrOptions options;
  for (const GivenOption& given : read->options) {
    if (Result<void> done = set(options, given); !done) return pass(std::move(done.error()));
  }
  if (options.help || options.usage || options.version) return options;
  const std::vector<std::string>& operands = read->operands;
  if (operands.empty()) {
    return fail(Code::bad_value, "No command given: there is no prompt to type them at",
                "for instance: sacctmgr show user; sacctmgr --help");
  }
  const Result<bool> lists = read_command(operands.front(), options);
  if (!lists) return pass(lists.error());
  if (!*lists) return options;
  if (operands.size() < 2) {
    return fail(Code::bad_value, fmt::format("{}: of what?", operands.front()),
                "what can be shown: account, association, cluster, qos, user");
  }
  const Result<Entity> entity = entity_of(operands[1]);
  if (!entity) return pass(entity.error());
  options.entity = *entity;
  for (const std::string& word : std::span(operands).subspan(2)) {
    if (Result<void> done = read_spec(word, options); !done) return pass(std::move(done.error()));
  }
  return options;
}

std::string_view sacctmgr_usage() {
  return "Usage: sacctmgr [-nPps] {show|list} {account|association|cluster|qos|user} [NAMES] "
         "[KEY=NAMES …] [format=FIELD[%WIDTH],…]\n";
}

std::string_view sacctmgr_help() {
  return R"(Usage: sacctmgr [OPTIONS] {show|list} ENTITY [NAMES] [where KEY=NAMES …] [format=FIELDS]
There is one built-in account, "default", to which every user belongs; it can be looked at, not
changed.
  ENTITY                   account, association, cluster, qos, user
  NAMES                    only these, separated by commas
  KEY=NAMES                only where this field is one of these
  format=FIELD[%WIDTH],…   fields to show; -WIDTH: on the left
  withassoc, withcoord     more fields of users and accounts
  onlydefaults, tree       associations of users only; indented below their account
  wolimits                 clusters without limits
  -h, --help               this text
  -n, --noheader           no header
  -P, --parsable2          separated by '|'
  -p, --parsable           separated by '|', with one at the end
  -s, --associations       the same as withassoc
      --usage              brief usage
  -V, --version            version and exit
)";
}

}  // namespace berth::command
