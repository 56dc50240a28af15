// A whole controller in this process, over its real socket and store, with pretended agents and
// clients.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "auth/ticket.h"
#include "controller/service.h"
#include "net/client.h"
#include "net/paths.h"
#include "wire/step_ids.h"

namespace berth::controller {

inline constexpr const char* kConf = R"(ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
MinJobAge=300
SlurmdTimeout=300
NodeName=n[1-2] CPUs=4 CoresPerSocket=4 RealMemory=8000 Gres=gpu:2
PartitionName=main Nodes=ALL Default=YES MaxTime=60
)";

/// Long enough for a slow machine; nothing waits that long when it works.
inline constexpr std::chrono::seconds kPatience{30};

/// One end of a connection to the controller.
class Talker {
 public:
  explicit Talker(const std::string& socket)
      : client_(*net::Client::connect(net::Address::unix_socket(socket), kPatience)) {}

  template <class M>
  void send(const M& message) {
    ASSERT_TRUE(client_.send(message));
  }
  /// The next frame, which has to be of this kind.
  template <class M>
  M next() {
    auto frame = client_.receive(kPatience);
    if (!frame) {
      ADD_FAILURE() << "no frame: " << frame.error().what();
      return {};
    }
    if (frame->kind != wire::KindOf<M>::value) {
      ADD_FAILURE() << "got " << wire::name_of(frame->kind);
      if (frame->kind == wire::Kind::Done) {
        const auto done = wire::decode<wire::Done>(frame->payload);
        for (const auto& line : done->refusal().lines()) ADD_FAILURE() << line.text();
      }
      return {};
    }
    return *wire::decode<M>(frame->payload);
  }
  /// The next frame of this kind; others before it are passed over (an agent may be told a thing
  /// twice).
  template <class M>
  M find() {
    for (int i = 0; i < 20; ++i) {
      auto frame = client_.receive(kPatience);
      if (!frame) break;
      if (frame->kind == wire::KindOf<M>::value) return *wire::decode<M>(frame->payload);
    }
    ADD_FAILURE() << "no frame of kind " << wire::name_of(wire::KindOf<M>::value);
    return {};
  }
  template <class M, class A>
  Result<M> ask(const A& message) {
    return client_.ask<M>(message, kPatience);
  }

 private:
  net::Client client_;
};

class FakeAgent : public Talker {
 public:
  explicit FakeAgent(const std::string& socket) : Talker(socket) {}

  wire::RegisterNodes report() const {
    wire::RegisterNodes message;
    message.mutable_address()->set_unix_path("/nowhere/node.sock");
    for (const char* name : {"n1", "n2"}) {
      wire::NodeReport& node = *message.add_nodes();
      node.set_name(name);
      node.set_sockets(1);
      node.set_cores_per_socket(4);
      node.set_threads_per_core(1);
      node.set_memory_mb(8000);
      wire::GresFound& gres = *node.add_gres();
      gres.set_name("gpu");
      gres.set_count(2);
    }
    return message;
  }
  void enroll(const wire::RegisterNodes& message) {
    send(message);
    registered = next<wire::Registered>();
    ASSERT_EQ(registered.nodes_size(), 2);
    for (const auto& verdict : registered.nodes()) {
      ASSERT_FALSE(verdict.has_refusal()) << verdict.refusal().code();
      keys[verdict.name()] = verdict.key();
    }
  }
  void enroll() { enroll(report()); }

  void begun(const wire::BeginJob& job) {
    wire::JobBegun message;
    message.set_node(job.node());
    message.set_job_id(job.job_id());
    message.set_attempt(job.attempt());
    send(message);
  }
  void ended(const wire::BeginJob& job, std::uint32_t step, int status) {
    wire::StepEnded message;
    message.set_node(job.node());
    message.set_job_id(job.job_id());
    message.set_attempt(job.attempt());
    message.set_step_id(step);
    message.add_ranks(0);
    message.add_statuses(status);
    send(message);
  }
  void gone(const wire::EndJob& job) {
    wire::JobGone message;
    message.set_node(job.node());
    message.set_job_id(job.job_id());
    message.set_attempt(job.attempt());
    send(message);
  }

  wire::Registered registered;
  std::map<std::string, std::string> keys;
};

/// All writes to files fail while it lives, as on a full disk.
class FullDisk {
 public:
  FullDisk() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit none = before_;
    none.rlim_cur = 1;
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

class ServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-ctl-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    std::filesystem::permissions(directory_, std::filesystem::perms(0755));
    std::ofstream(directory_ + "/slurm.conf") << kConf;
    std::ofstream(directory_ + "/gres.conf") << "NodeName=n[1-2] Name=gpu Count=2\n";
    log_.set_level(LogLevel::error);
    start();
  }
  void TearDown() override {
    stop();
    std::filesystem::remove_all(directory_);
  }

  void start() {
    auto setup = read_setup(directory_ + "/slurm.conf", true);
    ASSERT_TRUE(setup) << setup.error().what();
    loop_ = std::make_unique<net::Loop>();
    auto service = Service::open(*loop_, log_, crash_,
                                 {.setup = std::move(*setup),
                                  .state = directory_ + "/state",
                                  .run = directory_,
                                  .conf = directory_ + "/slurm.conf",
                                  .emulate = true,
                                  .host = "here",
                                  .shut = [this] { loop_->stop(); },
                                  .time = time_});
    ASSERT_TRUE(service) << service.error().what();
    service_ = std::move(*service);
    thread_ = std::thread([this] { loop_->run(); });
  }
  void stop() {
    if (!service_) return;
    loop_->stop();
    thread_.join();
    service_.reset();
    loop_.reset();
  }

  [[nodiscard]] std::string socket() const { return net::controller_socket(directory_); }

  static wire::SubmitJob batch(const std::string& token, std::vector<std::string> words = {}) {
    wire::SubmitJob ask;
    ask.mutable_asked()->set_command("sbatch");
    for (std::string& word : words) ask.mutable_asked()->add_words(std::move(word));
    ask.mutable_asked()->add_words("job.sh");
    ask.mutable_asked()->set_script("#!/bin/sh\nhostname\n");
    ask.mutable_asked()->set_directory("/tmp");
    ask.set_token(token);
    return ask;
  }
  static wire::SubmitJob interactive(const std::string& token, std::vector<std::string> words) {
    wire::SubmitJob ask;
    ask.mutable_asked()->set_command("srun");
    for (std::string& word : words) ask.mutable_asked()->add_words(std::move(word));
    ask.mutable_asked()->add_words("hostname");
    ask.mutable_asked()->set_directory("/tmp");
    ask.set_token(token);
    ask.set_interactive(true);
    return ask;
  }

  /// The one job with this id as squeue sees it.
  wire::JobInfo job(std::uint32_t id) {
    Talker client(socket());
    wire::ListJobs ask;
    ask.add_ids()->set_id(id);
    ask.set_with_ended(true);
    const auto reply = client.ask<wire::JobsReply>(ask);
    if (!reply || reply->jobs_size() != 1) {
      ADD_FAILURE() << "job " << id << " is not shown once";
      return {};
    }
    return reply->jobs(0);
  }

  const TimeSource* time_ = nullptr;  // the machine's
  Log log_;
  CrashPoints crash_;
  std::string directory_;
  std::unique_ptr<net::Loop> loop_;
  std::unique_ptr<Service> service_;
  std::thread thread_;
};

}  // namespace berth::controller
