// The PMIx helper: a process of its own, since a static program cannot load what the PMIx library
// loads, and since few steps need it.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "step/identity.h"
#include "step/key_exchange.h"
#include "step/spool.h"

namespace berth::step {

std::string KeyExchange::helper_directory() const {
  return directory_of(order_.step_directory()) + "/pmix";
}

void KeyExchange::no_helper(const std::string& what, int why) {
  served_ = true;
  door_.reset();
  outside_.say(fmt::format("PMIx: {}: {}", what, std::strerror(why)));
}

wire::ServePmix KeyExchange::order_of_helper() const {
  wire::ServePmix order;
  order.set_name_space(name_space());
  order.set_node(spec_.node());
  order.set_node_id(spec_.node_id());
  order.set_uid(spec_.uid());
  order.set_gid(spec_.gid());
  *order.mutable_layout() = *layout_;
  if (ready_first_) order.set_directory(helper_directory());
  order.set_job_id(std::to_string(spec_.job_id()));
  return order;
}

void KeyExchange::start_helper() {
  if (helper_ || !door_) return;
  if (ready_first_) {
    const std::string directory = helper_directory();
    ::mkdir(directory_of(order_.step_directory()).c_str(), 0711);
    if (::mkdir(directory.c_str(), 0700) != 0 ||
        (::geteuid() == 0 && ::chown(directory.c_str(), spec_.uid(), spec_.gid()) != 0)) {
      return no_helper(directory, errno);
    }
  }
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return no_helper("socketpair", errno);
  }
  helper_.emplace(Fd(ends[0]));
  const Fd theirs(ends[1]);
  const std::string program = order_.pmix_helper();
  const Identity who = Identity::of(spec_);
  Environment variables;
  variables["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  variables["HOME"] = spec_.home();
  variables["BERTH_STEP"] = order_.mark();
  const CommonVariables all(variables);
  EnvironmentBlock block{TaskEnvironment(all)};
  const pid_t pid = outside_.start([&] {
    // The two may be each other's numbers: move them away first.
    const int link = ::fcntl(theirs.get(), F_DUPFD_CLOEXEC, 64);
    const int door = ::fcntl(door_.get(), F_DUPFD_CLOEXEC, 64);
    ::dup2(link, 3);
    ::dup2(door, 4);
    ::syscall(SYS_close_range, 5U, ~0U, 0U);
    if (!who.become()) ::_exit(1);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    std::string word = program;
    char* argv[] = {word.data(), nullptr};
    ::execve(program.c_str(), argv, block.get());
    ::_exit(127);
  });
  if (pid < 0) return no_helper("fork", errno);
  door_.reset();  // it is the helper's now
  helper_->send(order_of_helper());
  helper_->flush();
}

void KeyExchange::read_helper() {
  const bool there = helper_->read();
  while (const auto frame = helper_->next()) {
    switch (frame->kind) {
      case wire::Kind::AbortStep:
        if (const auto m = wire::decode<wire::AbortStep>(frame->payload)) abort_step(*m);
        break;
      case wire::Kind::Exchange:
      case wire::Kind::Errand: {
        std::string bytes;
        wire::append_payload(bytes, frame->kind, frame->payload);
        outside_.up(bytes);
        break;
      }
      case wire::Kind::PmixServes:
        served_ = true;
        if (const auto m = wire::decode<wire::PmixServes>(frame->payload);
            m && !m->trouble().empty()) {
          outside_.say(fmt::format("PMIx: {}", m->trouble()));
        }
        break;
      default:
        break;
    }
  }
  if (!there || !helper_->open()) {
    helper_->close();
    served_ = true;
    if (!outside_.ending()) {
      outside_.say("the PMIx helper has ended: tasks that have not met yet will not");
    }
  }
  if (helper_->open() && !helper_->flush()) helper_->close();
}

}  // namespace berth::step
