// What tree.h promises.
#include "cgroup/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace berth::cgroup {
namespace {

bool has_word(std::string_view text, std::string_view word) {
  std::size_t at = text.find(word);
  for (; at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || text[at - 1] == ' ';
    if (begins && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
  }
  return false;
}

std::optional<std::uint32_t> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  std::uint32_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

constexpr const char* kCores = "cpuset";

}  // namespace

/// One step's groups as they are made; what was made goes again unless it is kept.
class Tree::Work {
 public:
  Work(Tree& tree, const StepAsk& ask) : tree_(tree), kernel_(*tree.kernel_), ask_(ask) {}

  Result<StepFence> put_up() {
    Result<void> done = memory();
    if (done) done = cores();
    if (done) done = processes();
    if (done) done = devices();
    if (done) return std::move(fence_);
    for (const std::string& directory : fence_.remove) kernel_.remove(directory);
    tree_.tidy(ask_.uid, ask_.job);
    return pass(std::move(done.error()));
  }

 private:
  [[nodiscard]] std::string job_group() const { return parent_of(ask_.cgroup); }

  Result<void> set(const std::string& directory, std::string_view file, const std::string& value) {
    return kernel_.write(fmt::format("{}/{}", directory, file), value);
  }

  /// Makes the step's directory of v1 and those above it; `opened` is called with each, parents
  /// first, and whether it is new.
  template <class Fn>
  Result<std::string> make_v1(const std::string& controller, Fn&& opened) {
    std::string path = tree_.v1_base(controller);
    const std::string levels[] = {fmt::format("uid_{}", ask_.uid), fmt::format("job_{}", ask_.job),
                                  "step_" + ask_.step};
    for (std::size_t level = 0; level < std::size(levels); ++level) {
      path += '/' + levels[level];
      auto made = kernel_.make(path);
      if (!made) return pass(std::move(made.error()));
      const bool own = level + 1 == std::size(levels);
      if (own && !*made) {
        // Left over; what was in it is gone, or it cannot be removed.
        for (const std::string& task : kernel_.directories(path)) kernel_.remove(path + '/' + task);
        kernel_.remove(path);
        made = kernel_.make(path);
        if (!made) return pass(std::move(made.error()));
        if (!*made) return fail(Code::io, path + ": processes of an earlier step are in it");
      }
      if (own) fence_.remove.insert(fence_.remove.begin(), path);
      if (auto done = opened(path, level, *made); !done) return pass(std::move(done.error()));
    }
    return path;
  }

  Result<void> limit_v2(const std::string& group, const Limits& limits) {
    if (limits.memory) {
      auto done = set(group, "memory.max", std::to_string(*limits.memory));
      if (!done) return done;
    }
    if (tree_.swap_ && limits.swap) {
      return set(group, "memory.swap.max", std::to_string(*limits.swap));
    }
    return {};
  }

  Result<void> limit_v1(const std::string& group, const Limits& limits) {
    const auto sum = tree_.swap_ ? limits.memory_and_swap : std::nullopt;
    // RAM first, also where only the sum is limited: the kernel wants it no higher than the sum.
    if (const auto ram = limits.memory ? limits.memory : sum) {
      auto done = set(group, "memory.limit_in_bytes", std::to_string(*ram));
      if (!done) return done;
    }
    if (sum) return set(group, "memory.memsw.limit_in_bytes", std::to_string(*sum));
    return {};
  }

  Result<void> memory() {
    const bool asked = ask_.of_job.memory || ask_.of_step.memory || ask_.of_job.swap;
    if (!asked || tree_.means_.memory == Version::none) return {};
    if (tree_.means_.memory == Version::v2) {
      auto done = set(job_group(), "cgroup.subtree_control", "+memory");
      if (done) done = limit_v2(job_group(), ask_.of_job);
      if (done) done = limit_v2(ask_.cgroup, ask_.of_step);
      fence_.memory_events = ask_.cgroup + "/memory.events";
      return done;
    }
    auto path =
        make_v1("memory", [&](const std::string& group, std::size_t level, bool) -> Result<void> {
          if (level == 0) return {};
          return limit_v1(group, level == 1 ? ask_.of_job : ask_.of_step);
        });
    if (!path) return pass(std::move(path.error()));
    fence_.join.push_back(*path);
    fence_.memory_events = *path + "/memory.oom_control";
    return {};
  }

