// What rendezvous.h promises.
#include "launch/rendezvous.h"

#include <fmt/format.h>

namespace berth::launch {

std::string tasks_per_node(std::string_view repetition_list) {
  if (repetition_list.find(',') != std::string_view::npos) return {};
  return std::string(repetition_list.substr(0, repetition_list.find('(')));
}

std::string port_text(const wire::StepSpec& spec) {
  if (spec.port() == 0) return {};
  if (spec.ports() <= 1) return std::to_string(spec.port());
  return fmt::format("{}-{}", spec.port(), spec.port() + spec.ports() - 1);
}

std::vector<std::pair<std::string, std::string>> rendezvous(const wire::StepSpec& spec,
                                                            const wire::TaskSpec& task) {
  std::vector<std::pair<std::string, std::string>> out;
  if (spec.master().empty()) return out;
  const auto add = [&](const char* name, std::string value) {
    out.emplace_back(name, std::move(value));
  };
  add("MASTER_ADDR", spec.master());
  if (spec.port() > 0) add("MASTER_PORT", std::to_string(spec.port()));
  add("WORLD_SIZE", std::to_string(spec.ntasks()));
  add("RANK", std::to_string(task.rank()));
  add("LOCAL_RANK", std::to_string(task.local_id()));
  add("LOCAL_WORLD_SIZE", std::to_string(spec.tasks_size()));
  add("NODE_RANK", std::to_string(spec.node_id()));
  // One task on each node: if it is a torchrun, its own options have these defaults.
  if (spec.node_count() > 1 && spec.ntasks() == spec.node_count()) {
    add("PET_NNODES", std::to_string(spec.node_count()));
    add("PET_NODE_RANK", std::to_string(spec.node_id()));
    add("PET_MASTER_ADDR", spec.master());
    if (spec.port() > 0) add("PET_MASTER_PORT", std::to_string(spec.port()));
  }
  return out;
}

}  // namespace berth::launch
