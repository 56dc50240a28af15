// scontrol show hostnames, hostlist, hostlistsorted.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>

#include "command/scontrol_session.h"
#include "text/hostlist.h"
#include "text/words.h"

namespace berth::command::scontrol {
namespace {

constexpr std::size_t kMostNames = std::size_t{16} << 20;

/// Names of a file or of standard input, separated by blanks, newlines or commas.
std::optional<std::string> names_in(std::istream& in) {
  std::string list;
  char c = 0;
  while (in.get(c) && list.size() < kMostNames) {
    const bool blank = c == '\n' || c == ' ' || c == '\t' || c == '\r';
    if (!blank) {
      list += c;
    } else if (!list.empty() && list.back() != ',') {
      list += ',';
    }
  }
  while (list.ends_with(',')) list.pop_back();
  return list;
}

std::optional<std::string> list_to_read(const std::string& value) {
  if (value == "-") return names_in(std::cin);
  if (!value.starts_with('/')) return value;
  std::ifstream file(value);
  if (!file) return std::nullopt;
  return names_in(file);
}

}  // namespace

int show_hosts(Session& session, HostListForm form, std::optional<std::string> value) {
  // Outside a job the variable alone says nothing: recorded so.
  if (!value && form == HostListForm::names && session.environment.contains("SLURM_JOB_ID")) {
    for (const char* name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
      const auto found = session.environment.find(name);
      if (found == session.environment.end()) continue;
      value = found->second;
      break;
    }
  }
  if (!value || value->empty()) return session.refuse("host list is empty", "");
  const std::optional<std::string> list =
      form == HostListForm::names ? value : list_to_read(*value);
  if (!list) return session.refuse(fmt::format("Unable to open file {}", *value), "");
  const Result<std::vector<std::string>> names = text::expand_hostlist(*list);
  if (!names)
    return session.refuse(fmt::format("Invalid hostlist: {}", *list), names.error().what());
  switch (form) {
    case HostListForm::names:
      for (const std::string& name : *names) session.out += name + "\n";
      break;
    case HostListForm::list:
      session.out += text::compress_hostlist_unsorted(*names) + "\n";
      break;
    case HostListForm::sorted:
      session.out += text::compress_hostlist(*names) + "\n";
      break;
  }
  return 0;
}

}  // namespace berth::command::scontrol
