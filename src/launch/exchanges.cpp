// What exchanges.h promises.
#include "launch/exchanges.h"

#include <fmt/format.h>

#include "wire/frame.h"

namespace berth::launch {
namespace {

/// One frame, with its other fields.
constexpr std::size_t kMostData = wire::kMostBytes - (std::size_t{1} << 20);

}  // namespace

Result<std::optional<wire::Exchange>> Exchanges::add(wire::Exchange part) {
  if (part.wanted() > 0 && !root_) return part;
  const std::size_t wanted = part.wanted() > 0 ? part.wanted() : nodes_;
  const auto [at, first] = open_.try_emplace({part.channel(), part.group(), part.number()});
  wire::Exchange& whole = at->second;
  if (first) {
    whole = std::move(part);
  } else if (whole.data().size() + part.data().size() > kMostData) {
    return fail(
        Code::unsupported,
        fmt::format("the tasks of the step exchange more than {} MiB at once", kMostData >> 20),
        "put less before a fence");
  } else {
    whole.set_nodes(whole.nodes() + part.nodes());
    whole.mutable_data()->append(part.data());
  }
  if (whole.nodes() < wanted) return std::nullopt;
  std::optional<wire::Exchange> out = std::move(whole);
  open_.erase(at);
  return out;
}

wire::Errand unanswered(const wire::Errand& question) {
  wire::Errand out;
  out.set_from(question.to());
  out.set_to(question.from());
  out.set_channel(question.channel());
  out.set_number(question.number());
  out.set_answer(true);
  return out;
}

}  // namespace berth::launch
