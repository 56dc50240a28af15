// scontrol show reservation, sinfo -T.
#include <algorithm>

#include "controller/engine.h"
#include "controller/info_tres.h"
#include "text/hostlist.h"
#include "text/licenses.h"

namespace berth::controller {
namespace {

using reservation::Reservation;

wire::ReservationInfo info_of(const job::State& state, const Reservation& one, job::Time now) {
  wire::ReservationInfo out;
  out.set_name(one.name);
  const reservation::Window window = one.window(now);
  out.set_start(window.from);
  out.set_end(window.until);
  out.set_active(one.active(now));
  std::vector<std::string> names;
  std::uint32_t cores = 0;
  for (const cluster::NodeShare& share : one.allocation.nodes) {
    const std::string& name = state.cluster().nodes[share.node].name;
    names.push_back(name);
    cores += static_cast<std::uint32_t>(share.cores.count());
    if (one.allocation.whole_nodes) continue;
    auto* part = out.add_cores();
    part->set_node(name);
    part->set_ids(share.cores.ranges());
  }
  out.set_nodes(text::compress_hostlist(names));
  out.set_node_count(static_cast<std::uint32_t>(names.size()));
  out.set_core_count(cores);
  out.set_features(one.features);
  out.set_partition(one.partition);
  for (const std::string& word : reservation::flag_words(one.flags)) out.add_flags(word);
  if (one.flags.has(reservation::Flag::purge_comp)) out.set_purge_after(one.purge_after);
  TresCounts counts = counts_of(state.cluster(), one.allocation);
  counts.memory_mb = 0;
  counts.nodes.reset();
  TrackedTres tracked;
  for (const auto& gres : counts.gres) tracked.push_back("gres/" + gres.name);
  std::string tres = tres_words(counts, tracked);
  for (const auto& [name, count] : one.licenses) {
    tres += (tres.empty() ? "license/" : ",license/") + name + "=" + std::to_string(count);
  }
  out.set_tres(tres);
  out.set_users(one.users.text());
  out.set_groups(one.groups.text());
  out.set_accounts(one.accounts.text());
  out.set_qos(one.qos.text());
  out.set_licenses(text::license_text(one.licenses));
  out.set_comment(one.comment);
  out.set_max_start_delay(one.max_start_delay);
  return out;
}

}  // namespace

void Engine::list_reservations(Turn& turn, const Request& request) {
  if (!decoded<wire::ListReservations>(request)) return;
  wire::ReservationsReply reply;
  reply.set_now(turn.now);
  const std::vector<std::string>& hidden = setup_.keys().private_data;
  const bool some = std::ranges::any_of(
      hidden, [](const std::string& word) { return word == "reservations" || word == "all"; });
  const reservation::User user{
      request.caller.uid, request.caller.gid, {}, {}, request.caller.privileged};
  for (const auto& [name, one] : state_->reservations()) {
    // PrivateData=reservations: those that the caller might use.
    if (some && !reservation::may_use(one, user)) continue;
    *reply.add_reservations() = info_of(*state_, one, turn.now);
  }
  outbox_.answer(request.peer, reply);
}

}  // namespace berth::controller
