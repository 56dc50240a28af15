// Jobs by id: in order for those who walk through them, and found at once. (A search in a tree of
// 100,000 touches as many cold cache lines as it is deep.)
#pragma once

#include <map>
#include <unordered_map>
#include <utility>

#include "job/types.h"

namespace berth::job {

class Table {
 public:
  using Ordered = std::map<JobId, Job>;
  using iterator = Ordered::iterator;
  using const_iterator = Ordered::const_iterator;

  std::pair<iterator, bool> emplace(JobId id, Job&& job) {
    const auto done = ordered_.emplace(id, std::move(job));
    if (done.second) {
      places_.emplace(id, done.first);
      ++of_user_[done.first->second.uid];
    }
    return done;
  }
  void erase(iterator at) {
    places_.erase(at->first);
    if (const auto user = of_user_.find(at->second.uid); --user->second == 0) of_user_.erase(user);
    ordered_.erase(at);
  }

  [[nodiscard]] iterator find(JobId id) {
    const auto at = places_.find(id);
    return at == places_.end() ? ordered_.end() : at->second;
  }
  [[nodiscard]] const_iterator find(JobId id) const {
    const auto at = places_.find(id);
    return at == places_.end() ? ordered_.end() : const_iterator(at->second);
  }
  [[nodiscard]] bool contains(JobId id) const { return places_.contains(id); }
  [[nodiscard]] Job& at(JobId id) { return places_.at(id)->second; }
  [[nodiscard]] const Job& at(JobId id) const { return places_.at(id)->second; }

  [[nodiscard]] const Ordered& ordered() const { return ordered_; }
  [[nodiscard]] std::size_t size() const { return ordered_.size(); }
  /// How many are this user's. Whose a job is never changes.
  [[nodiscard]] std::size_t of_user(std::uint32_t uid) const {
    const auto found = of_user_.find(uid);
    return found == of_user_.end() ? 0 : found->second;
  }
  iterator begin() { return ordered_.begin(); }
  iterator end() { return ordered_.end(); }
  [[nodiscard]] const_iterator begin() const { return ordered_.begin(); }
  [[nodiscard]] const_iterator end() const { return ordered_.end(); }

 private:
  Ordered ordered_;
  std::unordered_map<JobId, iterator> places_;
  std::unordered_map<std::uint32_t, std::size_t> of_user_;
};

}  // namespace berth::job
