// Licences over time: what running jobs hold until their limits and planned ones from their starts.
#pragma once

#include <optional>
#include <vector>

#include "job/licenses.h"
#include "schedule/calendar.h"

namespace berth::schedule {

class LicenseBook {
 public:
  LicenseBook(const job::State& state, const Calendar& calendar, Time now)
      : state_(&state), calendar_(&calendar), now_(now) {}

  /// The first moment from `from` on at which one of the choices of the job is free for so long,
  /// its own plan left aside. Itself for a job that asks for none; 0 = never.
  Time free_from(const job::Job& job, Time from, Time seconds);
  /// "1 of 2 matlab are in use, 2 asked": what the job lacks now.
  std::string lack(const job::Job& job);
  /// A job has started: what runs is looked at again.
  void started() { running_.reset(); }

 private:
  struct Use {
    Span span;
    job::LicenseCounts counts;
  };
  const std::vector<Use>& running();
  [[nodiscard]] std::vector<Use> planned_by_others(JobId job) const;
  [[nodiscard]] std::vector<Use> reserved_for_others(const job::Job& job) const;
  [[nodiscard]] Time free_from(const job::LicenseCounts& wanted, const std::vector<Use>& uses,
                               Time from, Time seconds) const;

  const job::State* state_;
  const Calendar* calendar_;
  Time now_;
  std::optional<std::vector<Use>> running_;
};

}  // namespace berth::schedule
