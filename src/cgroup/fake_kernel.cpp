// A kernel that only remembers, for tests of those who use one.
#include <fmt/format.h>

#include <algorithm>

#include "cgroup/kernel.h"

namespace berth::cgroup {
namespace {

std::unexpected<Error> refusal(const std::string& what) {
  return fail(Code::io, what + ": Permission denied");
}

}  // namespace

Result<bool> FakeKernel::make(const std::string& directory) {
  if (refuses.contains(directory)) return refusal(directory);
  const bool fresh = made.insert(directory).second;
  if (fresh) done.push_back("make " + directory);
  return fresh;
}

Result<void> FakeKernel::write(const std::string& file, const std::string& value) {
  if (refuses.contains(file)) return refusal(file);
  files[file] = value;
  done.push_back(fmt::format("write {}={}", file, value));
  return {};
}

std::optional<std::string> FakeKernel::read(const std::string& file) {
  const auto at = files.find(file);
  return at == files.end() ? std::nullopt : std::optional(at->second);
}

Result<void> FakeKernel::filter_devices(const std::string& directory,
                                        std::span<const DeviceRule> rules) {
  if (refuses.contains("filter " + directory)) return refusal("bpf");
  filters[directory].assign(rules.begin(), rules.end());
  done.push_back("filter " + directory);
  return {};
}

Result<void> FakeKernel::keep_filtering(const std::string& directory) {
  return filter_devices(directory, {});
}

bool FakeKernel::filters_devices(const std::string& directory) {
  return filters.contains(directory);
}

bool FakeKernel::remove(const std::string& directory) {
  const auto below = made.upper_bound(directory + '/');
  if (below != made.end() && below->starts_with(directory + '/')) return false;
  filters.erase(directory);
  if (made.erase(directory) > 0) done.push_back("remove " + directory);
  return true;
}

std::vector<std::string> FakeKernel::directories(const std::string& directory) {
  std::vector<std::string> found;
  const std::string start = directory + '/';
  for (auto at = made.lower_bound(start); at != made.end() && at->starts_with(start); ++at) {
    const std::string name = at->substr(start.size());
    if (name.find('/') == std::string::npos) found.push_back(name);
  }
  return found;
}

}  // namespace berth::cgroup
