// Reservations as the store keeps them.
#include "job/launch.h"
#include "job/licenses.h"
#include "job/record.h"
#include "reservation/keys.h"

namespace berth::job {
namespace {

using reservation::Names;
using reservation::Reservation;

Names names_in(std::string_view text) {
  return reservation::read_names("", text, {}).value_or(Names());
}

}  // namespace

wire::ReservationRecord to_record(const cluster::Cluster& cluster, const Reservation& from) {
  wire::ReservationRecord out;
  out.set_name(from.name);
  out.set_number(from.number);
  out.set_start(from.start);
  out.set_end(from.end);
  for (const std::string& word : reservation::flag_words(from.flags)) out.add_flags(word);
  out.set_partition(from.partition);
  out.set_features(from.features);
  out.set_node_count(from.node_count);
  out.set_core_count(from.core_count);
  out.set_tres(from.tres);
  out.set_tres_per_node(from.tres_per_node);
  *out.mutable_allocation() = to_wire(cluster, from.allocation);
  out.set_licenses(license_text(from.licenses));
  out.set_users(from.users.text());
  out.set_groups(from.groups.text());
  out.set_accounts(from.accounts.text());
  out.set_qos(from.qos.text());
  for (const std::uint32_t uid : from.uids) out.add_uids(uid);
  for (const std::uint32_t gid : from.group_gids) out.add_group_gids(gid);
  for (const std::uint32_t uid : from.group_uids) out.add_group_uids(uid);
  out.set_comment(from.comment);
  out.set_purge_after(from.purge_after);
  out.set_idle_since(from.idle_since);
  out.set_created_by(from.created_by);
  out.set_max_start_delay(from.max_start_delay);
  return out;
}

Reservation from_record(const cluster::Cluster& cluster, const wire::ReservationRecord& record) {
  Reservation out;
  out.name = record.name();
  out.number = record.number();
  out.start = record.start();
  out.end = record.end();
  for (const std::string& word : record.flags()) {
    if (const auto flag = reservation::flag_of(word)) out.flags.put(*flag);
  }
  out.partition = record.partition();
  out.features = record.features();
  out.node_count = record.node_count();
  out.core_count = record.core_count();
  out.tres = record.tres();
  out.tres_per_node = record.tres_per_node();
  out.allocation = from_wire(cluster, record.allocation());
  out.licenses = license_counts(record.licenses());
  out.users = names_in(record.users());
  out.groups = names_in(record.groups());
  out.accounts = names_in(record.accounts());
  out.qos = names_in(record.qos());
  out.uids = {record.uids().begin(), record.uids().end()};
  out.group_gids = {record.group_gids().begin(), record.group_gids().end()};
  out.group_uids = {record.group_uids().begin(), record.group_uids().end()};
  out.comment = record.comment();
  out.purge_after = record.purge_after();
  out.idle_since = record.idle_since();
  out.created_by = record.created_by();
  out.max_start_delay = record.max_start_delay();
  return out;
}

}  // namespace berth::job
