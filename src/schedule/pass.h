// One walk along the queue: every job in its turn starts, gets a place in the future, or is told
// what it waits for. A walk can be made in pieces, so that nobody waits for a long one.
#pragma once

#include <map>
#include <queue>
#include <string>
#include <vector>

#include "schedule/calendar.h"
#include "schedule/earliest.h"
#include "schedule/groups.h"
#include "schedule/license_book.h"
#include "schedule/preempt.h"
#include "schedule/schedule.h"
#include "schedule/shapes.h"

namespace berth::schedule {

/// What outlives a walk.
struct Knowledge {
  explicit Knowledge(const job::State& state) : calendar(state) {}
  Shapes shapes;
  Groups groups;
  Calendar calendar;

  /// Why a group of jobs cannot start now. True until a node has more room that one of them could
  /// use.
  struct Waits {
    std::string word;
    std::string text;
    bool plannable = false;  // for what others hold
  };
  std::unordered_map<GroupKey, Waits, GroupKeyHash> waits;  // jobs without a plan
  std::unordered_map<JobId, Waits> planned_waits;           // jobs with one
  std::set<JobId> claims;  // jobs that others gave way to, until they start
};

/// Where it may look for a place, in this order: in a reservation, or (nullptr) in none.
std::vector<const Reservation*> places_of(const job::State& state, const job::Job& job);

class Pass {
 public:
  enum class Kind {
    plan,      // plans are made anew, the whole queue
    freed,     // the whole queue; plans stay
    arrivals,  // only these jobs; plans stay
  };
  Pass(job::State& state, Knowledge& knowledge, Kind kind, Time now, const Options& options);

  /// Jobs to look at: all of the queue, or these.
  void take_all();
  void take(const std::vector<JobId>& jobs);
  /// Goes on until the end (true) or until so much work is done. 0 = no bound.
  bool go_on(std::size_t work);
  /// What was done since the last call.
  Figures take_figures();
  /// A job might take the place of others, which can be told when plans are made anew.
  [[nodiscard]] bool wants_plans() const { return wants_plans_; }

 private:
  struct Turn {
    job::QueueKey key;
    GroupKey group;
    friend bool operator<(const Turn& a, const Turn& b) { return b.key < a.key; }
  };
  /// What is known of a group in this walk.
  struct Known : Knowledge::Waits {
    bool failed = false;    // cannot start now
    bool planless = false;  // no start was found for one of them
    Time not_before = 0;    // the last planned start of one of them
    bool nobody_gives_way = false;
  };
  enum class Outcome { started, waits, passed_over };

