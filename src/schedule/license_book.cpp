#include "schedule/license_book.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::schedule {
namespace {

std::uint64_t count_of(const job::LicenseCounts& counts, const std::string& name) {
  const auto at = counts.find(name);
  return at == counts.end() ? 0 : at->second;
}

}  // namespace

const std::vector<LicenseBook::Use>& LicenseBook::running() {
  if (running_) return *running_;
  std::vector<Use>& out = running_.emplace();
  for (const JobId id : state_->holding()) {
    const job::Job* job = state_->find(id);
    if (job->licenses_taken.empty()) continue;
    out.push_back({{0, end_of(*job, now_)}, job::license_counts(job->licenses_taken)});
  }
  return out;
}

std::vector<LicenseBook::Use> LicenseBook::planned_by_others(JobId own) const {
  std::vector<Use> out;
  for (const auto& [id, planned] : calendar_->plans()) {
    const job::Job* job = id == own ? nullptr : state_->find(id);
    if (job == nullptr || job->what->licenses.empty()) continue;
    // Which of several it will have is not known: the first, as if all were free.
    out.push_back({planned.span, job::license_choices(job->what->licenses).front()});
  }
  return out;
}

/// What reservations keep for their own jobs, beyond what those have already.
std::vector<LicenseBook::Use> LicenseBook::reserved_for_others(const job::Job& job) const {
  constexpr int kOccurrences = 16;
  std::vector<Use> out;
  const auto& own = state_->view(job.view).names;
  for (const auto& [name, one] : state_->reservations()) {
    if (one.licenses.empty() || std::ranges::find(own, name) != own.end()) continue;
    job::LicenseCounts kept(one.licenses.begin(), one.licenses.end());
    for (const JobId id : state_->jobs_in(name)) {
      for (const auto& [used, count] : job::license_counts(state_->find(id)->licenses_taken)) {
        if (const auto at = kept.find(used); at != kept.end()) {
          at->second -= std::min<std::uint64_t>(at->second, count);
        }
      }
    }
    reservation::Window at = one.window(now_);
    for (int i = 0; i < kOccurrences; ++i) {
      out.push_back({{at.from, at.until}, kept});
      if (!one.recurs()) break;
      at = reservation::next_occurrence(one.flags, at);
    }
  }
  return out;
}

Time LicenseBook::free_from(const job::LicenseCounts& wanted, const std::vector<Use>& uses,
                            Time from, Time seconds) const {
  // The most that is held at one moment changes only where somebody begins or ends.
  const auto fits = [&](Time start) {
    const Span span{start, start + seconds};
    const auto fits_at = [&](Time moment) {
      return std::ranges::all_of(wanted, [&](const auto& want) {
        std::uint64_t held = 0;
        for (const Use& use : uses) {
          if (use.span.from <= moment && moment < use.span.until) {
            held += count_of(use.counts, want.first);
          }
        }
        const auto total = state_->policy().licenses.find(want.first);
        return total != state_->policy().licenses.end() && held + want.second <= total->second;
      });
    };
    return fits_at(start) && std::ranges::all_of(uses, [&](const Use& use) {
             return use.span.from <= span.from || use.span.from >= span.until ||
                    fits_at(use.span.from);
           });
  };
  if (fits(from)) return from;
  std::vector<Time> ends;
  for (const Use& use : uses) {
    if (use.span.until > from) ends.push_back(use.span.until);
  }
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  const auto at = std::ranges::find_if(ends, fits);
  return at == ends.end() ? 0 : *at;
}

Time LicenseBook::free_from(const job::Job& job, Time from, Time seconds) {
  if (job.what->licenses.empty()) return from;
  std::vector<Use> uses = running();
  std::ranges::move(planned_by_others(job.id), std::back_inserter(uses));
  if (!state_->reservations().empty()) {
    std::ranges::move(reserved_for_others(job), std::back_inserter(uses));
  }
  Time best = 0;
  for (const job::LicenseCounts& wanted : job::license_choices(job.what->licenses)) {
    const Time at = free_from(wanted, uses, from, seconds);
    if (at > 0 && (best == 0 || at < best)) best = at;
  }
  return best;
}

std::string LicenseBook::lack(const job::Job& job) {
  std::string out;
  for (const job::LicenseCounts& wanted : job::license_choices(job.what->licenses)) {
    for (const auto& [name, count] : wanted) {
      const auto total = state_->policy().licenses.find(name);
      const std::uint64_t all = total == state_->policy().licenses.end() ? 0 : total->second;
      const std::uint64_t used = state_->licenses_used(name);
      if (used + count <= all) continue;
      out += fmt::format("{}{} of {} licences {} are in use, asked {}", out.empty() ? "" : "; ",
                         used, all, name, count);
    }
  }
  return out.empty()
             ? "the licences it asks for are kept for jobs before this one, or by a reservation"
             : out;
}

}  // namespace berth::schedule
