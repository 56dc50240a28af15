#include "controller/asked_cache.h"

namespace berth::controller {

void AskedCache::put(std::uint64_t key, std::shared_ptr<const wire::Asked> asked,
                     std::size_t bytes) {
  if (find(key) || bytes > most_) return;
  order_.push_front({key, std::move(asked), bytes});
  entries_[key] = order_.begin();
  held_ += bytes;
  while (held_ > most_) {
    held_ -= order_.back().bytes;
    entries_.erase(order_.back().key);
    order_.pop_back();
  }
}

std::shared_ptr<const wire::Asked> AskedCache::find(std::uint64_t key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return found->second->asked;
}

}  // namespace berth::controller
