// Files that tasks read and write by name: opened on the node, as the user, with missing
// directories made as the user. One open for each name, so that tasks that share a file append to
// one another.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "step/identity.h"
#include "wire/submit.pb.h"

namespace berth::step {

/// A file that the supervisor itself writes to. It never waits for whoever reads a pipe: what
/// cannot be written yet is kept.
class QueuedFile {
 public:
  /// `fd`: does not block where it can.
  explicit QueuedFile(Fd fd) : fd_(std::move(fd)) {}
  void write(std::string_view bytes);
  void flush();
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::size_t backlog() const { return queue_.size(); }

 private:
  Fd fd_;
  std::string queue_;
};

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
  /// As writing(), for what the supervisor writes.
  Result<std::shared_ptr<QueuedFile>> queued(const std::string& path);
  /// Files of queued() that have not taken all yet.
  [[nodiscard]] std::vector<QueuedFile*> waiting() const;

 private:
  const wire::StepSpec& spec_;
  const wire::Program& program_;
  Identity who_;
  std::string directory_;
  Result<Fd> open_to_write(const std::string& path);

  std::map<std::string, std::shared_ptr<Fd>> open_;
  std::map<std::string, std::shared_ptr<QueuedFile>> queued_;
};

}  // namespace berth::step