  void end();
  void give_up(JobId id);
  Outcome consider(const job::Job& job, const GroupKey& group);
  Outcome try_job(const job::Job& job, const GroupKey& group);
  Outcome try_het(const job::Job& job);
  // pass_reserved.cpp
  [[nodiscard]] bool may_be_in(const job::Job& job, const std::string& reservation) const;
  std::optional<place::JobPlan> start_in(const Reservation* place, const job::Job& job,
                                         const place::Prepared& prepared,
                                         const std::vector<Planned>& own, bool& in_the_way);
  /// The first of these in which it can start now.
  std::optional<place::JobPlan> start_in_one(const job::Job& job, const place::Prepared& prepared,
                                             const std::vector<Planned>& own, bool& in_the_way);
  /// The earliest start in any of them.
  std::optional<Earliest::Found> later_in_one(const job::Job& job, const place::Prepared& prepared,
                                              Time seconds, Time not_before);
  /// Fills in the reason when a reservation is it, its own or that of others.
  bool reservation_is_why(const job::Job& job, const place::Prepared& prepared, Known& known);
  std::optional<place::JobPlan> as_promised(const job::Job& job, const place::Prepared& prepared,
                                            const std::vector<Planned>& own);
  /// It still waits for as few switches as it asks for.
  [[nodiscard]] bool wants_few_switches(const job::Job& job) const;
  /// Where only the number of switches keeps it from starting, in words; its patience counts then.
  std::string short_of_switches(const job::Job& job, const place::Prepared& prepared);
  /// The first start, on few switches or, once its patience is over, on any.
  std::optional<Earliest::Found> first_start(const job::Job& job, const place::Prepared& prepared,
                                             Time seconds, Time not_before);
  std::optional<place::JobPlan> shortened(const job::Job& job, const place::Prepared& prepared);
  bool start(const job::Job& job, std::vector<place::JobPlan> plans);
  /// Its licences are free now, for all its time.
  bool licensed(const job::Job& job);
  /// It could not start before, and no node that has grown since could help it.
  bool still_waits(const job::Job& job, const GroupKey& group, const place::Prepared& prepared,
                   Known& known);
  /// Fills in why the group cannot start now.
  void find_reason(const job::Job& job, Shape& shape, bool in_the_way, Known& known);
  void never_now(Shape& shape, Known& known);
  void tell(const job::Job& job, const Known& known);
  void plan(const job::Job& job, const GroupKey& group, Known& known);
  void plan_het(const job::Job& job);
  /// What it asks for is somebody else's until later: it gets a place from then on, and is in
  /// nobody's way before.
  void wait_for_licenses(const job::Job& job);
  /// True when its plan of before was as good as any: it is in force again.
  bool keep_old(const job::Job& job, Time unless_before);
  void keep(const job::Job& job, Time start, Time seconds, const place::JobPlan& plan);
  void show(const job::Job& job);
  [[nodiscard]] bool may_plan(const job::Job& job) const;
  // pass_preempt.cpp
  /// Others give way to it: it has a place from when they are gone (waits), or their cores at once
  /// (started); else passed_over.
  Outcome takes_a_place(const job::Job& job, Known& known, bool tried);
  std::optional<GivingWay> who_gives_way(const job::Job& job, const place::Prepared& prepared,
                                         const std::vector<JobId>& must_go);
  Outcome take_place(const job::Job& job, const place::Prepared& prepared, const GivingWay& found);
  /// reclaim_licenses: those that have what it lacks give way.
  bool takes_licenses(const job::Job& job);
  void keep_claim(const job::Job& job);
  [[nodiscard]] bool plans_behind(const job::Job& job) const;
  void gather_parked();
  void note_parked(JobId id);
  void resume_down_to(std::uint32_t tier);
  void give_cores_up();
  /// Without backfill: somebody before it waits in its partition.
  [[nodiscard]] bool must_queue(const job::Job& job) const;
  /// Partitions it may run in.
  [[nodiscard]] std::vector<std::string> partitions(const job::Job& job) const;
  [[nodiscard]] std::vector<const job::Job*> components(const job::Job& job) const;

  job::State* state_;
  Knowledge* known_;
  Kind kind_;
  Time now_;
  Options options_;
  bool each_one_;  // few enough to look at each job, not only at the first of a group
  Earliest earliest_;
  LicenseBook licenses_;
  Figures figures_;
  Work work_;
  std::size_t placed_told_ = 0;
  std::priority_queue<Turn> turns_;
  std::unordered_map<GroupKey, Known, GroupKeyHash> groups_;
  std::vector<NodeIndex> grown_;       // have more room than in the walk before
  std::multimap<JobId, Planned> old_;  // plans that are made anew, as they were
  std::size_t plans_left_ = 0;
  std::map<std::string, std::size_t>
      waiting_in_;  // jobs that wait for what others hold, by partition
  bool somebody_waits_ = false;
  bool preempts_ = false;  // jobs give way to others here
  std::optional<Preemption> preemption_;
  bool wants_plans_ = false;
  std::vector<std::pair<std::uint32_t, JobId>> parked_;  // by tier, the highest first
  std::size_t resumed_ = 0;                              // of these: looked at
  std::vector<JobId> kept_cores_;                        // suspended jobs, in the calendar
};

}  // namespace berth::schedule