  /// A group of v1 takes nobody before it has CPUs and memory nodes.
  Result<void> inherit_cpus(const std::string& group, const std::string& cpus) {
    for (const char* file : {"cpuset.mems", "cpuset.cpus"}) {
      std::string value = std::string_view(file) == "cpuset.cpus" ? cpus : "";
      if (value.empty()) value = kernel_.read(parent_of(group) + '/' + file).value_or("");
      if (value.ends_with('\n')) value.pop_back();
      if (auto done = set(group, file, value); !done) return done;
    }
    return {};
  }

  Result<void> cores() {
    if (ask_.of_step.cpus.empty() || tree_.means_.cores == Version::none) return {};
    if (tree_.means_.cores == Version::v2) {
      auto done = set(job_group(), "cgroup.subtree_control", "+cpuset");
      if (done && !ask_.of_job.cpus.empty())
        done = set(job_group(), "cpuset.cpus", ask_.of_job.cpus);
      if (done) done = set(ask_.cgroup, "cpuset.cpus", ask_.of_step.cpus);
      return done;
    }
    auto path = make_v1("cpuset", [&](const std::string& group, std::size_t level, bool) {
      return inherit_cpus(group, level == 0   ? ""
                                 : level == 1 ? ask_.of_job.cpus
                                              : ask_.of_step.cpus);
    });
    if (!path) return pass(std::move(path.error()));
    fence_.join.push_back(*path);
    return {};
  }

  /// Of the step alone: one that has used up its own must not keep others of its job from starting.
  Result<void> processes() {
    if (!ask_.of_step.processes || tree_.means_.processes == Version::none) return {};
    const std::string most = std::to_string(*ask_.of_step.processes);
    std::string group = ask_.cgroup;
    Result<void> done;
    if (tree_.means_.processes == Version::v2) {
      if (group.empty()) return fail(Code::io, "the step has no group of cgroup v2");
      done = set(job_group(), "cgroup.subtree_control", "+pids");
    } else {
      auto path =
          make_v1("pids", [](const std::string&, std::size_t, bool) { return Result<void>(); });
      if (!path) return pass(std::move(path.error()));
      group = *path;
      fence_.join.push_back(group);
    }
    if (done) done = set(group, "pids.max", most);
    fence_.process_events = group + "/pids.events";
    return done;
  }

  Result<void> forbid_v1(const std::string& group, const std::vector<DeviceRule>& rules) {
    for (const DeviceId& device : forbidden(rules, tree_.known_)) {
      auto done =
          set(group, "devices.deny",
              fmt::format("{} {}:{} rwm", device.block ? 'b' : 'c', device.major, device.minor));
      if (!done) return done;
    }
    return {};
  }

  Result<void> devices() {
    if (ask_.devices.empty() || tree_.means_.devices == Version::none) return {};
    return tree_.means_.devices == Version::v2 ? devices_v2() : devices_v1();
  }

  Result<void> devices_v2() {
    if (ask_.cgroup.empty()) return fail(Code::io, "the step has no group of cgroup v2");
    auto done = job_devices_v2();
    if (done) done = kernel_.filter_devices(ask_.cgroup, ask_.devices);
    if (!done || ask_.tasks.empty()) return done;
    const std::string above = ask_.cgroup + "/user";
    if (auto made = kernel_.make(above); !made) return pass(std::move(made.error()));
    fence_.remove.insert(fence_.remove.begin(), above);
    for (std::size_t i = 0; i < ask_.tasks.size(); ++i) {
      const std::string group = fmt::format("{}/task_{}", above, i);
      if (auto made = kernel_.make(group); !made) return pass(std::move(made.error()));
      fence_.remove.insert(fence_.remove.begin(), group);
      if (done = kernel_.filter_devices(group, ask_.tasks[i]); !done) return done;
      fence_.tasks.push_back({.cgroup = group, .join = {}});
    }
    return {};
  }

