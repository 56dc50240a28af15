#include "command/sacctmgr_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "command/builtin_account.h"
#include "command/table_text.h"

namespace berth::command {
namespace {

/// A line: an association (of the account when `user` is empty), a user, the account, the cluster
/// or the QOS, which have what of it concerns them.
struct SacctmgrRow {
  const AccountFacts* facts = nullptr;
  std::string_view user;
};

// What a field belongs to; an association's fields are also a user's and an account's.
constexpr unsigned kOfAccount = 1;
constexpr unsigned kOfAssociation = 2;
constexpr unsigned kOfCluster = 4;
constexpr unsigned kOfQos = 8;
constexpr unsigned kOfUser = 16;
constexpr unsigned kOfLinks = kOfAccount | kOfAssociation | kOfUser;
constexpr unsigned kOfLimits = kOfLinks | kOfCluster;

struct FieldRow {
  std::string_view name;
  std::string_view title;
  int width = 10;
  unsigned of = 0;
  std::string_view (*value)(const SacctmgrRow& row) =
      nullptr;  // nullptr: nothing is limited or set
};
std::string_view title_of(const FieldRow& field) {
  return field.title;
}

#define VALUE(expression) \
  [](const SacctmgrRow& row) -> std::string_view { return (void)row, (expression); }

constexpr FieldRow kSacctmgrFields[] = {
    {"Account", "Account", 10, kOfLinks, VALUE(kAccount)},
    {"AdminLevel", "Admin", 9, kOfUser, VALUE(row.user == "root" ? "Administrator" : "None")},
    {"Cluster", "Cluster", 10, kOfLimits, VALUE(row.facts->cluster)},
    {"ControlHost", "ControlHost", 15, kOfCluster, VALUE(row.facts->control_host)},
    {"ControlPort", "ControlPort", 12, kOfCluster, VALUE(row.facts->control_port)},
    {"Coordinators", "Coord Accounts", 20, kOfUser | kOfAccount},
    {"DefaultAccount", "Def Acct", 10, kOfUser, VALUE(kAccount)},
    {"DefaultQOS", "Def QOS", 9, kOfLimits},
    {"DefaultWCKey", "Def WCKey", 10, kOfUser},
    {"Description", "Descr", 20, kOfAccount, VALUE("built-in account")},
    {"Description", "Descr", 20, kOfQos, VALUE("built-in QOS")},
    {"Fairshare", "Share", 9, kOfLimits, VALUE("1")},
    {"Flags", "Flags", 20, kOfQos},
    {"GraceTime", "GraceTime", 10, kOfQos, VALUE("00:00:00")},
    {"GrpCPUs", "GrpCPUs", 8, kOfLimits},
    {"GrpCPUMins", "GrpCPUMins", 11, kOfLimits},
    {"GrpJobs", "GrpJobs", 7, kOfLimits | kOfQos},
    {"GrpJobsAccrue", "GrpJobsAccrue", 13, kOfLimits | kOfQos},
    {"GrpMem", "GrpMem", 7, kOfLimits},
    {"GrpNodes", "GrpNodes", 8, kOfLimits},
    {"GrpSubmitJobs", "GrpSubmit", 9, kOfLimits | kOfQos},
    {"GrpTRES", "GrpTRES", 13, kOfLimits | kOfQos},
    {"GrpTRESMins", "GrpTRESMins", 13, kOfLimits | kOfQos},
    {"GrpTRESRunMins", "GrpTRESRunMin", 13, kOfLimits | kOfQos},
    {"GrpWall", "GrpWall", 11, kOfLimits | kOfQos},
    {"MaxCPUs", "MaxCPUs", 8, kOfLimits},
    {"MaxCPUMins", "MaxCPUMins", 11, kOfLimits},
    {"MaxJobs", "MaxJobs", 7, kOfLimits},
    {"MaxJobsAccrue", "MaxJobsAccrue", 13, kOfLimits},
    {"MaxJobsPerAccount", "MaxJobsPA", 9, kOfQos},
    {"MaxJobsPA", "MaxJobsPA", 9, kOfQos},
    {"MaxJobsPerUser", "MaxJobsPU", 9, kOfQos},
    {"MaxJobsPU", "MaxJobsPU", 9, kOfQos},
    {"MaxNodes", "MaxNodes", 8, kOfLimits},
    {"MaxSubmitJobs", "MaxSubmit", 9, kOfLimits},
    {"MaxSubmitJobsPerAccount", "MaxSubmitPA", 11, kOfQos},
    {"MaxSubmitPA", "MaxSubmitPA", 11, kOfQos},
    {"MaxSubmitJobsPerUser", "MaxSubmitPU", 11, kOfQos},
    {"MaxSubmitPU", "MaxSubmitPU", 11, kOfQos},
    {"MaxTRES", "MaxTRES", 13, kOfLimits | kOfQos},
    {"MaxTRESPerJob", "MaxTRES", 13, kOfLimits | kOfQos},
    {"MaxTRESPerNode", "MaxTRESPerNode", 14, kOfLimits | kOfQos},
    {"MaxTRESMins", "MaxTRESMins", 13, kOfLimits | kOfQos},
    {"MaxTRESMinsPerJob", "MaxTRESMins", 13, kOfLimits | kOfQos},
    {"MaxTRESPerAccount", "MaxTRESPA", 13, kOfQos},
    {"MaxTRESPA", "MaxTRESPA", 13, kOfQos},
    {"MaxTRESPerUser", "MaxTRESPU", 13, kOfQos},
    {"MaxTRESPU", "MaxTRESPU", 13, kOfQos},
    {"MaxWall", "MaxWall", 11, kOfLimits | kOfQos},
    {"MaxWallDurationPerJob", "MaxWall", 11, kOfLimits | kOfQos},
    {"MinTRES", "MinTRES", 13, kOfQos},
    {"MinTRESPerJob", "MinTRES", 13, kOfQos},
    {"Name", "Name", 10, kOfQos, VALUE(kQos)},
    {"Organization", "Org", 20, kOfAccount, VALUE(kAccount)},
    {"ParentName", "Par Name", 10, kOfAssociation | kOfAccount},
    {"Partition", "Partition", 10, kOfLinks},
    {"Preempt", "Preempt", 10, kOfQos},
    {"PreemptExemptTime", "PreemptExemptTime", 19, kOfQos},
    {"PreemptMode", "PreemptMode", 11, kOfQos, VALUE("cluster")},
    {"Priority", "Priority", 10, kOfLinks},
    {"Priority", "Priority", 10, kOfQos, VALUE("0")},
    {"QOS", "QOS", 20, kOfLimits, VALUE(kQos)},
    {"QOS", "Name", 10, kOfQos, VALUE(kQos)},
    {"QOSLevel", "QOS", 20, kOfLimits, VALUE(kQos)},
    {"RPC", "RPC", 5, kOfCluster},
    {"Share", "Share", 9, kOfLimits, VALUE("1")},
    {"UsageFactor", "UsageFactor", 11, kOfQos, VALUE("1.000000")},
    {"UsageThreshold", "UsageThres", 10, kOfQos},
    {"User", "User", 10, kOfLinks, VALUE(row.user)},
};

#undef VALUE

unsigned bit_of(Entity entity) {
  switch (entity) {
    case Entity::account:
      return kOfAccount;
    case Entity::association:
      return kOfAssociation;
    case Entity::cluster:
      return kOfCluster;
    case Entity::qos:
      return kOfQos;
    case Entity::user:
      return kOfUser;
  }
  return 0;
}

std::vector<FieldRow> fields_of(Entity entity) {
  std::vector<FieldRow> fields;
  for (const FieldRow& field : kSacctmgrFields) {
    if ((field.of & bit_of(entity)) != 0) fields.push_back(field);
  }
  return fields;
}

std::string default_format(const SacctmgrOptions& options) {
  std::string out;
  switch (options.entity) {
    case Entity::account:
      out = "Account,Description,Organization";
      if (options.with_coordinators) out += ",Coordinators";
      if (options.with_associations) {
        out +=
            ",Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMem,GrpSubmitJobs,"
            "GrpWall,GrpCPUMins,MaxJobs,MaxNodes,MaxCPUs,MaxSubmitJobs,MaxWall,MaxCPUMins,QOS,"
            "DefaultQOS";
      }
      return out;
    case Entity::association:
      return "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmitJobs,GrpWall,"
             "GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmitJobs,MaxWall,MaxTRESMins,QOS,"
             "DefaultQOS,GrpTRESRunMins";
    case Entity::cluster:
      out = "Cluster,ControlHost,ControlPort,RPC";
      if (!options.without_limits) {
        out +=
            ",Share,GrpJobs,GrpTRES,GrpSubmitJobs,MaxJobs,MaxTRES,MaxSubmitJobs,MaxWall,QOS,"
            "DefaultQOS";
      }
      return out;
    case Entity::qos:
      return "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThreshold,"
             "UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmitJobs,GrpWall,MaxTRES,"
             "MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,"
             "MaxJobsPA,MaxSubmitPA,MinTRES";
    case Entity::user:
      out = "User,DefaultAccount,AdminLevel";
      if (options.with_coordinators) out += ",Coordinators";
      if (options.with_associations) {
        out +=
            ",Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmitJobs,"
            "MaxWall,MaxCPUMins,QOS,DefaultQOS";
      }
      return out;
  }
  return out;
}

/// `users=` is `user=`.
const FieldRow* condition_field(std::span<const FieldRow> fields, std::string_view key) {
  const FieldRow* field = find_field(fields, key);
  if (field == nullptr && key.ends_with('s')) {
    field = find_field(fields, key.substr(0, key.size() - 1));
  }
  return field;
}

struct Condition {
  const FieldRow* field = nullptr;
  const std::vector<std::string>* values = nullptr;

