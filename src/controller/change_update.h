// scontrol update, create, delete: of jobs, steps, nodes and partitions.
#pragma once

#include <functional>
#include <optional>

#include "controller/caller.h"
#include "controller/created_nodes.h"
#include "controller/setup.h"
#include "controller/users.h"
#include "job/state.h"
#include "wire/info.pb.h"

namespace berth::controller {

/// What a change needs beside the state.
struct ChangeContext {
  Setup& setup;  // changed by nodes that come and go
  Users& users;
  /// What a job was submitted with, by Job::asked_blob.
  std::function<std::optional<wire::Asked>(std::uint64_t)> fetch;
  bool nodes_changed = false;  // agents have to hear of it
};

wire::Done change(job::State& state, const Caller& caller, const wire::Change& ask,
                  ChangeContext& context, job::Time now);

// The parts of it, one for each kind of thing. The keys still hold the one that selects.
Result<void> change_job(job::State& state, const Caller& caller, const wire::Change& ask,
                        const ChangeContext& context, job::Time now);
Result<void> change_step(job::State& state, const Caller& caller, const wire::Change& ask,
                         job::Time now);
Result<void> change_node(job::State& state, const Caller& caller, const wire::Change& ask,
                         job::Time now);
/// Lines to be told with it.
Result<std::vector<Message>> change_gpus(job::State& state, const Caller& caller,
                                         const wire::Change& ask, const ChangeContext& context,
                                         job::Time now);
/// Nodes that are not there yet.
Result<void> add_nodes(job::State& state, const std::vector<CreatedNode>& added,
                       ChangeContext& context, job::Time now);
Result<void> create_nodes(job::State& state, const Caller& caller, const wire::Change& ask,
                          ChangeContext& context, job::Time now);
Result<void> delete_nodes(job::State& state, const Caller& caller, const wire::Change& ask,
                          ChangeContext& context, job::Time now);
/// Returns the name of one that was made.
Result<std::string> change_reservation(job::State& state, const Caller& caller,
                                       const wire::Change& ask, const ChangeContext& context,
                                       job::Time now);
Result<void> change_partition(job::State& state, const Caller& caller, const wire::Change& ask,
                              const ChangeContext& context, job::Time now);

/// The nodes of a host list, or ALL.
Result<std::vector<std::string>> nodes_meant(const job::State& state, const std::string& list);

/// A key of Slurm's that cannot be changed here, and what to do instead.
struct RefusedKey {
  std::string_view key;
  std::string_view instead;
};
std::unexpected<Error> refused(const RefusedKey& key);

/// "jobid" for JobId, Job, …: whether `word` is the key or the beginning of it of at least
/// `letters` letters; case does not matter.
bool is_key(std::string_view word, std::string_view key, std::size_t letters);
/// The value of the key that selects; "" when there is none.
std::string selected(const wire::Change& ask, std::string_view key, std::size_t letters);

}  // namespace berth::controller
