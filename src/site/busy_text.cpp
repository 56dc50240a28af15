// Cutting scontrol's text. Which keys may begin a line is listed, so that an unknown line is
// noticed.
#include "site/busy_text.h"

#include <algorithm>
#include <array>

#include "text/words.h"

namespace berth::site {
namespace {

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/// A key is letters, digits and the few signs that Slurm's own keys have.
bool key_like(std::string_view s) {
  return !s.empty() && ((s[0] >= 'A' && s[0] <= 'Z') || (s[0] >= 'a' && s[0] <= 'z')) &&
         std::ranges::all_of(s, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '/' || c == ':';
         });
}

// Values of these run to the end of the line, whatever they hold.
constexpr std::array<std::string_view, 11> kWholeLine = {
    "Command", "SubmitLine", "WorkDir", "StdErr", "StdIn",       "StdOut",
    "Comment", "OS",         "Reason",  "Extra",  "AdminComment"};

constexpr std::array<std::string_view, 74> kJobKeys = {"JobId",
                                                       "SLUID",
                                                       "HetJobIdSet",
                                                       "UserId",
                                                       "Priority",
                                                       "JobState",
                                                       "Requeue",
                                                       "DerivedExitCode",
                                                       "RunTime",
                                                       "SubmitTime",
                                                       "AccrueTime",
                                                       "StartTime",
                                                       "PreemptEligibleTime",
                                                       "PreemptTime",
                                                       "SuspendTime",
                                                       "Partition",
                                                       "ReqNodeList",
                                                       "NodeList",
                                                       "SchedNodeList",
                                                       "BatchHost",
                                                       "NumNodes",
                                                       "ReqTRES",
                                                       "AllocTRES",
                                                       "TRES",
                                                       "Socks/Node",
                                                       "JOB_GRES",
                                                       "Nodes",
                                                       "MinCPUsNode",
                                                       "Features",
                                                       "Prefer",
                                                       "Reservation",
                                                       "OverSubscribe",
                                                       "Command",
                                                       "SubmitLine",
                                                       "WorkDir",
                                                       "Comment",
                                                       "AdminComment",
                                                       "SystemComment",
                                                       "StdErr",
                                                       "StdIn",
                                                       "StdOut",
                                                       "CpusPerTres",
                                                       "MemPerTres",
                                                       "TresBind",
                                                       "TresFreq",
                                                       "TresPerJob",
                                                       "TresPerNode",
                                                       "TresPerSocket",
                                                       "TresPerTask",
                                                       "MailUser",
                                                       "NtasksPerTRES",
                                                       "BurstBuffer",
                                                       "BurstBufferState",
                                                       "Switches",
                                                       "Power",
                                                       "Container",
                                                       "ContainerId",
                                                       "Extra",
                                                       "FedOrigin",
                                                       "LastSchedEval",
                                                       "NtasksPerN:B:S:C",
                                                       "Account",
                                                       "ClusterFeatures",
                                                       "KillOInInvalidDependent",
                                                       "ArrayJobId",
                                                       "HetJobId",
                                                       "BatchFeatures",
                                                       "Network",
                                                       "WCKey",
                                                       "CPU_max_freq",
                                                       "ExcNodeList",
                                                       "ResvPorts",
                                                       "SegmentSize",
                                                       "MailType"};

constexpr std::array<std::string_view, 25> kNodeKeys = {
    "NodeName",       "CPUAlloc",      "AvailableFeatures",
    "ActiveFeatures", "Gres",          "GresDrain",
    "GresUsed",       "NodeAddr",      "OS",
    "RealMemory",     "CoreSpecCount", "CPUSpecList",
    "MemSpecLimit",   "State",         "Partitions",
    "NextState",      "BootTime",      "LastBusyTime",
    "CfgTRES",        "AllocTRES",     "CurrentWatts",
    "Reason",         "Comment",       "Extra",
    "ReservationName"};

template <std::size_t N>
bool names_one(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::any_of(
      words, [&](std::string_view w) { return text::equal_ignoring_case(w, word); });
}

}  // namespace

std::vector<Field> fields_of(std::string_view line) {
  std::vector<Field> out;
  for (std::size_t at = 0; at < line.size();) {
    if (blank(line[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < line.size() && !blank(line[end])) ++end;
    const std::string_view word = line.substr(at, end - at);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos && key_like(word.substr(0, equals))) {
      const std::string_view key = word.substr(0, equals);
      const bool whole = names_one(kWholeLine, key) && out.empty();
      out.push_back(
          {key, text::trim(whole ? line.substr(at + equals + 1) : word.substr(equals + 1))});
      if (whole) return out;
    } else if (!out.empty()) {
      std::string_view& value = out.back().value;
      value = std::string_view(value.data(), static_cast<std::size_t>(word.end() - value.begin()));
    } else {
      out.push_back({{}, word});
    }
    at = end;
  }
  return out;
}

std::vector<GresText> gres_items(std::string_view list) {
  std::vector<GresText> out;
  std::size_t start = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '(') inside = true;
    if (i < list.size() && list[i] == ')') inside = false;
    if (i < list.size() && (list[i] != ',' || inside)) continue;
    std::string_view item = list.substr(start, i - start);
    start = i + 1;
    if (item.empty()) continue;
    GresText gres;
    if (const std::size_t open = item.find('('); open != std::string_view::npos) {
      gres.inside = item.substr(open + 1);
      if (gres.inside.ends_with(')')) gres.inside.remove_suffix(1);
      item = item.substr(0, open);
    }
    const std::size_t last = item.rfind(':');
    gres.count = last == std::string_view::npos ? std::string_view("1") : item.substr(last + 1);
    item = item.substr(0, last);
    const std::size_t first = item.find(':');
    gres.name = item.substr(0, first);
    if (first != std::string_view::npos) gres.type = item.substr(first + 1);
    out.push_back(gres);
  }
  return out;
}

bool known_job_key(std::string_view key) {
  return names_one(kJobKeys, key);
}
bool known_node_key(std::string_view key) {
  return names_one(kNodeKeys, key);
}

}  // namespace berth::site
