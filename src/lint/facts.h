// What the rules look at, gathered once: the script's lines, the job as asked for and as placed,
// and a few questions that many rules ask.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/launch.h"
#include "lint/lines.h"
#include "lint/lint.h"
#include "lint/option_names.h"

namespace berth::lint {

/// One component of the job; `plan` is null when it was not placed.
struct Job {
  const request::Request* request = nullptr;
  const place::JobPlan* plan = nullptr;

  /// Placed, with an allocation to look at.
  [[nodiscard]] bool placed() const;
  /// Nodes it has, or at least asks for.
  [[nodiscard]] std::size_t nodes() const;
  /// Tasks it asks for, when that is known.
  [[nodiscard]] std::optional<std::uint32_t> tasks() const;
  /// GPUs of the n-th node of the allocation.
  [[nodiscard]] std::size_t gpus_on(std::size_t position) const;
  [[nodiscard]] std::size_t all_gpus() const;
  [[nodiscard]] std::uint32_t cpus() const;
  /// GPUs asked for by any option.
  [[nodiscard]] bool asks_for_gpus() const;
};

/// An option found in raw text, with the line of its directive (0: command line).
struct Written {
  request::Opt opt;
  std::string value;
  int line = 0;
};

struct Facts {
  explicit Facts(const Input& in);

  const Input& input;
  bool batch = false;  // there is a batch script
  Lines lines;
  std::vector<Job> jobs;         // empty when parsing failed
  std::vector<Written> written;  // options of seen directives and of the command line, in order

  /// The job that a step runs in (its first het group; component 0 by default); null: none known.
  [[nodiscard]] const Job* job_of(const StepSeen& step) const;
  [[nodiscard]] std::string node_name(cluster::NodeIndex node) const;
  /// Name of the n-th node of the allocation.
  [[nodiscard]] std::string node_name(const Job& job, std::size_t position) const;
  /// The partitions that exist among those asked for; the default one when none was.
  [[nodiscard]] std::vector<const cluster::Partition*> partitions(
      const request::Request& request) const;
  /// Nodes of the partitions the request may use; all nodes when it names none that exist.
  [[nodiscard]] std::vector<cluster::NodeIndex> candidates(const request::Request& request) const;
  /// Types of GPUs the cluster has, sorted, without "".
  [[nodiscard]] std::vector<std::string> gpu_types() const;
  /// "#SBATCH --x" where directives are written, "--x" on a command line.
  [[nodiscard]] std::string as_directive(std::string_view option) const;
};

/// Script line of an option given by a directive; 0 otherwise.
int line_of(const request::Request& request, request::Opt opt);
/// The option as the user would recognise it: "--gres=gpu:4"; "" when it was not given.
std::string spelled(const request::Request& request, request::Opt opt);
/// The GPU option that was given, in the order --gpus-per-task, --gres, --gpus-per-node, --gpus, …
std::optional<request::Opt> gpu_option(const request::Request& request);

std::uint64_t gpus_in(const std::vector<request::GresAsk>& asks);

/// "1 task", "4 tasks".
std::string count(std::uint64_t n, std::string_view noun);
/// "0 and 1", "0, 1 and 2", "0-7".
std::string listed(const std::vector<std::uint32_t>& numbers);
/// A command line short enough for a message.
std::string shortened(std::string_view text, std::size_t limit = 60);

}  // namespace berth::lint
