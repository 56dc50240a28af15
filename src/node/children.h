// Processes the agent starts: supervisors, prologs. Started without copying the agent's memory,
// reaped by one handler.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/loop.h"

namespace berth::node {

class Children {
 public:
  using Exited = std::move_only_function<void(int status)>;  // wait(2) form

  /// Takes SIGCHLD of the loop and makes this process a subreaper: what a dead supervisor leaves
  /// behind comes here.
  explicit Children(net::Loop& loop);
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  struct Plan {
    std::string program;
    std::vector<std::string> argv;         // without argv[0]
    std::vector<std::string> environment;  // all of it, "NAME=value"
    std::vector<int> descriptors;          // become 3, 4, …; -1 = left out
    int output = -1;                       // its standard output; -1 = /dev/null
    std::string directory = "/";
    bool spared = false;  // as this process, when memory runs out
  };
  /// In a process group of its own, standard streams on /dev/null, no blocked signals.
  Result<pid_t> start(const Plan& plan, Exited exited);
  /// Its end is of no interest any more.
  void ignore(pid_t pid);

 private:
  void reap();
  net::Loop& loop_;
  std::map<pid_t, Exited> waiting_;
  std::shared_ptr<const bool> alive_ =
      std::make_shared<const bool>(true);  // the loop may outlive it
};

}  // namespace berth::node
