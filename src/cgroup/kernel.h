// What drivers do to the machine, so that tests can watch them: directories and files of cgroup
// file systems, and device programs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cgroup/devices.h"

namespace berth::cgroup {

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// One directory; true when it is new, false when it was there.
  virtual Result<bool> make(const std::string& directory) = 0;
  virtual Result<void> write(const std::string& file, const std::string& value) = 0;
  virtual std::optional<std::string> read(const std::string& file) = 0;
  /// From now on, in place of what was said of this directory before; goes with the directory.
  virtual Result<void> filter_devices(const std::string& directory,
                                      std::span<const DeviceRule> rules) = 0;
  /// A program that allows everything, unless the directory has one: shows whether programs can be
  /// had at all, before a step needs one.
  virtual Result<void> keep_filtering(const std::string& directory) = 0;
  /// Whether it has a program of its own.
  virtual bool filters_devices(const std::string& directory) = 0;
  /// False when it is still there.
  virtual bool remove(const std::string& directory) = 0;
  /// Names of the directories in it.
  virtual std::vector<std::string> directories(const std::string& directory) = 0;
};

/// This machine.
Kernel& this_kernel();

/// Remembers what it was told, in order, and fails where it is told to.
class FakeKernel : public Kernel {
 public:
  Result<bool> make(const std::string& directory) override;
  Result<void> write(const std::string& file, const std::string& value) override;
  std::optional<std::string> read(const std::string& file) override;
  Result<void> filter_devices(const std::string& directory,
                              std::span<const DeviceRule> rules) override;
  Result<void> keep_filtering(const std::string& directory) override;
  bool filters_devices(const std::string& directory) override;
  bool remove(const std::string& directory) override;
  std::vector<std::string> directories(const std::string& directory) override;

  std::set<std::string> made;
  std::map<std::string, std::string> files;  // what was written, and what there is to read
  std::map<std::string, std::vector<DeviceRule>> filters;
  std::vector<std::string> done;  // "make …", "write …=…", "filter …", "remove …"
  std::set<std::string> refuses;  // directories and files that cannot be made or written
};

}  // namespace berth::cgroup
