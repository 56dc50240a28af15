// What tickets.h promises.
#include "node/tickets.h"

#include <fmt/format.h>

#include "auth/ticket.h"
#include "wire/frame.h"
#include "wire/step_ids.h"

namespace berth::node {
namespace {

template <class Spec>
Result<Spec> check(const wire::Ticket& ticket, const std::string& key, std::int64_t now,
                   const Bearer& bearer) {
  if (!auth::verify(ticket.spec(), ticket.mac(), key)) {
    return fail(Code::no_credential, "Invalid job credential");
  }
  auto spec = wire::decode<Spec>(ticket.spec());
  if (!spec || spec->node() != ticket.node()) {
    return fail(Code::no_credential, "Invalid job credential");
  }
  if (spec->expires() < now) return fail(Code::no_credential, "Job credential expired");
  if (bearer.uid != 0 && bearer.uid != spec->uid()) {
    return fail(Code::no_credential, "Access/permission denied");
  }
  return std::move(*spec);
}

}  // namespace

Result<wire::StepSpec> check_launch(const wire::Ticket& ticket, const std::string& key,
                                    std::int64_t now, const Bearer& bearer) {
  auto spec = check<wire::StepSpec>(ticket, key, now, bearer);
  // An AccessSpec is signed with the same key: what has no attempt, nonce or tasks starts nothing.
  if (spec && (spec->nonce().empty() || spec->tasks().empty() || spec->attempt() == 0)) {
    return fail(Code::no_credential, "Invalid job credential");
  }
  return spec;
}

Result<wire::AccessSpec> check_access(const wire::Ticket& ticket, const std::string& key,
                                      std::int64_t now, const Bearer& bearer,
                                      const std::string& purpose) {
  auto spec = check<wire::AccessSpec>(ticket, key, now, bearer);
  if (spec && spec->purpose() != purpose) {
    return fail(Code::no_credential, "Invalid job credential");
  }
  return spec;
}

Result<void> check_batch(const wire::BeginJob& message, const std::string& key) {
  const wire::Ticket& ticket = message.batch().ticket();
  // A script may begin long after it was signed: it waits for prologs and for machines.
  const auto spec = check<wire::StepSpec>(ticket, key, 0, {.uid = message.uid()});
  if (!spec) return pass(spec.error());
  const bool fits = spec->node() == message.node() && spec->job_id() == message.job_id() &&
                    spec->attempt() == message.attempt() && spec->uid() == message.uid() &&
                    spec->gid() == message.gid() && spec->step_id() == wire::kBatchStep;
  if (!fits) return fail(Code::no_credential, "Invalid job credential");
  return {};
}

}  // namespace berth::node
