// An agent in this process, with the test as its controller and its clients. Supervisors are this
// test program, called with --supervise.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "auth/ticket.h"
#include "net/client.h"
#include "net/listener.h"
#include "net/paths.h"
#include "node/agent.h"
#include "step/spool.h"
#include "wire/step_ids.h"

namespace berth::node {

inline constexpr auto kLong = std::chrono::seconds(60);
inline const std::string kKey(auth::kKeyBytes, 'k');

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/berth-node-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = std::filesystem::canonical(pattern);
    std::filesystem::create_directory(directory_ + "/run");
    std::string self(PATH_MAX, '\0');
    self.resize(static_cast<std::size_t>(::readlink("/proc/self/exe", self.data(), self.size())));
    ASSERT_TRUE(step::write_file(directory_ + "/stepd",
                                 "#!/bin/sh\nexec '" + self + "' --supervise\n", 0755));
    config_.set_kill_wait_seconds(1);
    config_.set_unkillable_seconds(600);
    open_controller();
    start_agent();
  }
  void TearDown() override {
    // Whatever still runs is ended as a controller would end it.
    if (agent_) {
      for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
        wire::EndJob end;
        end.set_node("n0");
        end.set_job_id(7);
        end.set_attempt(attempt);
        end.set_now(true);
        gone_.reset();
        tell(end);
        until([&] { return gone_.has_value(); });
        wire::Forget forget;
        forget.set_node("n0");
        forget.set_job_id(7);
        forget.set_attempt(attempt);
        tell(forget);
      }
      until([&] { return agent_link_->backlog() == 0; });
    }
    agent_.reset();
    std::filesystem::remove_all(directory_);
  }

  void open_controller() {
    auto listener = net::Listener::open(
        loop_, net::Address::unix_socket(net::controller_socket(directory_ + "/run")), {},
        [this](std::shared_ptr<net::Connection> c) {
          agent_link_ = c;
          c->start({.on_frame = [this](net::Connection&, const wire::Frame& f) { take(f); },
                    .on_closed = [](net::Connection&, std::string_view) {},
                    .on_drained = {}});
        });
    ASSERT_TRUE(listener) << listener.error().what();
    controller_ = std::move(*listener);
  }
  void start_agent() {
    Inventory inventory;
    inventory.nodes.resize(1);
    inventory.nodes[0].set_name("n0");
    registration_.reset();
    auto agent = Agent::open(loop_, log_, std::move(inventory),
                             {.run = directory_ + "/run",
                              .spool = directory_ + "/spool",
                              .supervisor = directory_ + "/stepd",
                              .emulated = true,
                              .slurm_uid = ::getuid(),
                              .tcp_controller = {},
                              .tcp_listen = {},
                              .open_files = 0,
                              .look_again = {}});
    ASSERT_TRUE(agent) << agent.error().what();
    agent_ = std::move(*agent);
    ASSERT_TRUE(agent_->start());
    ASSERT_TRUE(until([&] { return registration_.has_value(); }));
  }
  bool until(const std::function<bool()>& holds) {
    const auto limit = net::Clock::now() + kLong;
    while (!holds()) {
      if (net::Clock::now() > limit) return false;
      loop_.run_once(std::chrono::milliseconds(20));
    }
    return true;
  }
  template <class M>
  void tell(const M& message) {
    agent_link_->send(message);
  }

  wire::StepSpec spec(std::uint32_t step, std::uint32_t attempt = 1) {
    wire::StepSpec s;
    s.set_job_id(7);
    s.set_attempt(attempt);
    s.set_step_id(step);
    s.set_node("n0");
    s.set_uid(::getuid());
    s.set_gid(::getgid());
    s.set_expires(even_time() + 300);
    s.set_nonce("nonce");
    s.set_ntasks(1);
    s.set_lease_seconds(lease_);
    s.add_tasks();
    return s;
  }
  /// The controller's: far from any clock of this machine.
  [[nodiscard]] std::int64_t even_time() const { return std::time(nullptr) + even_ahead_; }
  wire::Program program(const std::string& script) {
    wire::Program p;
    p.add_argv("/bin/sh");
    p.add_argv("-c");
    p.add_argv(script);
    p.set_directory(directory_);
    wire::Variable& path = *p.add_environment();
    path.set_name("PATH");
    path.set_value("/usr/bin:/bin");
    return p;
  }
  wire::BeginJob begin_job(std::uint32_t attempt = 1) {
    wire::BeginJob m;
    m.set_node("n0");
    m.set_job_id(7);
    m.set_attempt(attempt);
    m.set_epoch(1);
    m.set_uid(::getuid());
    m.set_lease_seconds(lease_);
    return m;
  }
  wire::BeginJob begin_batch(const std::string& script) {
    wire::BeginJob m = begin_job();
    wire::Program p = program("");
    p.clear_argv();
    p.add_argv("job.sh");
    p.set_step_started_by_batch(true);
    p.set_script("#!/bin/sh\n" + script + "\n");
    p.mutable_stdout()->set_kind("file");
    p.mutable_stdout()->set_pattern("out");
    *m.mutable_batch()->mutable_ticket() = auth::sign_ticket("n0", spec(wire::kBatchStep), kKey);
    *m.mutable_batch()->mutable_program() = p;
    return m;
  }
  void end_job(bool now = false) {
    wire::EndJob m;
    m.set_node("n0");
    m.set_job_id(7);
    m.set_attempt(1);
    m.set_now(now);
    tell(m);
  }

  /// As srun: sends the launch and returns the reply.
  wire::LaunchReply launch(const wire::Ticket& ticket, const std::string& script) {
    wire::Launch message;
    *message.mutable_ticket() = ticket;
    *message.mutable_program() = program(script);
    return ask(message);
  }
  /// As the srun of a step on two nodes, the second of which is the first once more.
  wire::LaunchReply relay(const wire::Ticket& first, const wire::Ticket& second,
                          const std::string& script) {
    wire::Relay message;
    message.set_width(2);
    *message.add_programs() = program(script);
    for (const wire::Ticket* ticket : {&first, &second}) {
      wire::RelayNode& node = *message.add_nodes();
      *node.mutable_ticket() = *ticket;
      node.mutable_address()->set_unix_path(net::node_socket(directory_ + "/run"));
    }
    return ask(message);
  }
  template <class M>
  wire::LaunchReply ask(const M& message) {
    auto client = net::Client::connect(
        net::Address::unix_socket(net::node_socket(directory_ + "/run")), kLong);
    EXPECT_TRUE(client);
    client_.emplace(std::move(*client));
    client_->queue(message);
    std::optional<wire::LaunchReply> reply;
    EXPECT_TRUE(until([&] {
      (void)client_->flush();
      const auto frame = client_->try_receive();
      if (!frame) return true;
      if (*frame && (*frame)->kind == wire::Kind::LaunchReply) {
        reply = wire::decode<wire::LaunchReply>((*frame)->payload);
      }
      return reply.has_value();
    }));
    return reply.value_or(wire::LaunchReply());
  }
  std::string file(const std::string& name) {
    return step::read_file(directory_ + '/' + name).value_or("");
  }

  std::string directory_;
  net::Loop loop_;
  Log log_;
  wire::NodeConfig config_;
  std::unique_ptr<net::Listener> controller_;
  std::shared_ptr<net::Connection> agent_link_;
  std::unique_ptr<Agent> agent_;
  std::optional<net::Client> client_;
  std::optional<wire::RegisterNodes> registration_;
  std::optional<wire::JobBegun> begun_;
  std::optional<wire::JobGone> gone_;
  std::vector<wire::StepEnded> ended_;
  std::vector<wire::StepStarted> started_;
  std::vector<wire::MeasuredOnNode> measured_;
  bool answers_beats_ = true;
  bool deaf_ = false;  // the controller hears nothing
  std::uint32_t lease_ = 0;
  std::int64_t even_ahead_ = 0;   // of this machine's wall clock
  std::int64_t clock_ahead_ = 0;  // as the agent told last
  int beats_ = 0;
  std::vector<wire::NodeTrouble> trouble_;

 private:
  void take(const wire::Frame& frame) {
    if (deaf_) return;
    switch (frame.kind) {
      case wire::Kind::RegisterNodes: {
        registration_ = wire::decode<wire::RegisterNodes>(frame.payload);
        wire::Registered reply;
        reply.set_epoch(1);
        reply.set_even_time(even_time());
        *reply.mutable_config() = config_;
        wire::NodeVerdict& verdict = *reply.add_nodes();
        verdict.set_name("n0");
        verdict.set_key(kKey);
        tell(reply);
        break;
      }
      case wire::Kind::Beat: {
        const auto beat = *wire::decode<wire::Beat>(frame.payload);
        ++beats_;
        if (!beat.ask() || !answers_beats_) break;
        wire::Beat reply;
        reply.set_number(beat.number());
        reply.set_even_time(even_time());
        clock_ahead_ = beat.clock_ahead_seconds();
        tell(reply);
        break;
      }
      case wire::Kind::JobBegun:
        begun_ = wire::decode<wire::JobBegun>(frame.payload);
        break;
      case wire::Kind::JobGone:
        gone_ = wire::decode<wire::JobGone>(frame.payload);
        break;
      case wire::Kind::StepEnded:
        ended_.push_back(*wire::decode<wire::StepEnded>(frame.payload));
        break;
      case wire::Kind::StepStarted:
        started_.push_back(*wire::decode<wire::StepStarted>(frame.payload));
        break;
      case wire::Kind::MeasuredOnNode:
        measured_.push_back(*wire::decode<wire::MeasuredOnNode>(frame.payload));
        break;
      case wire::Kind::NodeTrouble:
        trouble_.push_back(*wire::decode<wire::NodeTrouble>(frame.payload));
        break;
      default:
        break;
    }
  }
};

}  // namespace berth::node
