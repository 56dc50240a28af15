// Gathers what the rules look at. No judgement here.
#include "lint/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "request/parse.h"

namespace berth::lint {

using request::Opt;
using request::Request;

bool Job::placed() const {
  return plan != nullptr && !plan->allocation.nodes.empty();
}

std::size_t Job::nodes() const {
  if (placed()) return plan->allocation.nodes.size();
  if (request->nodes) return request->nodes->min;
  return 1;
}

std::optional<std::uint32_t> Job::tasks() const {
  if (plan != nullptr && plan->counts.tasks) return plan->counts.tasks;
  if (request->ntasks) return request->ntasks;
  if (!request->ntasks_per_node || !request->nodes) return std::nullopt;
  const std::uint64_t product = std::uint64_t{*request->ntasks_per_node} * request->nodes->min;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(product, UINT32_MAX));
}

std::size_t Job::gpus_on(std::size_t position) const {
  return placed() ? plan->allocation.nodes[position].gpus().count() : 0;
}

std::size_t Job::all_gpus() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; placed() && i < plan->allocation.nodes.size(); ++i) sum += gpus_on(i);
  return sum;
}

std::uint32_t Job::cpus() const {
  std::uint32_t sum = 0;
  if (placed()) {
    for (const auto& node : plan->allocation.nodes) sum += node.usable_cpus;
  }
  return sum;
}

bool Job::asks_for_gpus() const {
  return gpus_in(request->gres_per_node) + gpus_in(request->gres_per_job) +
             gpus_in(request->gres_per_socket) + gpus_in(request->gres_per_task) >
         0;
}

Facts::Facts(const Input& in) : input(in), batch(!in.script.empty()), lines(read_lines(in.script)) {
  for (std::size_t i = 0; in.components != nullptr && i < in.components->size(); ++i) {
    const bool planned = in.plans != nullptr && i < in.plans->size();
    jobs.push_back({&(*in.components)[i], planned ? &(*in.plans)[i] : nullptr});
  }
  for (const Line& line : lines.marked) {
    if (line.kind != LineKind::directive) continue;
    for (RawOption& option : read_options(line.words, request::Command::sbatch).options) {
      written.push_back({option.opt, std::move(option.value), line.number});
    }
  }
  const auto command = jobs.empty() ? (batch ? request::Command::sbatch : request::Command::srun)
                                    : jobs.front().request->command;
  // What follows the script's name are its own arguments.
  const std::size_t own = request::first_argument(command, in.arguments);
  for (RawOption& option : read_options(std::span(in.arguments).first(own), command).options) {
    written.push_back({option.opt, std::move(option.value), 0});
  }
}

const Job* Facts::job_of(const StepSeen& step) const {
  std::size_t component = 0;
  if (step.request != nullptr && !step.request->het_groups.empty()) {
    component = step.request->het_groups.front();
  }
  return component < jobs.size() ? &jobs[component] : nullptr;
}

std::string Facts::node_name(cluster::NodeIndex node) const {
  const bool known = input.cluster != nullptr && node < input.cluster->nodes.size();
  return known ? input.cluster->nodes[node].name : fmt::format("node {}", node);
}

std::string Facts::node_name(const Job& job, std::size_t position) const {
  return node_name(job.plan->allocation.nodes[position].node);
}

std::vector<const cluster::Partition*> Facts::partitions(const Request& request) const {
  std::vector<const cluster::Partition*> found;
  if (input.cluster == nullptr) return found;
  for (const std::string& name : request.partitions) {
    found.push_back(input.cluster->find_partition(name));
  }
  if (request.partitions.empty()) found.push_back(input.cluster->default_partition());
  std::erase(found, nullptr);
  return found;
}

std::vector<cluster::NodeIndex> Facts::candidates(const Request& request) const {
  if (input.cluster == nullptr) return {};
  std::set<cluster::NodeIndex> found;
  for (const cluster::Partition* partition : partitions(request)) {
    found.insert(partition->nodes.begin(), partition->nodes.end());
  }
  std::vector<cluster::NodeIndex> nodes(found.begin(), found.end());
  if (nodes.empty()) {
    for (cluster::NodeIndex i = 0; i < input.cluster->nodes.size(); ++i) nodes.push_back(i);
  }
  return nodes;
}

std::vector<std::string> Facts::gpu_types() const {
  std::set<std::string> types;
  if (input.cluster != nullptr) {
    for (const cluster::Node& node : input.cluster->nodes) {
      const cluster::Gres* gpu = node.find_gres("gpu");
      if (gpu == nullptr) continue;
      for (const cluster::Device& device : gpu->devices) types.insert(device.type);
    }
  }
  types.erase("");
  return {types.begin(), types.end()};
}

std::string Facts::as_directive(std::string_view option) const {
  return fmt::format("{}{}", batch ? "#SBATCH " : "", option);
}

int line_of(const Request& request, Opt opt) {
  const request::Given* given = request.given.find(opt);
  return given != nullptr && given->level == request::Level::directive ? given->line : 0;
}

std::string spelled(const Request& request, Opt opt) {
  const request::Given* given = request.given.find(opt);
  if (given == nullptr) return {};
  if (given->text.empty()) return fmt::format("--{}", long_name(opt));
  return fmt::format("--{}={}", long_name(opt), given->text);
}

std::optional<Opt> gpu_option(const Request& request) {
  constexpr std::array<Opt, 6> kOptions = {Opt::gpus_per_task,   Opt::gres,
                                           Opt::gpus_per_node,   Opt::gpus,
                                           Opt::gpus_per_socket, Opt::tres_per_task};
  for (const Opt opt : kOptions) {
    if (request.given.has(opt)) return opt;
  }
  return std::nullopt;
}

std::uint64_t gpus_in(const std::vector<request::GresAsk>& asks) {
  return request::total_of(asks, "gpu");
}

std::string count(std::uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : noun.ends_with("s") ? "es" : "s");
}

std::string listed(const std::vector<std::uint32_t>& numbers) {
  if (numbers.empty()) return {};
  if (numbers.size() > 3 && numbers.back() - numbers.front() + 1 == numbers.size()) {
    return fmt::format("{}-{}", numbers.front(), numbers.back());
  }
  std::string out = fmt::format("{}", numbers[0]);
  const std::size_t shown = std::min<std::size_t>(numbers.size(), 8);
  for (std::size_t i = 1; i < shown; ++i) {
    out += fmt::format("{}{}", i + 1 == numbers.size() ? " and " : ", ", numbers[i]);
  }
  if (shown < numbers.size()) out += ", …";
  return out;
}

std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return fmt::format("{}…", text.substr(0, end));
}

}  // namespace berth::lint
