#include "node/gpu_holder.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "step/spool.h"

namespace berth::node {
namespace {

std::string user_name(uid_t uid) {
  std::array<char, 16384> space{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, space.data(), space.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return fmt::format("uid {}", uid);
}

/// Programs may call themselves anything.
std::string printable(std::string text) {
  std::erase(text, '\n');
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return text.substr(0, 64);
}

}  // namespace

GpuHealth::Holder look_at_holder(std::uint32_t pid) {
  GpuHealth::Holder out;
  const std::string folder = fmt::format("/proc/{}", pid);
  const auto stat = step::read_file(folder + "/stat");
  if (!stat) return out;
  // "4711 (name) S …": a zombie has left the GPU, which may tell so a moment later.
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) return out;
  const char state = (*stat)[name_end + 2];
  out.lives = state != 'Z' && state != 'X';
  if (const auto command = step::read_file(folder + "/comm")) out.command = printable(*command);
  // The kernel keeps 15 characters of a name: this is nvidia-cuda-mps-server.
  out.shared = out.command == "nvidia-cuda-mps";
  struct stat owner{};
  if (::stat(folder.c_str(), &owner) == 0) out.user = user_name(owner.st_uid);
  return out;
}

}  // namespace berth::node
