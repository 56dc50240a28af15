// What step_figures.h promises.
#include "wire/step_figures.h"

#include <string>

namespace berth::wire {
namespace {

void add(Spread& sum, const Spread& of_node, std::string_view node) {
  if (of_node.tasks() == 0) return;
  const bool first = sum.tasks() == 0;
  sum.set_tasks(sum.tasks() + of_node.tasks());
  sum.set_total(sum.total() + of_node.total());
  // Nodes may come in any order: of equal tasks the lowest is named.
  if (first || of_node.most() > sum.most() ||
      (of_node.most() == sum.most() && of_node.most_rank() < sum.most_rank())) {
    sum.set_most(of_node.most());
    sum.set_most_rank(of_node.most_rank());
    sum.set_most_node(std::string(node));
  }
  if (first || of_node.least() < sum.least() ||
      (of_node.least() == sum.least() && of_node.least_rank() < sum.least_rank())) {
    sum.set_least(of_node.least());
    sum.set_least_rank(of_node.least_rank());
    sum.set_least_node(std::string(node));
  }
}

}  // namespace

void note(Spread& spread, std::uint32_t rank, std::uint64_t now, std::uint64_t most) {
  Spread task;
  task.set_tasks(1);
  task.set_total(now);
  task.set_most(most);
  task.set_most_rank(rank);
  task.set_least(now);
  task.set_least_rank(rank);
  add(spread, task, {});
}

void add_figures(StepFigures& sum, const StepFigures& of_node, std::string_view node) {
  const auto both = [&](const Spread& from, bool has, Spread* (StepFigures::*to)()) {
    if (has) add(*(sum.*to)(), from, node);
  };
  both(of_node.cpu(), of_node.has_cpu(), &StepFigures::mutable_cpu);
  both(of_node.memory(), of_node.has_memory(), &StepFigures::mutable_memory);
  both(of_node.address_space(), of_node.has_address_space(), &StepFigures::mutable_address_space);
  both(of_node.pages(), of_node.has_pages(), &StepFigures::mutable_pages);
  both(of_node.read(), of_node.has_read(), &StepFigures::mutable_read);
  both(of_node.written(), of_node.has_written(), &StepFigures::mutable_written);
  both(of_node.cpu_khz(), of_node.has_cpu_khz(), &StepFigures::mutable_cpu_khz);
  both(of_node.gpu_memory(), of_node.has_gpu_memory(), &StepFigures::mutable_gpu_memory);
  both(of_node.gpu_busy(), of_node.has_gpu_busy(), &StepFigures::mutable_gpu_busy);
  both(of_node.gpu_energy(), of_node.has_gpu_energy(), &StepFigures::mutable_gpu_energy);
}

std::uint64_t mean(const Spread& spread) {
  return spread.tasks() == 0 ? 0 : spread.total() / spread.tasks();
}

}  // namespace berth::wire
