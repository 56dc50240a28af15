#include "command/scontrol_reservation.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::command {
namespace scontrol {
namespace {

std::string flags_of(const wire::ReservationInfo& one) {
  std::string out;
  for (const std::string& flag : one.flags()) {
    if (!out.empty()) out += ',';
    out += flag;
    if (flag == "PURGE_COMP") out += "=" + seconds_text(one.purge_after());
  }
  return out;
}

}  // namespace

std::string reservation_text(const wire::ReservationInfo& one, const Style& style) {
  Record out(style);
  out.line(fmt::format("ReservationName={} StartTime={} EndTime={} Duration={}", one.name(),
                       time_text(one.start(), style), time_text(one.end(), style),
                       seconds_text(one.end() - one.start())));
  out.line(fmt::format("Nodes={} NodeCnt={} CoreCnt={} Features={} PartitionName={} Flags={}",
                       or_null(one.nodes()), one.node_count(), one.core_count(),
                       or_null(one.features()), or_null(one.partition()), flags_of(one)));
  for (const auto& part : one.cores()) {
    out.line(fmt::format("  NodeName={} CoreIDs={}", part.node(), part.ids()));
  }
  out.line(fmt::format("TRES={}", or_null(one.tres())));
  out.line(fmt::format("Users={} Groups={} Accounts={} Licenses={} State={} BurstBuffer=(null)",
                       or_null(one.users()), or_null(one.groups()), or_null(one.accounts()),
                       or_null(one.licenses()), one.active() ? "ACTIVE" : "INACTIVE"));
  out.maybe("QOS", one.qos());
  out.line(fmt::format("MaxStartDelay={}", one.max_start_delay() == 0
                                               ? "(null)"
                                               : seconds_text(one.max_start_delay())));
  out.maybe("Comment", one.comment());
  return std::move(out).done();
}

namespace {

void append_reservation(JsonText& json, const wire::ReservationInfo& one) {
  json.begin_object();
  json.text("accounts", one.accounts());
  json.text("burst_buffer", "");
  json.unsigned_number("core_count", one.core_count());
  json.begin_array("core_specializations");
  for (const auto& part : one.cores()) {
    json.begin_object();
    json.text("node", part.node());
    json.text("core", part.ids());
    json.end_object();
  }
  json.end_array();
  json.set_number("end_time", one.end());
  json.text("features", one.features());
  json.begin_array("flags");
  for (const std::string& flag : one.flags()) json.item(flag);
  json.end_array();
  json.text("groups", one.groups());
  json.text("licenses", one.licenses());
  json.number("max_start_delay", one.max_start_delay());
  json.text("name", one.name());
  json.unsigned_number("node_count", one.node_count());
  json.text("node_list", one.nodes());
  json.text("partition", one.partition());
  json.begin_object("purge_completed");
  json.set_number("time", one.purge_after());
  json.end_object();
  json.set_number("start_time", one.start());
  json.text("tres", one.tres());
  json.text("users", one.users());
  json.end_object();
}

}  // namespace

std::string reservations_json(const wire::ReservationsReply& reply, std::string_view name,
                              const JsonMeta& meta) {
  JsonText json;
  json.begin_object();
  json.begin_array("reservations");
  for (const wire::ReservationInfo& one : reply.reservations()) {
    if (name.empty() || one.name() == name) append_reservation(json, one);
  }
  json.end_array();
  json.set_number("last_update", reply.now());
  append_meta(json, meta);
  json.end_object();
  return std::move(json).done();
}

}  // namespace scontrol

std::string reservation_table(const wire::ReservationsReply& reply, bool header,
                              const TimeFormat& times) {
  if (reply.reservations().empty()) return "No reservations in the system\n";
  scontrol::Style style;
  style.times = times;
  std::size_t width = std::string_view("RESV_NAME").size();
  for (const auto& one : reply.reservations()) width = std::max(width, one.name().size());
  std::string out;
  const auto row = [&](std::string_view name, std::string_view state, std::string_view start,
                       std::string_view end, std::string_view duration, std::string_view nodes) {
    out += fmt::format("{:<{}}  {:>8}  {:>19}  {:>19}  {:>11}  {}\n", name, width, state, start,
                       end, duration, nodes);
  };
  if (header) row("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST");
  for (const auto& one : reply.reservations()) {
    row(one.name(), one.active() ? "ACTIVE" : "INACTIVE", scontrol::time_text(one.start(), style),
        scontrol::time_text(one.end(), style), scontrol::seconds_text(one.end() - one.start()),
        one.nodes());
  }
  return out;
}

}  // namespace berth::command