  /// With its first step; later ones have the same share of the node.
  Result<void> job_devices_v2() {
    if (ask_.job_devices.empty()) return {};
    std::vector<DeviceRule>& known = tree_.job_filters_[ask_.job];
    if (known == ask_.job_devices && kernel_.filters_devices(job_group())) return {};
    known = ask_.job_devices;
    return kernel_.filter_devices(job_group(), ask_.job_devices);
  }

  /// A group that is not new may be an earlier job's of this number, in which others still are.
  Result<void> allow_v1(const std::string& group, const std::vector<DeviceRule>& rules) {
    for (const DeviceId& device : tree_.known_) {
      if (!allowed(rules, device)) continue;
      auto done =
          set(group, "devices.allow",
              fmt::format("{} {}:{} rwm", device.block ? 'b' : 'c', device.major, device.minor));
      if (!done) return done;
    }
    return {};
  }

  Result<void> devices_v1() {
    const auto open = [&](const std::string& group, std::size_t level, bool fresh) -> Result<void> {
      if (level == 2) return forbid_v1(group, ask_.devices);
      if (level == 0 || ask_.job_devices.empty()) return {};
      if (auto done = fresh ? Result<void>{} : allow_v1(group, ask_.job_devices); !done)
        return done;
      return forbid_v1(group, ask_.job_devices);
    };
    auto path = make_v1("devices", open);
    if (!path) return pass(std::move(path.error()));
    if (ask_.tasks.empty()) {
      fence_.join.push_back(*path);
      return {};
    }
    for (std::size_t i = 0; i < ask_.tasks.size(); ++i) {
      const std::string group = fmt::format("{}/task_{}", *path, i);
      if (auto made = kernel_.make(group); !made) return pass(std::move(made.error()));
      fence_.remove.insert(fence_.remove.begin(), group);
      if (auto done = forbid_v1(group, ask_.tasks[i]); !done) return done;
      fence_.tasks.push_back({.cgroup = "", .join = {group}});
    }
    return {};
  }

