#include "command/up_plan.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "command/files.h"
#include "command/up_conf.h"
#include "device/machine.h"
#include "site/site.h"
#include "text/words.h"

namespace berth::command {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{8} << 20;
constexpr std::size_t kMostFiles = 200;

/// The name, or the number where the machine has no name for it: nothing is looked up by a static
/// program but /etc/passwd.
std::string user_name() {
  const uid_t uid = ::geteuid();
  const passwd* entry = ::getpwuid(uid);
  return entry == nullptr ? std::to_string(uid) : entry->pw_name;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "localhost";
  return std::string(name).substr(0, std::string_view(name).find('.'));
}

bool made_by_up(const std::string& text) {
  for (const std::string_view line : text::split(text, '\n')) {
    if (line.starts_with(kMadeByUp)) return true;
  }
  return false;
}

void take(UpPlan& plan, ConfTexts texts) {
  plan.files["slurm.conf"] = std::move(texts.slurm);
  if (!texts.gres.empty()) plan.files["gres.conf"] = std::move(texts.gres);
}

/// slurm.conf of a directory with the files beside it (it may include them).
Result<UpPlan> plan_copy(const std::string& directory) {
  UpPlan plan;
  std::error_code failed;
  const fs::path folder = fs::canonical(directory, failed);
  auto site = site::read_site(conf::DirectorySource(folder));
  if (!site) return pass(std::move(site.error()));
  plan.cluster = std::move(site->cluster);
  plan.notes = std::move(site->notes);
  for (std::string& warning : site->warnings) plan.notes.push_back(std::move(warning));
  plan.copied_from = (folder / "slurm.conf").string();
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool conf = name.ends_with(".conf") || name == "topology.yaml";
    if (!conf || !at->is_regular_file(failed)) continue;
    auto text = read_file(at->path().string(), kMostBytes);
    if (!text) return pass(std::move(text.error()));
    plan.files[name] = std::move(*text);
    if (plan.files.size() > kMostFiles) {
      return fail(Code::limit,
                  fmt::format("{} has more than {} .conf files", directory, kMostFiles));
    }
  }
  std::string& slurm = plan.files["slurm.conf"];
  if (!slurm.ends_with('\n')) slurm += '\n';
  slurm += fmt::format(
      "{}: a copy of {}\n# Paths of state, logs and pid files, users and ports in it are not used: "
      "this "
      "cluster has "
      "its own.\n",
      kMadeByUp, plan.copied_from);
  return plan;
}

}  // namespace

Result<UpPlan> plan_machine(bool listen) {
  UpPlan plan;
  const device::Machine machine = device::this_machine();
  plan.cluster = cluster_of(machine);
  plan.notes = machine.notes;
  ConfTexts texts =
      write_conf(plan.cluster, listen ? "--listen" : "", user_name(), host_name(), false);
  // Other machines join later; slurm.conf does not name them.
  if (listen) texts.slurm += "SlurmctldParameters=listen\n";
  take(plan, std::move(texts));
  return plan;
}

Result<UpPlan> plan_emulated(const std::string& text) {
  Result<UpPlan> plan = UpPlan{};
  if (is_directory(text)) {
    plan = plan_copy(text);
  } else if (text.find('/') != std::string::npos) {
    return fail(Code::io, fmt::format("--emulate {}: no such directory", text));
  } else {
    auto site = site::from_emulate_spec(text);
    if (!site) return pass(std::move(site.error()));
    plan->cluster = std::move(site->cluster);
    take(*plan, write_conf(plan->cluster, fmt::format("--emulate '{}'", text), user_name(),
                           host_name(), true));
  }
  if (plan) {
    plan->emulated = true;
    plan->asked_for_emulation = true;
  }
  return plan;
}

bool same_conf(const ClusterHome& home, const UpPlan& plan) {
  for (const auto& [name, text] : plan.files) {
    const auto there = read_file(fmt::format("{}/{}", home.state, name), kMostBytes);
    if (!there || *there != text) return false;
  }
  return true;
}

Result<void> put_conf(const ClusterHome& home, UpPlan& plan) {
  if (home.has_conf()) {
    auto there = read_file(home.conf(), kMostBytes);
    if (!there) return pass(std::move(there.error()));
    if (!made_by_up(*there)) {
      if (plan.asked_for_emulation) {
        return fail(Code::conflict,
                    fmt::format("{} is your own and is not written over", home.conf()),
                    "move it away, or choose another place with --state DIR");
      }
      auto site = site::read_site(conf::DirectorySource(home.state));
      if (!site) return pass(std::move(site.error()));
      plan.cluster = std::move(site->cluster);
      plan.notes = std::move(site->notes);
      plan.notes.push_back(fmt::format("{} is your own: used as it is", home.conf()));
      return {};
    }
    // What an earlier start copied must not be mixed with what this one writes.
    std::error_code failed;
    for (const char* name : {"gres.conf", "cgroup.conf", "topology.conf", "topology.yaml"}) {
      if (!plan.files.contains(name)) fs::remove(fs::path(home.state) / name, failed);
    }
  }
  for (const auto& [name, text] : plan.files) {
    auto put = replace_file(fmt::format("{}/{}", home.state, name), text);
    if (!put) return put;
  }
  return {};
}

}  // namespace berth::command
