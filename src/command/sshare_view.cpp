#include "command/sshare_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "command/builtin_account.h"
#include "command/option_words.h"
#include "command/show_text.h"

namespace berth::command {
namespace {

constexpr OptionRow kShareOptions[] = {
    {"accounts", 'A', Takes::value},
    {"all", 'a'},
    {"cluster", 0, Takes::value},
    {"clusters", 'M', Takes::value},
    {"format", 'o', Takes::value},
    {"help", 'h'},
    {"helpformat", 'e'},
    {"json", 0, Takes::attached},
    {"long", 'l'},
    {"noheader", 'n'},
    {"parsable", 'p'},
    {"parsable2", 'P'},
    {"partition", 'm'},
    {"usage", 0},
    {"users", 'u', Takes::value},
    {"Users", 'U'},
    {"verbose", 'v'},
    {"version", 'V'},
    {"yaml", 0, Takes::attached},
};

/// The account (user empty), or one of its users.
struct Share {
  std::string_view cluster;
  std::string_view user;
  double normal = 1;   // of all shares at its level
  bool below = false;  // stands below the line of the account
};

struct ShareField {
  std::string_view name;
  int width = 10;
  std::string (*show)(const Share& share) = nullptr;
};
std::string_view title_of(const ShareField& field) {
  return field.name;
}

std::string nothing(const Share&) {
  return {};
}
std::string no_usage(const Share&) {
  return "0";
}
std::string no_part(const Share&) {
  return "0.000000";
}

constexpr ShareField kShareFields[] = {
    {"Account", -20,
     [](const Share& s) { return fmt::format("{}{}", s.below ? " " : "", kAccount); }},
    {"Cluster", 10, [](const Share& s) { return std::string(s.cluster); }},
    {"EffectvUsage", 13, no_part},
    // As sprio shows the factor.
    {"FairShare", 10, [](const Share& s) { return s.user.empty() ? "" : no_part(s); }},
    {"GrpTRESMins", 30, nothing},
    {"GrpTRESRaw", 30, nothing},
    {"LevelFS", 10, [](const Share& s) { return std::string(s.user.empty() ? "" : "inf"); }},
    {"NormShares", 11, [](const Share& s) { return fmt::format("{:.6f}", s.normal); }},
    {"NormUsage", 11, no_part},
    {"Partition", 12, nothing},
    {"RawShares", 10, [](const Share&) { return std::string("1"); }},
    {"RawUsage", 11, no_usage},
    {"TRESRunMins", 30, nothing},
    {"User", 10, [](const Share& s) { return std::string(s.user); }},
};

std::string usual_format(const SshareOptions& options) {
  std::string out = "Account,User";
  if (options.partitions) out += ",Partition";
  out += ",RawShares,NormShares,RawUsage";
  if (options.long_format) out += ",NormUsage";
  out += ",EffectvUsage,FairShare";
  if (options.long_format) out += ",LevelFS,GrpTRESMins,TRESRunMins";
  return out;
}

Result<void> set_share(SshareOptions& to, const GivenOption& given) {
  const std::string_view name = given.row->name;
  const std::string value = given.value.value_or("");
  if (name == "accounts") to.accounts = list_of(value);
  if (name == "all") to.all_users = true;
  if (name == "clusters" || name == "cluster") to.clusters = value;
  if (name == "format") to.format = to.format ? fmt::format("{},{}", *to.format, value) : value;
  if (name == "help") to.help = true;
  if (name == "helpformat") to.help_format = true;
  if (name == "long") to.long_format = true;
  if (name == "noheader") to.style.header = false;
  if (name == "parsable") to.style.kind = TableStyle::Kind::parsable;
  if (name == "parsable2") to.style.kind = TableStyle::Kind::parsable2;
  if (name == "partition") to.partitions = true;
  if (name == "usage") to.usage = true;
  if (name == "users") to.users = list_of(value);
  if (name == "Users") to.only_users = true;
  if (name == "version") to.version = true;
  if (name == "json" || name == "yaml") {
    return fail(Code::unsupported, fmt::format("--{} is not available", name),
                "use -P: columns separated by |");
  }
  return {};
}

bool listed(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

}  // namespace

Result<SshareOptions> parse_sshare(std::span<const std::string> words) {
  Result<ReadWords> read = read_options("sshare", kShareOptions, words);
  if (!read) return pass(std::move(read.error()));
  SshareOptions options;
  for (const GivenOption& given : read->options) {
    if (Result<void> done = set_share(options, given); !done) return pass(std::move(done.error()));
  }
  if (!read->operands.empty()) {
    return fail(Code::bad_value, fmt::format("Unrecognized option: {}", read->operands.front()),
                "sshare -u LIST shows users, -A LIST accounts");
  }
  return options;
}

Result<std::string> sshare_text(const SshareOptions& options, std::string_view cluster,
                                std::span<const std::string> members, std::string_view self) {
  const std::span<const ShareField> table = kShareFields;
  const auto columns = parse_table_format(options.format.value_or(usual_format(options)), table,
                                          "sshare --helpformat lists the fields");
  if (!columns) return pass(columns.error());
  std::vector<Share> shares;
  if (!options.accounts || listed(*options.accounts, kAccount)) {
    if (!options.only_users) shares.push_back({cluster, {}, 1, false});
    const double normal = 1 / static_cast<double>(std::max<std::size_t>(1, members.size()));
    for (const std::string& user : members) {
      const bool wanted =
          options.all_users || (options.users ? listed(*options.users, user) : user == self);
      if (wanted) shares.push_back({cluster, user, normal, !options.only_users});
    }
  }
  std::string out;
  append_table_header(options.style, *columns, out);
  for (const Share& share : shares) {
    for (const TableColumn<ShareField>& column : *columns) {
      append_cell(options.style, column.field->show(share), column.width,
                  &column == &columns->back(), out);
    }
    out += '\n';
  }
  return out;
}

std::string sshare_field_names() {
  std::string out;
  for (const ShareField& field : kShareFields) out += fmt::format("{}\n", field.name);
  return out;
}

std::string_view sshare_help() {
  return R"(Usage: sshare [OPTIONS]
There is one built-in account, "default": all its users have the same share, and no usage is counted.
  -A, --accounts=list      these accounts
  -a, --all                all users
  -e, --helpformat         list of fields for --format
  -h, --help               this text
  -l, --long               more fields
  -M, --clusters=names     this cluster's name
  -m, --partition          a column of partitions
  -n, --noheader           no header
  -o, --format=list        fields to show, as name or name%width
  -P, --parsable2          separated by '|'
  -p, --parsable           separated by '|', with one at the end
  -U, --Users              users only, not their account
  -u, --users=list         these users; without -a and -u: the one who asks
      --usage              brief usage
  -V, --version            version and exit
)";
}

}  // namespace berth::command
