#include "node/gpu_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace berth::node {
namespace {

constexpr auto kPause = std::chrono::seconds(10);

std::vector<std::string> own_environment() {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) out.emplace_back(*at);
  return out;
}

}  // namespace

GpuWatch::~GpuWatch() {
  loop_.cancel(timer_);
  stop_reading();
  if (pid_ > 0) {
    children_.ignore(pid_);
    ::kill(pid_, SIGTERM);
  }
}

void GpuWatch::start(std::string helper, std::chrono::milliseconds every) {
  helper_ = std::move(helper);
  every_ = every;
  run();
}

void GpuWatch::run() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return again(fmt::format("pipe: {}", std::strerror(errno)));
  }
  pipe_ = Fd(ends[0]);
  const Fd output(ends[1]);
  ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
  Children::Plan plan;
  plan.program = helper_;
  plan.argv = {"watch", "--every", fmt::format("{}ms", every_.count())};
  plan.environment = own_environment();
  plan.output = output.get();
  const auto started = children_.start(plan, [this](int) {
    pid_ = 0;
    stop_reading();
    if (std::exchange(asked_to_end_, false)) {
      timer_ = loop_.after(std::chrono::milliseconds(0), [this] { run(); });
      return;
    }
    again("it ended");
  });
  if (!started) {
    pipe_ = Fd();
    return again(std::string(started.error().what()));
  }
  pid_ = *started;
  loop_.watch(pipe_.get(), {.read = true}, [this](net::Ready) { read(); });
}

void GpuWatch::count_again() {
  if (pid_ <= 0) return;
  asked_to_end_ = true;
  ::kill(pid_, SIGTERM);
}

void GpuWatch::stop_reading() {
  if (!pipe_) return;
  loop_.unwatch(pipe_.get());
  pipe_ = Fd();
  unread_.clear();
  round_ = {};
}

void GpuWatch::again(const std::string& why) {
  if (why != said_) log_.error("the GPUs are not watched: {}: {}", helper_, why);
  said_ = why;
  timer_ = loop_.after(kPause, [this] { run(); });
}

void GpuWatch::read() {
  std::array<char, 65536> piece;
  const ssize_t n = ::read(pipe_.get(), piece.data(), piece.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) return stop_reading();  // its end is told by Children
  unread_.append(piece.data(), static_cast<std::size_t>(n));
  std::size_t from = 0;
  for (std::size_t end = unread_.find('\n'); end != std::string::npos;
       end = unread_.find('\n', from)) {
    take(std::string_view(unread_).substr(from, end - from));
    from = end + 1;
  }
  unread_.erase(0, from);
  if (unread_.size() > survey::kMostLine) unread_.clear();
}

void GpuWatch::take(std::string_view text) {
  auto line = survey::read_line(text);
  if (!line) {
    if (said_ != text) log_.error("berth-nvml: {}", line.error().what());
    said_ = text;
    return;
  }
  if (const auto* sample = std::get_if<survey::Sample>(&*line)) {
    if (round_.samples.size() < survey::kMostGpus) round_.samples[sample->gpu] = *sample;
  } else if (const auto* lost = std::get_if<survey::Lost>(&*line)) {
    if (round_.lost.size() < survey::kMostGpus) round_.lost[lost->index] = lost->why;
  } else if (const auto* process = std::get_if<survey::Process>(&*line)) {
    if (round_.processes.size() < survey::kMostProcesses) round_.processes.push_back(*process);
  } else if (const auto* xid = std::get_if<survey::Xid>(&*line)) {
    events_.xid(*xid);
  } else if (std::holds_alternative<survey::End>(*line)) {
    const GpuRound whole = std::exchange(round_, {});
    said_.clear();
    events_.round(whole);
  }
}

}  // namespace berth::node
