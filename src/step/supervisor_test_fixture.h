// A supervisor in a process of its own, with the test as agent and client.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "step/peer.h"
#include "step/spool.h"
#include "step/supervisor.h"
#include "wire/step_ids.h"

namespace berth::step {

/// Long enough for a machine that is busy with other things; nothing waits for it to pass.
inline constexpr auto kLong = std::chrono::seconds(60);

inline bool eventually(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

class SupervisorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/berth-step-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = std::filesystem::canonical(pattern);
    spec_.set_job_id(5);
    spec_.set_attempt(1);
    spec_.set_step_id(0);
    spec_.set_node("n0");
    spec_.set_uid(::getuid());
    spec_.set_gid(::getgid());
    spec_.set_user("alice");
    tasks(1);
    order_.set_step_directory(directory_ + "/step");
    order_.set_emulated(true);
    order_.set_kill_wait_seconds(600);
    order_.set_unkillable_seconds(600);
    order_.set_gathers_bytes(true);
    order_.set_mark("n0:5.1.0:" + directory_);
    order_.set_has_client(true);
    program().set_directory(directory_);
    program().set_umask(0022);
    variable("PATH", "/usr/local/bin:/usr/bin:/bin");
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(directory_);
  }

  wire::Program& program() { return *order_.mutable_program(); }
  void tasks(std::uint32_t count) {
    spec_.set_ntasks(count);
    spec_.clear_tasks();
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::TaskSpec& task = *spec_.add_tasks();
      task.set_rank(i);
      task.set_local_id(i);
    }
  }
  void variable(const std::string& name, const std::string& value) {
    wire::Variable& v = *program().add_environment();
    v.set_name(name);
    v.set_value(value);
  }
  void shell(const std::string& text) {
    program().clear_argv();
    program().add_argv("sh");
    program().add_argv("-c");
    program().add_argv(text);
  }
  void batch(const std::string& script) {
    order_.set_has_client(false);
    spec_.set_step_id(wire::kBatchStep);
    program().set_step_started_by_batch(true);
    program().set_script(script);
    program().mutable_stdout()->set_kind("file");
    program().mutable_stdout()->set_pattern("slurm-%j.out");
  }

  void start() {
    int agent[2];
    int client[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, agent), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client), 0);
    order_.set_spec(spec_.SerializeAsString());
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(agent[0]);
      ::close(client[0]);
      const int record =
          ::open((directory_ + "/step").c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
      ::_exit(supervise(agent[1], client[1], record));
    }
    ::close(agent[1]);
    ::close(client[1]);
    agent_ = std::make_unique<Peer>(Fd(agent[0]));
    client_ = std::make_unique<Peer>(Fd(client[0]));
    agent_->send(order_);
    if (end_with_order_) agent_->send(*end_with_order_);
    agent_->flush();
  }
  /// The client's end of one more connection, handed to the supervisor as the agent does it.
  Fd attach(const wire::SuperviseAttach& how) {
    int pair[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const Fd theirs(pair[1]);
    EXPECT_TRUE(send_with_descriptor(agent_->fd(), wire::framed(how), theirs.get()));
    return Fd(pair[0]);
  }
  void input(const std::string& text, bool end) {
    wire::Input in;
    in.set_data(text);
    in.set_end(end);
    client_->send(in);
    client_->flush();
  }

  /// Reads both connections until the condition holds.
  bool until(const std::function<bool()>& holds) {
    const auto limit = std::chrono::steady_clock::now() + kLong;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      pollfd fds[2] = {{agent_->open() ? agent_->fd() : -1, POLLIN, 0},
                       {client_->open() ? client_->fd() : -1, POLLIN, 0}};
      ::poll(fds, 2, 100);
      if (fds[0].revents != 0) read_agent();
      if (fds[1].revents != 0) read_client();
    }
    return true;
  }
  /// What the tasks use now.
  const wire::TasksMeasured& measure() {
    measured_.reset();
    agent_->send(wire::SuperviseMeasure());
    agent_->flush();
    EXPECT_TRUE(until([&] { return measured_.has_value(); }));
    return *measured_;
  }
  /// Runs to the end: StepEnded, and NodeDone when there is a client.
  void finish() {
    ASSERT_TRUE(until([&] { return ended_ && (done_ || !order_.has_client()); }))
        << "stdout so far: " << out_[0];
    client_->close();
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  void run() {
    start();
    finish();
  }
  /// wait(2) status of a task.
  int status_of(std::uint32_t rank) {
    for (int i = 0; i < ended_->ranks_size(); ++i) {
      if (ended_->ranks(i) == rank) return ended_->statuses(i);
    }
    ADD_FAILURE() << "no status of task " << rank;
    return -1;
  }
  std::string file(const std::string& name) {
    return read_file(directory_ + '/' + name).value_or("(no file " + name + ")");
  }

  std::string directory_;
  wire::Supervise order_;
  std::optional<wire::SuperviseEnd> end_with_order_;  // said in the same breath
  wire::StepSpec spec_;
  pid_t pid_ = 0;
  std::unique_ptr<Peer> agent_;
  std::unique_ptr<Peer> client_;
  std::map<std::uint32_t, std::string> out_;
  std::map<std::uint32_t, std::string> err_;
  std::vector<std::string> lines_;
  std::optional<wire::LaunchReply> reply_;
  std::optional<wire::StepEnded> ended_;
  std::optional<wire::TasksMeasured> measured_;
  std::optional<wire::NodeDone> done_;
  bool client_closed_ = false;
  std::function<void(const wire::Frame&)> on_frame_;  // of the client, all others

 private:
  void read_agent() {
    if (!agent_->read()) agent_->close();
    while (const auto frame = agent_->next()) {
      if (frame->kind == wire::Kind::StepEnded) {
        ended_ = wire::decode<wire::StepEnded>(frame->payload);
      }
      if (frame->kind == wire::Kind::TasksMeasured) {
        measured_ = wire::decode<wire::TasksMeasured>(frame->payload);
      }
    }
  }
  void read_client() {
    if (!client_->read()) client_->close();
    while (const auto frame = client_->next()) {
      switch (frame->kind) {
        case wire::Kind::Output: {
          const auto m = wire::decode<wire::Output>(frame->payload);
          (m->error() ? err_ : out_)[m->rank()] += m->data();
          break;
        }
        case wire::Kind::SupervisorLine:
          lines_.push_back(wire::decode<wire::SupervisorLine>(frame->payload)->line().text());
          break;
        case wire::Kind::LaunchReply:
          reply_ = wire::decode<wire::LaunchReply>(frame->payload);
          break;
        case wire::Kind::NodeDone:
          done_ = wire::decode<wire::NodeDone>(frame->payload);
          break;
        default:
          if (on_frame_) on_frame_(*frame);
          break;
      }
    }
  }
};

}  // namespace berth::step