  bool holds(const SacctmgrRow& row) const {
    const std::string_view value = field->value == nullptr ? std::string_view() : field->value(row);
    if (values->empty()) return value.empty();
    return std::ranges::any_of(
        *values, [&](const std::string& one) { return text::equal_ignoring_case(one, value); });
  }
};

/// All lines of the entity, without conditions.
std::vector<SacctmgrRow> rows_of(const SacctmgrOptions& options, const AccountFacts& facts) {
  std::vector<SacctmgrRow> rows;
  const bool links = options.entity == Entity::association ||
                     (options.entity == Entity::account && options.with_associations);
  if ((!links && options.entity != Entity::user) || (links && !options.only_defaults)) {
    rows.push_back({&facts, {}});
  }
  if (links || options.entity == Entity::user) {
    for (const std::string& user : facts.members) rows.push_back({&facts, user});
  }
  return rows;
}

}  // namespace

Result<std::string> sacctmgr_text(const SacctmgrOptions& options, const AccountFacts& facts) {
  const std::vector<FieldRow> fields = fields_of(options.entity);
  const std::span<const FieldRow> table = fields;
  const auto columns = parse_table_format(options.format.value_or(default_format(options)), table,
                                          "sacctmgr without format= shows the usual fields");
  if (!columns) return pass(columns.error());
  std::vector<Condition> conditions;
  for (const auto& [key, values] : options.where) {
    const FieldRow* field = condition_field(table, key);
    if (field == nullptr) {
      return fail(Code::bad_value, fmt::format("Unknown condition: {}", key),
                  "conditions are fields: user=NAMES, account=NAMES, cluster=NAMES");
    }
    conditions.push_back({field, &values});
  }
  std::string out;
  append_table_header(options.style, *columns, out);
  for (const SacctmgrRow& row : rows_of(options, facts)) {
    if (!std::ranges::all_of(conditions, [&](const Condition& one) { return one.holds(row); })) {
      continue;
    }
    for (const TableColumn<FieldRow>& column : *columns) {
      std::string value;
      if (options.tree && column.field->name == "Account" && !row.user.empty()) value = " ";
      if (column.field->value != nullptr) value += column.field->value(row);
      append_cell(options.style, value, column.width, &column == &columns->back(), out);
    }
    out += '\n';
  }
  return out;
}

}  // namespace berth::command
