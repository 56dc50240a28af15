// Looks at the GPUs of this machine again and again, through berth-nvml, which runs as long as the
// agent does and is started again when it ends.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "net/loop.h"
#include "node/children.h"
#include "node/log.h"
#include "survey/survey.h"

namespace berth::node {

/// One look at all GPUs, which are counted as NVIDIA's library counts them.
struct GpuRound {
  std::map<std::uint32_t, survey::Sample> samples;
  std::map<std::uint32_t, std::string> lost;  // and why
  std::vector<survey::Process> processes;
};

class GpuWatch {
 public:
  struct Events {
    std::function<void(const GpuRound&)> round;
    std::function<void(const survey::Xid&)> xid;
  };
  GpuWatch(net::Loop& loop, Log& log, Children& children, Events events)
      : loop_(loop), log_(log), children_(children), events_(std::move(events)) {}
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// `helper`: path of berth-nvml.
  void start(std::string helper, std::chrono::milliseconds every);
  /// The helper begins anew: the library counts GPUs when it is loaded, and not again.
  void count_again();

 private:
  void run();
  void read();
  void take(std::string_view line);
  void stop_reading();
  void again(const std::string& why);

  net::Loop& loop_;
  Log& log_;
  Children& children_;
  Events events_;
  std::string helper_;
  std::chrono::milliseconds every_{1000};
  Fd pipe_;
  pid_t pid_ = 0;
  std::string unread_;  // an incomplete line
  GpuRound round_;
  net::TimerId timer_ = net::TimerId::none;
  bool asked_to_end_ = false;
  std::string said_;  // the last trouble that was logged
};

}  // namespace berth::node
