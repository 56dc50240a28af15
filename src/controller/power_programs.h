// Runs SuspendProgram, ResumeProgram and ResumeFailProgram beside the state thread: a few at a
// time, the others wait their turn. A program has no time limit, outlives the controller, and is
// only heard of in the log when it fails.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "controller/log.h"

namespace berth::controller {

struct PowerProgram {
  std::string path;
  std::string nodes;                     // its argument: a host list
  std::vector<std::string> environment;  // "NAME=value"
  std::string file;                      // removed when the program has ended; "" = none
  uid_t uid = 0;                         // as whom it runs, where the controller is root
  gid_t gid = 0;
};

class PowerPrograms {
 public:
  explicit PowerPrograms(Log& log) : log_(log) {}
  /// Programs that run go on.
  ~PowerPrograms();
  PowerPrograms(const PowerPrograms&) = delete;
  PowerPrograms& operator=(const PowerPrograms&) = delete;

  /// Returns at once.
  void start(PowerProgram program);

 private:
  struct Child {
    PowerProgram program;
    pid_t pid = 0;
    Fd end;  // readable when it has ended
  };
  void work();
  void spawn(PowerProgram program);
  void wait_for_news();
  void reap();

  Log& log_;
  Fd wake_;
  std::vector<Child> children_;  // of the thread alone
  std::mutex mutex_;
  std::deque<PowerProgram> waiting_;  // guarded by mutex_
  bool stopping_ = false;             // guarded by mutex_
  std::thread thread_;
};

}  // namespace berth::controller
