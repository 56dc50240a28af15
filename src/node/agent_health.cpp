// The agent's part of the health of GPUs: when it is looked at, and who hears of it.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "node/agent.h"
#include "node/missing_gpus.h"

namespace berth::node {
namespace {

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

void Agent::gpus_seen(const GpuRound& round) {
  const std::vector<Jobs::Holder> holders = jobs_.with_gpus();
  // First of all: the numbers of GPUs change when one comes back.
  if (misses_gpus(inventory_.gres) && (!gpus_wait_for_jobs_ || holders.empty()) &&
      may_be_back(inventory_.gres, inventory_.machine.told, round.samples) &&
      look_for_missing_gpus()) {
    uplink_.send(registration());
  }
  const GpuMeter::Owns owns = see_gpu_memory(round, holders);
  idle_.look(round, holders, std::chrono::steady_clock::now());
  // Its sums are of seconds.
  if (--rounds_to_meter_ <= 0) {
    meter_.add(round, holders, owns);
    meter_steps(round);
    rounds_to_meter_ = std::max<std::int64_t>(1000 / gpu_parameters_.poll.count(), 1);
  }
  Bits held;
  for (const Jobs::Holder& holder : holders) held |= holder.gpus;
  health_.round(round, held, std::chrono::steady_clock::now());
  tell_health();
}

void Agent::xid_seen(const survey::Xid& xid) {
  log_.error("GPU {} reports Xid {}", xid.gpu, xid.code);
  health_.xid(xid, std::chrono::steady_clock::now(), time_of_day());
  tell_health();
}

/// Before the controller hears that the job is gone: it must not give out what others are on.
void Agent::gpus_freed(const NodeJob& job) {
  Bits freed;
  Bits held;
  for (const Jobs::Holder& holder : jobs_.with_gpus()) {
    (holder.at == job ? freed : held) |= holder.gpus;
  }
  health_.freed(freed - held);
  tell_health();
}

void Agent::tell_health() {
  const GpuHealth::Out before = std::exchange(gpus_out_, health_.out());
  if (before == gpus_out_) return;
  for (const auto& [gpu, why] : before) {
    if (!gpus_out_.contains(gpu)) log_.info("GPU {} is in service again", gpu);
  }
  for (const auto& [gpu, why] : gpus_out_) {
    const auto known = before.find(gpu);
    if (known != before.end() && known->second == why) continue;
    log_.error("GPU {} is out of service: {}", gpu, why);
    if (known != before.end()) continue;
    for (const Jobs::Holder& holder : jobs_.with_gpus()) {
      if (!holder.gpus.test(gpu)) continue;
      const NodeJob& job = holder.at;
      for (const NodeStep& step : steps_.running(job.node, job.job, job.attempt)) {
        steps_.say(step,
                   fmt::format("GPU {} of node {} is out of service: {}", gpu, job.node, why));
      }
    }
  }
  send_health();
}

void Agent::send_health() {
  if (place_.emulated) return;
  wire::GpuHealth message;
  message.set_node(inventory_.nodes.front().name());
  put_gpus_out(*message.mutable_out());
  uplink_.send(message);
}

void Agent::put_gpus_out(google::protobuf::RepeatedPtrField<wire::GpuOut>& out) const {
  for (const auto& [gpu, why] : gpus_out_) {
    wire::GpuOut& one = *out.Add();
    one.set_index(gpu);
    one.set_why(why);
    one.set_probation(health_.on_probation(gpu));
    if (one.probation()) one.set_beyond_probation(health_.holder_on(gpu));
  }
}

}  // namespace berth::node
