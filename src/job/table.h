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
    if (done.second) places_.emplace(id, done.first);
    return done;
  }
  void erase(iterator at) {
    places_.erase(at->first);
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
  iterator begin() { return ordered_.begin(); }
  iterator end() { return ordered_.end(); }
  [[nodiscard]] const_iterator begin() const { return ordered_.begin(); }
  [[nodiscard]] const_iterator end() const { return ordered_.end(); }

 private:
  Ordered ordered_;
  std::unordered_map<JobId, iterator> places_;
};

}  // namespace berth::job
