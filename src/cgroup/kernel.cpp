// This machine's cgroups, and the bpf system call: the few commands of it need no library.
#include "cgroup/kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace berth::cgroup {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

std::unexpected<Error> trouble(std::string_view what) {
  return fail(Code::io, fmt::format("{}: {}", what, std::strerror(errno)));
}

long bpf(int command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

/// Its own device programs, by their ids; more than a few are none of ours.
std::vector<std::uint32_t> programs_of(const Fd& group) {
  std::vector<std::uint32_t> ids(16);
  bpf_attr query{};
  query.query.target_fd = static_cast<std::uint32_t>(group.get());
  query.query.attach_type = BPF_CGROUP_DEVICE;
  query.query.prog_ids = reinterpret_cast<std::uintptr_t>(ids.data());
  query.query.prog_cnt = static_cast<std::uint32_t>(ids.size());
  const bool told = bpf(BPF_PROG_QUERY, query) == 0;
  ids.resize(told ? std::min<std::size_t>(query.query.prog_cnt, ids.size()) : 0);
  return ids;
}

bool detach(const Fd& group, std::uint32_t id) {
  bpf_attr which{};
  which.prog_id = id;
  const Fd program(static_cast<int>(bpf(BPF_PROG_GET_FD_BY_ID, which)));
  if (!program) return false;
  bpf_attr attr{};
  attr.target_fd = static_cast<std::uint32_t>(group.get());
  attr.attach_bpf_fd = static_cast<std::uint32_t>(program.get());
  attr.attach_type = BPF_CGROUP_DEVICE;
  return bpf(BPF_PROG_DETACH, attr) == 0;
}

class Machine : public Kernel {
 public:
  Result<bool> make(const std::string& directory) override {
    if (::mkdir(directory.c_str(), 0755) == 0) return true;
    if (errno == EEXIST) return false;
    return trouble(directory);
  }

  Result<void> write(const std::string& file, const std::string& value) override {
    const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    if (fd && ::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size())) {
      return {};
    }
    return trouble(fmt::format("{} (to {})", file, value));
  }

  std::optional<std::string> read(const std::string& file) override {
    const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return std::nullopt;
    std::string text;
    char buffer[4096];
    while (text.size() < kMostBytes) {
      const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }

  Result<void> filter_devices(const std::string& directory,
                              std::span<const DeviceRule> rules) override {
    const Fd group(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!group) return trouble(directory);
    const std::vector<bpf_insn> instructions = device_program(rules);
    static constexpr char kLicense[] = "Apache-2.0";
    bpf_attr load{};
    load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    load.insns = reinterpret_cast<std::uintptr_t>(instructions.data());
    load.insn_cnt = static_cast<std::uint32_t>(instructions.size());
    load.license = reinterpret_cast<std::uintptr_t>(kLicense);
    const Fd program(static_cast<int>(bpf(BPF_PROG_LOAD, load)));
    if (!program) return trouble("no device program can be loaded (bpf)");
    const std::vector<std::uint32_t> before = programs_of(group);
    bpf_attr attach{};
    attach.target_fd = static_cast<std::uint32_t>(group.get());
    attach.attach_bpf_fd = static_cast<std::uint32_t>(program.get());
    attach.attach_type = BPF_CGROUP_DEVICE;
    // Programs of groups below are asked as well, and none can allow what this one forbids.
    attach.attach_flags = BPF_F_ALLOW_MULTI;
    if (bpf(BPF_PROG_ATTACH, attach) != 0) {
      return trouble(fmt::format("{}: no device program can be attached (bpf)", directory));
    }
    // All of a group's programs are asked: those of before would still forbid what they did.
    for (const std::uint32_t id : before) {
      if (!detach(group, id)) {
        return trouble(fmt::format("{}: a device program cannot be detached (bpf)", directory));
      }
    }
    return {};
  }

  Result<void> keep_filtering(const std::string& directory) override {
    const Fd group(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!group) return trouble(directory);
    if (!programs_of(group).empty()) return {};
    return filter_devices(directory, {});
  }

  bool filters_devices(const std::string& directory) override {
    const Fd group(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return group && !programs_of(group).empty();
  }

  bool remove(const std::string& directory) override {
    return ::rmdir(directory.c_str()) == 0 || errno == ENOENT;
  }

  std::vector<std::string> directories(const std::string& directory) override {
    std::vector<std::string> found;
    DIR* folder = ::opendir(directory.c_str());
    if (folder == nullptr) return found;
    while (const dirent* entry = ::readdir(folder)) {
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') found.emplace_back(entry->d_name);
    }
    ::closedir(folder);
    std::ranges::sort(found);
    return found;
  }
};

}  // namespace

Kernel& this_kernel() {
  static Machine machine;
  return machine;
}

}  // namespace berth::cgroup
