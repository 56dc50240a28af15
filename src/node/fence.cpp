// What fence.h promises.
#include "node/fence.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace berth::node {
namespace {

/// The log is written anew with what still counts when it is larger than this.
constexpr std::size_t kLargest = 4 * 1024 * 1024;

void drop(std::set<Begun>& from, const Begun& what) {
  if (what.step) {
    from.erase(what);
    return;
  }
  // The job itself comes before its steps.
  auto one = from.lower_bound(what);
  while (one != from.end() && one->node == what.node && one->job == what.job &&
         one->attempt == what.attempt) {
    one = from.erase(one);
  }
}

}  // namespace

Fence::Fence(std::string path, std::string boot_id)
    : path_(std::move(path)), boot_id_(std::move(boot_id)) {}

Result<std::unique_ptr<Fence>> Fence::open(const std::string& path, const std::string& boot_id) {
  std::unique_ptr<Fence> fence(new Fence(path, boot_id));
  if (auto done = fence->read(); !done) return pass(std::move(done.error()));
  if (std::string trouble = fence->rewrite(); !trouble.empty()) {
    return fail(Code::io, fmt::format("{}: {}", path, trouble));
  }
  // The thread must not take signals that the loop waits for: a SIGCHLD it takes is lost.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  fence->thread_ = std::thread([f = fence.get()] { f->work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return fence;
}

Fence::~Fence() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Result<void> Fence::read() {
  const auto text = step::read_file(path_);
  if (!text) {
    if (errno == ENOENT) return {};
    return fail(Code::io, fmt::format("{}: {}", path_, std::strerror(errno)));
  }
  std::istringstream in(*text);
  std::string line;
  while (std::getline(in, line)) {
    // A line that was cut off by a crash was never confirmed to anybody.
    std::istringstream words(line);
    std::string verb;
    std::string boot;
    std::string step;
    std::string end;
    Begun what;
    if (!(words >> verb >> boot >> what.node >> what.job >> what.attempt >> step >> end) ||
        end != ".") {
      continue;
    }
    if (step != "-")
      what.step = static_cast<std::uint32_t>(std::strtoul(step.c_str(), nullptr, 10));
    if (verb == "begin") {
      (boot == boot_id_ ? alive_ : lost_).insert(what);
    } else if (verb == "forget") {
      drop(alive_, what);
      drop(lost_, what);
    }
  }
  return {};
}

std::string Fence::line_of(std::string_view verb, const Begun& what) const {
  return fmt::format("{} {} {} {} {} {} .\n", verb, boot_id_, what.node, what.job, what.attempt,
                     what.step ? std::to_string(*what.step) : "-");
}

/// The log with only what still counts; lost ones stay lost until they are forgotten.
std::string Fence::rewrite() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    for (const Begun& what : alive_) text += line_of("begin", what);
    for (const Begun& what : lost_) {
      text += fmt::format("begin before {} {} {} {} .\n", what.node, what.job, what.attempt,
                          what.step ? std::to_string(*what.step) : "-");
    }
  }
  if (!step::write_file(path_, text, 0600, true)) return std::strerror(errno);
  file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file_) return std::strerror(errno);
  size_ = text.size();
  damaged_ = false;
  return {};
}

void Fence::begin(const Begun& what, Stored stored) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back({line_of("begin", what), std::move(stored)});
    alive_.insert(what);
  }
  changed_.notify_one();
}

void Fence::forget(const Begun& what) {
  const std::lock_guard lock(mutex_);
  items_.push_back({line_of("forget", what), {}});
  drop(alive_, what);
  drop(lost_, what);
}

void Fence::work() {
  for (;;) {
    std::vector<Item> batch;
    {
      std::unique_lock lock(mutex_);
      const auto urgent = [this] {
        return stopping_ || std::ranges::any_of(items_, [](const Item& item) {
                 return static_cast<bool>(item.stored);
               });
      };
      changed_.wait(lock, urgent);
      if (stopping_ && items_.empty()) return;
      batch.swap(items_);
    }
    const std::string trouble = write_batch(batch);
    for (Item& item : batch) {
      if (item.stored) item.stored(trouble);
    }
  }
}

std::string Fence::write_batch(const std::vector<Item>& batch) {
  // After a failed write or sync nobody knows what the disk has: start a new file.
  if (damaged_ || size_ > kLargest) {
    if (std::string trouble = rewrite(); !trouble.empty()) {
      damaged_ = true;
      return trouble;
    }
  }
  std::string text;
  for (const Item& item : batch) text += item.line;
  if (!step::write_all(file_.get(), text) || ::fdatasync(file_.get()) != 0) {
    damaged_ = true;
    return std::strerror(errno);
  }
  size_ += text.size();
  return {};
}

}  // namespace berth::node
