// Why a job that waits does not start, and what would change that: values for people and programs
// to read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedule/pass.h"

namespace berth::schedule {

/// A running job that has what the one that waits is going to get.
struct Holder {
  JobId job = 0;
  std::uint32_t uid = 0;
  Time ends = 0;        // at its time limit
  bool limited = true;  // it has one
  std::string holds;    // "4 GPUs, 16 CPUs on gpu1"
};

/// A small change of the request with which the job would start at once.
struct Change {
  std::string option;  // "--time=2:00:00"
  std::string nodes;   // where it would start
};

struct Why {
  std::string reason;              // squeue's word
  std::vector<std::string> facts;  // what that means for this job, with numbers
  std::size_t position = 0;        // in the queue, from 1; 0 = it is not in it
  std::size_t waiting = 0;         // length of the queue
  Time planned_start = 0;          // 0 = not known
  std::string planned_nodes;
  std::string basis;                                    // of the planned start
  std::map<std::string, std::uint32_t> nodes_by_cause;  // why nodes cannot take it now
  std::vector<Holder> holders;                          // soonest end first, the first few
  std::size_t more_holders = 0;
  std::vector<Change> changes;
};

/// What would become of a job that is not submitted yet.
struct Foreseen {
  Time start = 0;  // 0 = not known: as things are it would not start
  std::string nodes;
  std::uint32_t cpus = 0;
  std::string partition;
  Why why;  // reason "None": it would start at once
};

/// `trial` is in no queue; those behind where it would stand are not in its way.
Foreseen foresee(job::State& state, Knowledge& knowledge, const job::Job& trial, Time now);

/// Of a pending job.
Why why(job::State& state, Knowledge& knowledge, const job::Job& job, Time now);

}  // namespace berth::schedule