  Tree& tree_;
  Kernel& kernel_;
  const StepAsk& ask_;
  StepFence fence_;
};

Tree::Tree(Kernel& kernel, Hierarchies here, Means means, bool swap, Place place,
           std::vector<std::string>& missing)
    : kernel_(&kernel), here_(std::move(here)), swap_(swap), place_(std::move(place)) {
  const auto open = [&](Version version, const std::string& controller) {
    if (version == Version::none) return Version::none;
    const bool opened =
        version == Version::v1 ? open_v1(controller, missing) : open_v2(controller, missing);
    return opened ? version : Version::none;
  };
  means_.devices = open(means.devices, "devices");
  means_.memory = open(means.memory, "memory");
  means_.cores = open(means.cores, kCores);
  means_.processes = open(means.processes, "pids");
  if (!swap_ || means_.memory == Version::none) return;
  const std::string counted = means_.memory == Version::v1
                                  ? v1_base("memory") + "/memory.memsw.limit_in_bytes"
                                  : place_.v2_base + "/memory.swap.max";
  if (!kernel_->read(counted)) {
    missing.push_back(
        fmt::format("ConstrainSwapSpace cannot be done: there is no {}: start the kernel with "
                    "swapaccount=1",
                    counted));
    swap_ = false;
  }
}

std::string Tree::v1_base(const std::string& controller) const {
  const auto at = here_.v1.find(controller);
  return at == here_.v1.end() ? "" : fmt::format("{}/{}", at->second, place_.v1_name);
}

bool Tree::open_v1(const std::string& controller, std::vector<std::string>& missing) {
  const std::string base = v1_base(controller);
  Result<void> done;
  if (auto made = kernel_->make(base); !made) done = pass(std::move(made.error()));
  if (done && controller == kCores) {
    for (const char* file : {"cpuset.mems", "cpuset.cpus"}) {
      std::string value = kernel_->read(parent_of(base) + '/' + file).value_or("");
      if (value.ends_with('\n')) value.pop_back();
      if (done) done = kernel_->write(fmt::format("{}/{}", base, file), value);
    }
  }
  if (!done)
    missing.push_back(
        fmt::format("no group of {} (cgroup v1) can be made: {}", controller, done.error().what()));
  return done.has_value();
}

/// A group has a controller when every group above it passes it on.
bool Tree::open_v2(const std::string& controller, std::vector<std::string>& missing) {
  if (place_.v2_base.empty()) {
    missing.push_back(fmt::format("{}: no group of cgroup v2 can be made", controller));
    return false;
  }
  if (controller == "devices") {
    auto done = kernel_->keep_filtering(place_.v2_base);
    if (!done) missing.push_back(fmt::format("ConstrainDevices: {}", done.error().what()));
    return done.has_value();
  }
  std::size_t at = here_.v2.size();
  for (;;) {
    const std::string file = place_.v2_base.substr(0, at) + "/cgroup.subtree_control";
    if (!has_word(kernel_->read(file).value_or(""), controller)) {
      if (auto done = kernel_->write(file, "+" + controller); !done) {
        missing.push_back(fmt::format("the controller {} of cgroup v2 cannot be passed on: {}",
                                      controller, done.error().what()));
        return false;
      }
    }
    if (at == place_.v2_base.size()) return true;
    at = std::min(place_.v2_base.find('/', at + 1), place_.v2_base.size());
  }
}

Result<StepFence> Tree::put_up(const StepAsk& ask) {
  return Work(*this, ask).put_up();
}

std::vector<std::string> Tree::v1_bases() const {
  std::vector<std::string> bases;
  for (const char* controller : {"devices", "memory", "cpuset", "pids"}) {
    std::string base = v1_base(controller);
    if (!base.empty()) bases.push_back(std::move(base));
  }
  return bases;
}

bool remove_job_group(Kernel& kernel, const std::string& path) {
  if (kernel.remove(path)) return true;
  const std::vector<std::string> names = kernel.directories(path);
  const auto is_step = [](const std::string& name) { return name.starts_with("step_"); };
  if (std::ranges::any_of(names, is_step)) return true;  // whoever ends the last one comes again
  for (const std::string& name : names) kernel.remove(path + '/' + name);
  return kernel.remove(path);
}

bool Tree::tidy(std::uint32_t uid, std::uint32_t job) {
  job_filters_.erase(job);
  if (means_.devices != Version::v1 && means_.memory != Version::v1 &&
      means_.cores != Version::v1 && means_.processes != Version::v1) {
    return true;
  }
  bool all = true;
  for (const std::string& base : v1_bases()) {
    const std::string user = fmt::format("{}/uid_{}", base, uid);
    const bool gone = remove_job_group(*kernel_, fmt::format("{}/job_{}", user, job));
    if (gone) kernel_->remove(user);
    all = all && gone;
  }
  return all;
}

std::vector<Found> Tree::found() const {
  std::vector<Found> out;
  if (kernel_ == nullptr) return out;
  for (const std::string& base : v1_bases()) {
    for (const std::string& user : kernel_->directories(base)) {
      for (const std::string& job : kernel_->directories(fmt::format("{}/{}", base, user))) {
        const auto id = number_after(job, "job_");
        const std::string path = fmt::format("{}/{}/{}", base, user, job);
        for (const std::string& step : kernel_->directories(path)) {
          if (!id || !step.starts_with("step_")) continue;
          out.push_back({*id, step.substr(5), fmt::format("{}/{}", path, step)});
        }
      }
    }
  }
  return out;
}

void Tree::sweep() {
  if (kernel_ == nullptr) return;
  for (const std::string& base : v1_bases()) {
    for (const std::string& name : kernel_->directories(base)) {
      const std::string user = fmt::format("{}/{}", base, name);
      for (const std::string& job : kernel_->directories(user)) {
        remove_job_group(*kernel_, fmt::format("{}/{}", user, job));
      }
      kernel_->remove(user);
    }
  }
}

void Tree::leave() {
  if (kernel_ == nullptr) return;
  sweep();
  for (const std::string& base : v1_bases()) kernel_->remove(base);
}

std::uint64_t count_named(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(word) || line.size() <= word.size() || line[word.size()] != ' ') continue;
    line.remove_prefix(word.size() + 1);
    std::uint64_t value = 0;
    std::from_chars(line.data(), line.data() + line.size(), value);
    return value;
  }
  return 0;
}

}  // namespace berth::cgroup
