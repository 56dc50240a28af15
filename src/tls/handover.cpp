#include "tls/handover.h"

namespace berth::tls {

Result<Handover> Handover::open(const Session& session, std::string request) {
  auto context = Context::keyed_caller();
  if (!context) return pass(std::move(context.error()));
  Stream first = context->open(session.name, session.key);
  return Handover(std::move(*context), std::move(first), std::move(request));
}

Result<void> Handover::take(std::string_view raw, std::string& plain, std::string& out) {
  if (!first_.ended()) {
    if (auto done = first_.take(raw, plain, out); !done) return done;
    if (first_.established() && !second_) {
      first_.put(std::exchange(request_, {}), out);
      first_.end(out);
      second_ = context_.open(std::string(kHandedOver), first_.binding(kHandoverPurpose));
      second_->begin(out);
      second_->put(std::exchange(waiting_, {}), out);
    }
    if (!first_.ended()) return {};
    const std::string rest = first_.rest();
    return second_->take(rest, plain, out);
  }
  return second_->take(raw, plain, out);
}

void Handover::put(std::string_view plain, std::string& out) {
  if (second_) {
    second_->put(plain, out);
  } else {
    waiting_.append(plain);
  }
}

std::size_t Handover::kept() const {
  return waiting_.size() + request_.size() + (second_ ? second_->kept() : 0);
}

Result<Stream> take_over(const std::string& key) {
  auto context = Context::keyed_server([key](std::string_view name) -> std::optional<std::string> {
    if (name != kHandedOver) return std::nullopt;
    return key;
  });
  if (!context) return pass(std::move(context.error()));
  return context->open();
}

}  // namespace berth::tls
