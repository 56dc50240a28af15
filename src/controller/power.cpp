// What switches nodes off and on: the site's programs, told as Slurm tells them.
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "controller/engine.h"
#include "controller/resume_file.h"
#include "text/hostlist.h"

namespace berth::controller {
namespace {

gid_t group_of(uid_t uid) {
  const passwd* user = ::getpwuid(uid);
  return user == nullptr ? 0 : user->pw_gid;
}

/// scontrol and berth are found beside the controller.
std::string path_variable() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return fmt::format("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin{}{}",
                     error ? "" : ":", error ? "" : self.parent_path().string());
}

/// Readable by whoever runs the program, and by nobody else. False: it could not be written.
bool write_file(const std::string& path, std::string_view text, uid_t owner, gid_t group) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return false;
  if (::geteuid() == 0 && ::fchown(fd.get(), owner, group) != 0) return false;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

void Engine::switch_nodes(const job::SwitchNodes& effect) {
  using What = job::SwitchNodes::What;
  const conf::PowerKeys& keys = setup_.keys().power;
  PowerProgram program;
  program.path = effect.what == What::off  ? keys.suspend_program
                 : effect.what == What::on ? keys.resume_program
                                           : keys.resume_fail_program;
  changed_nodes_.insert(effect.nodes.begin(), effect.nodes.end());
  if (program.path.empty()) return;  // ResumeFailProgram need not be
  program.nodes = text::compress_hostlist(effect.nodes);
  program.uid = setup_.slurm_uid;
  program.gid = group_of(program.uid);
  program.environment = {path_variable(), "SLURM_CONF=" + setup_.conf_path,
                         "SLURM_CLUSTER_NAME=" + setup_.policy.cluster_name};
  if (effect.what == What::on) {
    program.file = fmt::format("{}/resume.{}.json", parts_.state, ++resume_files_);
    if (write_file(program.file, resume_text(*state_, effect.nodes), program.uid, program.gid)) {
      program.environment.push_back("SLURM_RESUME_FILE=" + program.file);
    } else {
      log_.error("{}: {}", program.file, std::strerror(errno));
    }
    register_again(effect.nodes);
  }
  power_programs_.start(std::move(program));
  state_->power_told(effect.nodes);
  more_to_do_ = true;
}

/// Who was never really off (its program only lowers the clock, say) is asked to register again:
/// that is how the controller knows that a node is up.
void Engine::register_again(const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) {
    const auto peer = agents_.serving(node);
    if (!peer) continue;
    outbox_.close(*peer);
    for (const std::string& lost : agents_.left(*peer)) {
      state_->node_lost(lost, clock_.seconds());
      changed_nodes_.insert(lost);
    }
  }
}

}  // namespace berth::controller
