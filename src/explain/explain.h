// What a script or a command line will get, rank by rank, as one value. Pure: files, environment
// and the terminal are the caller's business. docs/explain.md describes the same value as JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bits.h"
#include "base/result.h"
#include "cluster/cluster.h"
#include "cluster/usage.h"
#include "lint/lint.h"
#include "place/place.h"
#include "request/parse.h"
#include "request/request.h"
#include "script/launcher.h"

namespace berth::explain {

using request::Environment;

struct Input {
  request::Command command = request::Command::sbatch;
  std::vector<std::string> words;  // the arguments after the command's name
  std::string script;              // text of the batch script; "" for srun, salloc and --wrap
  std::string name;                // what is explained, for headings: "train.sh", "srun -n4 a.out"
  request::Surroundings around;    // the caller's environment, and files named by options
  const cluster::Cluster* cluster = nullptr;  // must outlive the call
  const cluster::Usage* usage = nullptr;      // what is in use now
  /// Whether a directory exists where berth runs. Unset: not checked.
  std::function<bool(const std::string&)> directory_exists;
  bool with_environments = true;  // fill Task::env of steps; text does not show it
};

struct Refusal {
  std::string text;  // the essential line, without the command's name
  int exit_code = 1;
  std::string hint;                // may be ""
  std::vector<std::string> lines;  // everything the command prints on stderr
  std::string nearest_miss;        // "closest: gpu5 has 2 tesla_v100, asked 3"; may be ""
};

/// One process: a task of a step, a rank of mpirun, a worker of torchrun, or the batch script.
struct Task {
  std::uint32_t rank = 0;
  std::string node;
  std::uint32_t local_id = 0;
  bool bound = false;  // it is held to `cpus`; false: `cpus` are what it may use, by its job
  Bits cpus;
  Bits gpus;                                        // device indices on the node
  std::optional<std::string> cuda_visible_devices;  // unset: the variable is not set
  Environment env;                                  // variables Slurm sets
  std::vector<std::string> messages;                // what it prints on stderr at its start
};

enum class StepKind {
  step,    // srun
  mpirun,  // ranks that mpirun starts on the nodes of the job
  local,   // torchrun and others without srun: on the first node only
};

enum class StepStart {
  at_once,
  waits,    // for steps before it to end
  refused,  // srun fails
  never,    // waits for what nobody will give back
  unknown,  // an option of it is not known, so it cannot be planned
};

struct Step {
  StepKind kind = StepKind::step;
  script::Launcher launcher = script::Launcher::srun;
  std::optional<std::uint32_t> id;  // unset: it makes no step, or is refused
  int line = 0;                     // of the script; 0 for a command line
  std::string command;              // after expansion, quoted where needed
  bool background = false;
  StepStart start = StepStart::at_once;
  std::vector<std::uint32_t> waits_for;  // ids of the steps that must end first
  std::string waits_why;                 // "1 GPU on gpu1 (4 of 4 held by step 0)"
  std::vector<std::uint32_t> beside;     // ids of steps that still run when it starts
  bool uncertain = false;
  std::string why_uncertain;
  std::vector<Task> tasks;
  std::uint64_t tasks_not_listed = 0;      // beyond kMaxTasks
  std::optional<std::uint64_t> processes;  // started inside the tasks, by torchrun under srun
  std::optional<Refusal> error;
  std::vector<std::string> messages;  // warnings srun prints
  std::vector<std::string> notes;     // ours
};

struct Gpu {
  std::size_t index = 0;
  std::string type;  // "" = untyped
};

/// What the job holds on one node.
struct JobNode {
  std::string name;
  std::uint32_t cpus = 0;
  Bits cpu_mask;
  std::uint64_t memory_mb = 0;
  std::vector<Gpu> gpus;
  std::uint64_t shards = 0;
  std::uint64_t gpu_memory_mb = 0;  // --gpu-mem: of its GPU, which others may share
  std::size_t component = 0;        // of a heterogeneous job
};

/// One element of a job array: each is a job of its own, and takes what the earlier ones left.
struct Element {
  std::uint32_t index = 0;
  bool starts = false;         // false: it waits until others have ended
  std::vector<JobNode> nodes;  // empty while it waits
  std::optional<Task> batch;
};

struct Explanation {
  std::string name;
  request::Command command = request::Command::sbatch;
  bool accepted = false;
  place::Verdict verdict = place::Verdict::never;
  std::string pending_reason;     // squeue's word, when verdict is later or pending
  std::string pending_text;       // the nearest miss, in words
  std::optional<Refusal> error;   // when it is refused
  std::vector<std::string> asks;  // the request in words, one entry for each component
  std::vector<JobNode> nodes;
  bool assumes_idle = false;  // nodes and steps are as on an idle cluster
  Environment env;            // of the batch script or of salloc's command
  std::optional<Task> batch;  // the batch script itself, as a process
  std::optional<std::uint64_t> array_size;
  std::optional<std::uint64_t> array_most;  // the 4 of --array=1-8%4
  std::vector<Element> elements;            // of an array, the first kMaxElements by index
  std::vector<Step> steps;                  // in order of the script
  std::vector<std::string> messages;        // warnings the command prints
  std::vector<std::string> notes;           // what could not be known, what was assumed
  bool script_truncated = false;            // only a part of the script was read
  std::vector<lint::Finding> findings;

  /// Accepted, every step that surely runs is accepted too, and lint has no error.
  [[nodiscard]] bool fine() const;
};

inline constexpr std::size_t kMaxElements = 256;  // of an array, that are placed one by one
inline constexpr std::size_t kMaxSteps = 1'000;   // steps that are followed
inline constexpr std::size_t kMaxTasks = 8'192;   // tasks that are listed, over all steps

Explanation explain(const Input& input);

}  // namespace berth::explain
