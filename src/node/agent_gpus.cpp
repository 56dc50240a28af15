// The agent's part of watching GPUs: whose they are, and when the controller hears of it.
#include "node/agent.h"
#include "node/missing_gpus.h"

namespace berth::node {
std::vector<MeteredGpu> metered_gpus(const Inventory& inventory) {
  std::vector<MeteredGpu> out;
  for (const GresItem& item : inventory.gres.items) {
    if (item.name != "gpu") continue;
    MeteredGpu one;
    one.type = item.type;
    if (item.gpu != nullptr) one.memory_mb = item.gpu->memory_mb;
    if (item.gpu != nullptr && inventory.machine.told) {
      if (const auto number = number_in(*inventory.machine.told, *item.gpu)) {
        one.number = number->gpu;
        one.gpu_instance = number->gpu_instance;
      }
    }
    one.missing = item.missing;
    if (!item.missing.empty()) one.number = item.number;
    out.push_back(std::move(one));
  }
  return out;
}

void Agent::watch_gpus() {
  const bool comes_back = inventory_.machine.told && misses_gpus(inventory_.gres);
  if (watching_ || place_.emulated || (!meter_.watches_any() && !comes_back)) return;
  watching_ = true;
  gpu_watch_.start(device::Search::helper_beside_this_program(), gpu_parameters_.poll);
  tell_gpus_of_all();
}

void Agent::tell_gpus(const NodeJob& job) {
  const wire::JobGpus message = meter_.take(job);
  if (message.gpus_size() > 0) uplink_.send(message);
}

void Agent::tell_gpus_of_all() {
  for (const NodeJob& job : meter_.jobs()) tell_gpus(job);
  const auto every = std::chrono::seconds(inventory_.keys.gather_seconds);
  if (every.count() > 0) loop_.after(every, [this] { tell_gpus_of_all(); });
}

void Agent::tell_gpu_idle(const wire::AskGpuIdle& message) {
  const NodeJob job{message.node(), message.job_id(), message.attempt()};
  wire::JobGpuIdle answer;
  answer.set_node(job.node);
  answer.set_job_id(job.job);
  answer.set_attempt(job.attempt);
  if (const auto idle = idle_.of(job, std::chrono::steady_clock::now())) {
    answer.set_idle_ms(static_cast<std::uint64_t>(idle->count()));
  }
  uplink_.send(answer);
}

}  // namespace berth::node
