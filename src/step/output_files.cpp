// What output_files.h promises.
#include "step/output_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "step/launch_failure.h"
#include "step/spool.h"
#include "text/pattern.h"
#include "wire/step_ids.h"

namespace berth::step {
namespace {

/// Makes the directories above a file. Who may not make them sees it when the file is opened.
void make_directories_above(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    ::mkdir(path.substr(0, slash).c_str(), 0777);
  }
}

/// A pipe without a reader must not hold up the supervisor.
Fd open_without_waiting(const std::string& path, int flags) {
  return Fd(::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666));
}

/// A task waits for whoever reads what it writes.
void let_wait(const Fd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
}

}  // namespace

void QueuedFile::write(std::string_view bytes) {
  queue_ += bytes;
  flush();
}

void QueuedFile::flush() {
  std::size_t written = 0;
  while (written < queue_.size()) {
    const ssize_t n = ::write(fd_.get(), queue_.data() + written, queue_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) return queue_.clear();  // nobody will ever read it, or there is no room
    written += static_cast<std::size_t>(n);
  }
  queue_.erase(0, written);
}

OutputFiles::OutputFiles(const wire::StepSpec& spec, const wire::Program& program,
                         std::string directory)
    : spec_(spec), program_(program), who_(Identity::of(spec)), directory_(std::move(directory)) {}

std::string OutputFiles::path_of(const std::string& pattern, std::uint32_t rank) const {
  text::PatternValues values;
  values.job_id = std::to_string(spec_.job_id());
  values.job_name = program_.job_name();
  values.user = spec_.user();
  values.node = spec_.node();
  if (spec_.step_id() != wire::kBatchStep) values.step_id = step_name(spec_.step_id());
  if (program_.has_array_task_id()) {
    values.array_master = std::to_string(program_.array_job_id());
    values.array_index = std::to_string(program_.array_task_id());
  }
  values.task = std::to_string(rank);
  values.node_rank = std::to_string(spec_.node_id());
  values.restarts = std::to_string(spec_.attempt() > 0 ? spec_.attempt() - 1 : 0);
  values.sluid = spec_.sluid();
  std::string path = text::expand_pattern(pattern, values);
  if (!path.starts_with('/')) path = directory_ + '/' + path;
  return path;
}

Result<Fd> OutputFiles::open_to_write(const std::string& path) {
  const ActingAs user(who_);
  const mode_t before = ::umask(program_.umask());
  const int flags = O_WRONLY | O_CREAT | O_APPEND | (program_.append() ? 0 : O_TRUNC);
  Fd fd = open_without_waiting(path, flags);
  if (!fd && errno == ENOENT) {
    make_directories_above(path);
    fd = open_without_waiting(path, flags);
  }
  const int why = errno;
  ::umask(before);
  if (fd) return fd;
  return launch_failure(LaunchPart::output, "Could not open file " + path, why);
}

Result<std::shared_ptr<Fd>> OutputFiles::writing(const std::string& path) {
  if (const auto known = open_.find(path); known != open_.end()) return known->second;
  auto fd = open_to_write(path);
  if (!fd) return pass(std::move(fd.error()));
  let_wait(*fd);
  auto shared = std::make_shared<Fd>(std::move(*fd));
  open_.emplace(path, shared);
  return shared;
}

Result<std::shared_ptr<QueuedFile>> OutputFiles::queued(const std::string& path) {
  if (const auto known = queued_.find(path); known != queued_.end()) return known->second;
  auto fd = open_to_write(path);
  if (!fd) return pass(std::move(fd.error()));
  auto shared = std::make_shared<QueuedFile>(std::move(*fd));
  queued_.emplace(path, shared);
  return shared;
}

std::vector<QueuedFile*> OutputFiles::waiting() const {
  std::vector<QueuedFile*> found;
  for (const auto& [path, file] : queued_) {
    if (file->backlog() > 0) found.push_back(file.get());
  }
  return found;
}

Result<std::shared_ptr<Fd>> OutputFiles::reading(const std::string& path) {
  const ActingAs user(who_);
  Fd fd = open_without_waiting(path, O_RDONLY);
  if (!fd) {
    return launch_failure(LaunchPart::input, "Could not open stdin file", errno);
  }
  let_wait(fd);
  return std::make_shared<Fd>(std::move(fd));
}

}  // namespace berth::step
