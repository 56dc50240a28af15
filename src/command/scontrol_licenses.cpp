// What scontrol_licenses.h promises.
#include "command/scontrol_licenses.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/number.h"
#include "text/words.h"

namespace berth::command::scontrol {

std::vector<License> parse_licenses(std::string_view text) {
  std::vector<License> licenses;
  std::string list(text);
  std::replace(list.begin(), list.end(), ';', ',');
  for (const std::string_view part : text::split(list, ',')) {
    const std::string_view item = text::trim(part);
    if (item.empty() || item == "(null)") continue;
    const std::size_t mark = item.find_first_of(":=");
    const auto count = mark == std::string_view::npos ? std::optional<std::uint64_t>(1)
                                                      : text::parse_number(item.substr(mark + 1));
    licenses.push_back({.name = std::string(item.substr(0, mark)), .total = count.value_or(0)});
  }
  return licenses;
}

Result<std::vector<License>> licenses_of(Session& session) {
  Result<wire::ConfigReply> config = session.ask<wire::ConfigReply>(wire::ShowConfig{});
  if (!config) return pass(std::move(config.error()));
  std::vector<License> licenses;
  for (const wire::Variable& setting : config->settings()) {
    if (setting.name() == "Licenses") licenses = parse_licenses(setting.value());
  }
  if (licenses.empty()) return licenses;
  wire::ListJobs ask;
  ask.add_states("RUNNING");
  ask.add_states("SUSPENDED");
  Result<wire::JobsReply> jobs = session.ask<wire::JobsReply>(ask);
  if (!jobs) return pass(std::move(jobs.error()));
  for (const wire::JobInfo& job : jobs->jobs()) {
    if (job.state() != "RUNNING" && job.state() != "SUSPENDED") continue;
    for (const License& held : parse_licenses(job.licenses_taken())) {
      const auto found = std::find_if(licenses.begin(), licenses.end(),
                                      [&](const License& l) { return l.name == held.name; });
      if (found != licenses.end()) found->used += held.total;
    }
  }
  return licenses;
}

std::string license_text(const License& license, const Style& style) {
  const std::uint64_t free = license.total - std::min(license.used, license.total);
  return fmt::format("LicenseName={}{}Total={} Used={} Free={} Reserved=0 Remote=no\n",
                     license.name, style.one_line ? " " : "\n    ", license.total, license.used,
                     free);
}

}  // namespace berth::command::scontrol
