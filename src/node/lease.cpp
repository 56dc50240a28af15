// What lease.h promises.
#include "node/lease.h"

#include "step/lease_file.h"

namespace berth::node {

void Lease::sent(std::uint64_t number, Moment at) {
  questions_.emplace(number, at);
}

void Lease::answered(std::uint64_t number) {
  const auto question = questions_.find(number);
  if (question == questions_.end()) return;
  from_ = answered_ = question->second;
  // Answers come in the order of the questions.
  questions_.erase(questions_.begin(), std::next(question));
}

void Lease::rest(Seconds longest) {
  if (answered_) from_ = *answered_ + longest;
}

void Lease::end_rest(Moment now) {
  // Only while they rest it is a moment that is still to come.
  if (from_ && *from_ > now) from_ = answered_ = now;
}

std::optional<Lease::Moment> Lease::end_of(Seconds lease) const {
  if (lease.count() == 0 || !from_) return std::nullopt;
  return *from_ + lease - step::lease_margin(lease);
}

}  // namespace berth::node
