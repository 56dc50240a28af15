// scontrol create, update and delete of ReservationName=.
#include <fmt/format.h>

#include <algorithm>

#include "controller/change_update.h"
#include "reservation/keys.h"
#include "schedule/reserve.h"
#include "text/number.h"

namespace berth::controller {
namespace {

using reservation::Ask;
using reservation::Flag;
using reservation::Reservation;

/// Names of users and groups as numbers.
Result<void> find_people(Reservation& out, Users& users) {
  out.uids.clear();
  for (const std::string& name : out.users.names) {
    auto uid = users.uid_of(name);
    if (!uid) uid = text::parse_number(name, UINT32_MAX - 1);
    if (!uid) {
      return fail(Code::bad_value, "Invalid user id", fmt::format("there is no user {}", name));
    }
    out.uids.insert(*uid);
  }
  for (const std::string& name : out.groups.names) {
    if (!users.gid_of(name)) {
      return fail(Code::bad_value, "Invalid group id", fmt::format("there is no group {}", name));
    }
  }
  const job::PartitionPolicy::Members members = members_of(out.groups.names);
  out.group_gids = members.gids;
  out.group_uids = members.uids;
  return {};
}

Result<void> check_licenses(const Reservation& one, const job::State& state) {
  for (const auto& [name, count] : one.licenses) {
    const auto total = state.policy().licenses.find(name);
    const std::uint64_t there = total == state.policy().licenses.end() ? 0 : total->second;
    if (count == 0 || count > there) {
      return fail(Code::bad_value, "Invalid license specification",
                  fmt::format("Licenses= in slurm.conf has {} of {}", there, name));
    }
  }
  return {};
}

std::unexpected<Error> invalid(std::string hint) {
  return fail(Code::bad_value, "Requested reservation is invalid", std::move(hint));
}

bool may_delete(const Reservation& one, const Caller& caller) {
  if (caller.privileged) return true;
  return one.flags.has(Flag::user_delete) &&
         reservation::may_use(one,
                              {.uid = caller.uid, .gid = caller.gid, .account = {}, .qos = {}});
}

Result<std::string> create(job::State& state, const Caller& caller, const Ask& ask, Users& users,
                           job::Time now) {
  Reservation made;
  made.name = ask.name.value_or("");
  made.created_by = caller.uid;
  if (made.name.empty()) {
    // As Slurm does: after the first who may use it.
    const std::string admitted = ask.users.value_or(ask.accounts.value_or(""));
    std::string_view first = admitted;
    first = first.substr(first.starts_with('-') ? 1 : 0);
    first = first.substr(0, first.find(','));
    made.name = state.free_reservation_name(first.empty() ? "resv" : first);
  }
  if (state.find_reservation(made.name) != nullptr) {
    return fail(Code::bad_value, "Duplicate reservation name",
                fmt::format("{} is there already; use update", made.name));
  }
  if (made.name.find_first_of(", \t\n=") != std::string::npos || ask.skip) {
    return invalid(ask.skip ? "skip goes with update" : "a name has no blanks, commas and =");
  }
  if (auto done = reservation::apply(ask, true, now, made); !done) return pass(done.error());
  if (auto done = find_people(made, users); !done) return pass(done.error());
  if (auto done = schedule::choose_resources(state, ask, now, made); !done) {
    return pass(done.error());
  }
  if (auto done = check_licenses(made, state); !done) return pass(done.error());
  std::string name = made.name;
  state.keep_reservation(std::move(made), now);
  return name;
}

Result<std::string> update(job::State& state, const Reservation& known, const Ask& ask,
                           Users& users, job::Time now) {
  if (ask.skip) {
    if (auto done = state.skip_reservation(known.name, now); !done) return pass(done.error());
    return known.name;
  }
  Reservation changed = known;
  if (auto done = reservation::apply(ask, false, now, changed); !done) return pass(done.error());
  if (auto done = find_people(changed, users); !done) return pass(done.error());
  const bool other_time = changed.start < known.start || changed.end > known.end;
  if (ask.resources()) {
    if (auto done = schedule::choose_resources(state, ask, now, changed); !done) {
      return pass(done.error());
    }
  } else if (other_time || changed.flags != known.flags) {
    if (auto done = schedule::check_resources(state, now, changed); !done) {
      return pass(done.error());
    }
  }
  if (auto done = check_licenses(changed, state); !done) return pass(done.error());
  // Jobs that run in it stay on nodes of it.
  for (const job::JobId id : state.jobs_in(known.name)) {
    for (const cluster::NodeShare& share : state.find(id)->allocation.nodes) {
      if (known.share_of(share.node) == nullptr || changed.share_of(share.node) != nullptr)
        continue;
      return fail(Code::nodes_busy, "Requested reservation is in use",
                  fmt::format("job {} of it runs on {}", state.find(id)->shown(),
                              state.cluster().nodes[share.node].name));
    }
  }
  std::string name = changed.name;
  state.keep_reservation(std::move(changed), now);
  return name;
}

}  // namespace

Result<std::string> change_reservation(job::State& state, const Caller& caller,
                                       const wire::Change& ask, const ChangeContext& context,
                                       job::Time now) {
  std::vector<reservation::Key> keys;
  for (const wire::Variable& key : ask.keys()) keys.emplace_back(key.name(), key.value());
  const std::string name = selected(ask, "ReservationName", 3);
  const Reservation* known = state.find_reservation(name);
  if (ask.action() == "delete") {
    if (known == nullptr) return invalid(fmt::format("there is no reservation {}", name));
    if (!may_delete(*known, caller)) return pass(job::job_error(job::JobFault::not_yours));
    if (auto done = state.drop_reservation(name, now); !done) return pass(done.error());
    return std::string();
  }
  if (!caller.privileged) return pass(job::job_error(job::JobFault::not_yours));
  const auto read = reservation::read_keys(keys, now);
  if (!read) return pass(read.error());
  if (ask.action() == "create") return create(state, caller, *read, context.users, now);
  if (known == nullptr) return invalid(fmt::format("there is no reservation {}", name));
  return update(state, *known, *read, context.users, now);
}

}  // namespace berth::controller
