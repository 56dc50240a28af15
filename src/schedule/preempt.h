// Who gives way so that a job can start: running jobs of lower partition tiers, the least that are
// worth most to it. Nobody is asked to go unless the job then really starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/usage.h"
#include "place/prepared.h"
#include "schedule/earliest.h"

namespace berth::schedule {

/// Why a running job does not give way.
enum class Stays {
  no,               // it does
  ends,             // it ends already
  mode_off,         // PreemptMode=OFF
  tier,             // of the same tier or a higher one
  priority,         // PreemptMode=PRIORITY: not of lower priority
  exempt,           // has not run for PreemptExemptTime
  exempt_priority,  // min_exempt_priority
  other_user,       // --exclusive=user takes nothing from others
};

/// Who wants to start, in which tier.
struct Wants {
  const job::Job* job = nullptr;
  std::uint32_t tier = 0;
};

/// Whether `other` would give way to it at this moment.
Stays stays(const job::State& state, const Wants& wants, const job::Job& other, Time now);
/// PreemptExemptTime ends then.
Time exempt_until(const job::State& state, const job::Job& job);

/// Tiers of the partitions a job may run in, each with its name; the highest first.
std::vector<std::pair<std::uint32_t, std::string>> tiers_of(const job::State& state,
                                                            const job::Job& job);

struct GivingWay {
  /// In the order they are told; of a heterogeneous job the leader. Empty: those that end already
  /// make room enough.
  std::vector<JobId> jobs;
  Time start = 0;  // when the last of them is gone
  place::JobPlan plan;
};

class Preemption {
 public:
  Preemption(const job::State& state, Calendar& calendar, Time now);

  /// Who gives way to this job, or nullopt. `must_go` are asked in any case (they have licences).
  std::optional<GivingWay> find(const job::Job& job, const place::Prepared& prepared, Time seconds,
                                const std::vector<JobId>& must_go, Work& work);
  /// Who has licences that the job lacks and would give way, as few as do; empty: they do not do.
  std::vector<JobId> holders_of_licenses(const job::Job& job);
  /// After find() found nothing: when somebody more might give way; 0 = not known.
  [[nodiscard]] Time look_again() const { return look_again_; }

 private:
  struct Candidate {
    JobId leader = 0;
    std::vector<JobId> parts;
    std::uint32_t tier = 0;
    std::uint64_t cpus = 0;
    std::uint64_t gpus = 0;
    Time start = 0;
    Time grace = 0;
    bool suspends = false;
    std::vector<NodeIndex> nodes;
  };
  struct Ranked {
    NodeIndex node = 0;
    std::uint32_t worst_tier = 0;  // of those that must go
    std::size_t count = 0;
    std::uint64_t cpus = 0;
  };
  struct Question {
    const place::Prepared* prepared = nullptr;
    Time seconds = 0;
    std::vector<bool> willing;  // by position of candidates
    std::vector<std::size_t> must_go;
    Work* work = nullptr;
  };
  using Positions = std::vector<std::size_t>;

  void gather();
  [[nodiscard]] bool may_use(const place::Prepared& prepared, NodeIndex node) const;
  /// Who gives way to it in this tier.
  [[nodiscard]] std::vector<bool> willing_to(const job::Job& job, std::uint32_t tier);
  std::optional<GivingWay> find_in(Question& question);
  [[nodiscard]] std::vector<Ranked> rank_nodes(const Question& question) const;
  std::optional<place::JobPlan> place(const Question& question, const Positions& gone,
                                      const std::vector<NodeIndex>& nodes);
  struct Choice {
    Positions gone;
    place::JobPlan plan;
  };
  GivingWay fewest(const Question& question, const std::vector<NodeIndex>& nodes,
                   const place::JobPlan& plan);
  /// Of this list, which does as a whole (`plan`): the shortest beginning that does, less those
  /// that are not needed.
  Choice first_of(const Question& question, const std::vector<NodeIndex>& nodes,
                  const Positions& order, const place::JobPlan& plan);
  [[nodiscard]] bool cheaper(const Positions& a, const Positions& b) const;
  void spare(const Question& question, const std::vector<NodeIndex>& nodes, Positions& gone,
             place::JobPlan& plan);

  const job::State* state_;
  Calendar* calendar_;
  Time now_;
  cluster::Overlay overlay_;
  bool known_ = false;
  std::vector<Candidate> candidates_;              // who goes first is first
  std::vector<std::vector<std::size_t>> on_node_;  // positions, ascending
  Time look_again_ = 0;
};

}  // namespace berth::schedule
