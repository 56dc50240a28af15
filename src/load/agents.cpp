// What agents.h promises.
#include "load/agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "base/version.h"
#include "wire/step_ids.h"

namespace berth::load {
namespace {

constexpr std::chrono::seconds kBetweenBeats{10};  // as berthd
constexpr std::chrono::milliseconds kBeatRound{20};
constexpr std::chrono::milliseconds kLongestDelay{2000};
constexpr std::chrono::seconds kDialPatience{10};

std::chrono::milliseconds random_up_to(std::chrono::milliseconds most) {
  static std::minstd_rand random(1);
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(0, most.count())(random));
}

}  // namespace

Agents::Agents(net::Loop& loop, net::Address controller, Inventory inventory,
               std::vector<std::string> nodes, std::vector<tls::Context> identities)
    : loop_(loop),
      controller_(std::move(controller)),
      inventory_(inventory),
      identities_(std::move(identities)) {
  for (std::string& name : nodes) {
    nodes_.push_back({.name = std::move(name), .connection = {}});
  }
}

void Agents::start() {
  began_ = net::Clock::now();
  for (std::size_t i = 0; i < nodes_.size(); ++i) dial(i);
  loop_.after(kBeatRound, [this] { beat(); });
}

void Agents::dial(std::size_t index) {
  net::Connection::dial(loop_, controller_, kDialPatience,
                        [this, index](Result<std::shared_ptr<net::Connection>> result) {
                          connected(index, std::move(result));
                        });
}

void Agents::connected(std::size_t index, Result<std::shared_ptr<net::Connection>> result) {
  if (!result) return lost(index);
  Node& node = nodes_[index];
  node.connection = std::move(*result);
  node.connection->limit_frames(wire::kMostBytes);
  if (!identities_.empty()) node.connection->secure(identities_[index].open());
  node.connection->start(
      {.on_frame = [this, index](net::Connection&,
                                 const wire::Frame& frame) { take(index, frame); },
       .on_closed = [this, index](net::Connection&, std::string_view) { lost(index); },
       .on_drained = {}});
  wire::RegisterNodes message;
  *message.mutable_address() =
      net::Address::unix_socket("/nonexistent/" + node.name).to_wire(std::string());
  message.set_version(std::string(kBerthVersion));
  message.set_emulated(true);
  wire::NodeReport& report = *message.add_nodes();
  report.set_name(node.name);
  report.set_sockets(inventory_.sockets);
  report.set_cores_per_socket(inventory_.cores_per_socket);
  report.set_threads_per_core(1);
  report.set_memory_mb(inventory_.memory_mb);
  report.set_tmp_disk_mb(1 << 20);
  wire::GresFound& gpus = *report.add_gres();
  gpus.set_name("gpu");
  gpus.set_count(inventory_.gpus);
  node.connection->send(message);
}

void Agents::begin_job(std::size_t index, const wire::BeginJob& begin) {
  Node& node = nodes_[index];
  wire::JobBegun begun;
  begun.set_node(node.name);
  begun.set_job_id(begin.job_id());
  begun.set_attempt(begin.attempt());
  node.connection->send(begun);
  if (!begin.has_batch()) return;
  wire::StepStarted started;
  started.set_node(node.name);
  started.set_spec(begin.batch().ticket().spec());
  node.connection->send(started);
  if (inventory_.longest_run.count() == 0) return end_script(index, begin);
  loop_.after(random_up_to(inventory_.longest_run),
              [this, index, begin] { end_script(index, begin); });
}

void Agents::end_script(std::size_t index, const wire::BeginJob& begin) {
  Node& node = nodes_[index];
  if (!node.connection) return;
  wire::StepEnded ended;
  ended.set_node(node.name);
  ended.set_job_id(begin.job_id());
  ended.set_attempt(begin.attempt());
  ended.set_step_id(wire::kBatchStep);
  ended.add_ranks(0);
  ended.add_statuses(0);
  ended.set_ended(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  node.connection->send(ended);
}

void Agents::take(std::size_t index, const wire::Frame& frame) {
  Node& node = nodes_[index];
  switch (frame.kind) {
    case wire::Kind::Registered:
      if (node.registered) return;
      node.registered = true;
      node.delay = std::chrono::milliseconds(50);
      if (++registered_ == nodes_.size()) {
        const auto took = std::chrono::duration<double>(net::Clock::now() - began_);
        fmt::print("registered {} nodes in {:.2f} s\n", nodes_.size(), took.count());
        std::fflush(stdout);
      }
      return;
    case wire::Kind::BeginJob:
      if (const auto begin = wire::decode<wire::BeginJob>(frame.payload)) begin_job(index, *begin);
      return;
    case wire::Kind::EndJob:
      if (const auto end = wire::decode<wire::EndJob>(frame.payload)) {
        wire::JobGone gone;
        gone.set_node(node.name);
        gone.set_job_id(end->job_id());
        gone.set_attempt(end->attempt());
        node.connection->send(gone);
      }
      return;
    default:
      return;  // Forget, Beat: nothing is kept here
  }
}

void Agents::lost(std::size_t index) {
  Node& node = nodes_[index];
  if (node.registered) {
    if (registered_ == nodes_.size()) began_ = net::Clock::now();
    --registered_;
  }
  node.registered = false;
  node.connection.reset();
  loop_.after(node.delay + random_up_to(node.delay / 2), [this, index] { dial(index); });
  node.delay = std::min(node.delay * 2, kLongestDelay);
}

void Agents::beat() {
  const std::size_t share = std::max<std::size_t>(
      1, nodes_.size() * kBeatRound / std::chrono::milliseconds(kBetweenBeats));
  for (std::size_t i = 0; i < share; ++i) {
    Node& node = nodes_[beating_];
    beating_ = (beating_ + 1) % nodes_.size();
    if (!node.registered) continue;
    wire::Beat message;
    message.set_ask(true);
    message.set_free_memory_mb(1024);
    node.connection->send(message);
  }
  loop_.after(kBeatRound, [this] { beat(); });
}

}  // namespace berth::load
