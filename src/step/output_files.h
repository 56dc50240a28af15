// Files that tasks read and write by name: opened on the node, as the user, with missing
// directories made as the user. One open for each name, so that tasks that share a file append to
// one another.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "step/identity.h"
#include "wire/submit.pb.h"

namespace berth::step {

class OutputFiles {
 public:
  OutputFiles(const wire::StepSpec& spec, const wire::Program& program, std::string directory);

  /// Where names that do not begin with '/' begin.
  void set_directory(std::string directory) { directory_ = std::move(directory); }
  /// The name a pattern stands for in this task.
  [[nodiscard]] std::string path_of(const std::string& pattern, std::uint32_t rank) const;
  /// The same descriptor for the same path.
  Result<std::shared_ptr<Fd>> writing(const std::string& path);
  Result<std::shared_ptr<Fd>> reading(const std::string& path);

 private:
  const wire::StepSpec& spec_;
  const wire::Program& program_;
  Identity who_;
  std::string directory_;
  std::map<std::string, std::shared_ptr<Fd>> open_;
};

}  // namespace berth::step
