#include "place/step_gres.h"

#include <algorithm>

#include "text/tres.h"

namespace berth::place {
namespace {

using request::GresAsk;
using request::Request;

std::vector<GresAsk> of_name(const std::vector<GresAsk>& asks, const std::string& name) {
  std::vector<GresAsk> out;
  std::ranges::copy_if(asks, std::back_inserter(out),
                       [&](const GresAsk& ask) { return ask.name == name; });
  return out;
}

void drop_zeros(GresRequest& wanted) {
  for (auto* asks : {&wanted.per_node, &wanted.per_step, &wanted.per_socket, &wanted.per_task}) {
    std::erase_if(*asks, [](const GresAsk& ask) { return ask.count == 0; });
  }
}

GresRequest all_of(const Request& request) {
  return {request.gres_per_node, request.gres_per_job, request.gres_per_socket,
          request.gres_per_task};
}

void add_names(std::vector<std::string>& names, const std::vector<GresAsk>& asks) {
  for (const GresAsk& ask : asks) {
    if (std::ranges::find(names, ask.name) == names.end()) names.push_back(ask.name);
  }
}

}  // namespace

std::vector<GresAsk> GresRequest::gpus_of_step() const {
  return of_name(per_step, "gpu");
}

GresRequest requested_gres(const JobFacts& job, const Request& srun) {
  GresRequest wanted = all_of(srun);
  const bool named = srun.gres_none || !wanted.per_node.empty() || !wanted.per_step.empty() ||
                     !wanted.per_socket.empty() || !wanted.per_task.empty();
  if (!named) wanted = all_of(job.request);
  // --gres=none and --gpu-mem: nothing of the job but that.
  if (srun.gres_none) wanted.per_node = of_name(wanted.per_node, std::string(text::kGpuMemory));
  drop_zeros(wanted);
  return wanted;
}

std::vector<StepGres> step_gres(const GresRequest& wanted,
                                std::optional<std::uint32_t> ntasks_per_gpu) {
  std::vector<std::string> names;
  for (const auto* asks :
       {&wanted.per_node, &wanted.per_task, &wanted.per_step, &wanted.per_socket}) {
    add_names(names, *asks);
  }
  std::vector<StepGres> out;
  for (const std::string& name : names) {
    StepGres gres;
    gres.name = name;
    const std::pair<GresBasis, const std::vector<GresAsk>*> order[] = {
        {GresBasis::per_node, &wanted.per_node},
        {GresBasis::per_task, &wanted.per_task},
        {GresBasis::per_step, &wanted.per_step}};
    for (const auto& [basis, asks] : order) {
      gres.asks = of_name(*asks, name);
      if (gres.asks.empty()) continue;
      gres.basis = basis;
      break;
    }
    out.push_back(std::move(gres));
  }
  if (ntasks_per_gpu && std::ranges::find(names, "gpu") == names.end()) {
    out.push_back({"gpu", GresBasis::per_task_group, {}, std::max(*ntasks_per_gpu, 1U)});
  }
  return out;
}

}  // namespace berth::place
