// Which keys each line has: the one table that the reader and the writer go by.
#pragma once

#include <string_view>

#include "survey/survey.h"

namespace berth::survey {

template <class Of>
struct Named;  // word: what a line begins with

#define BERTH_SURVEY_LINE(type, name)              \
  template <>                                      \
  struct Named<type> {                             \
    static constexpr std::string_view word = name; \
  }
BERTH_SURVEY_LINE(Header, "berth-nvml");
BERTH_SURVEY_LINE(Cpus, "cpus");
BERTH_SURVEY_LINE(Driver, "driver");
BERTH_SURVEY_LINE(FoundGpu, "gpu");
BERTH_SURVEY_LINE(FoundInstance, "mig");
BERTH_SURVEY_LINE(FoundLinks, "nvlink");
BERTH_SURVEY_LINE(FoundWay, "way");
BERTH_SURVEY_LINE(Lost, "lost");
BERTH_SURVEY_LINE(Sample, "sample");
BERTH_SURVEY_LINE(Process, "process");
BERTH_SURVEY_LINE(Xid, "xid");
BERTH_SURVEY_LINE(End, "end");
#undef BERTH_SURVEY_LINE

// visit(key, value) for each key in the order in which it is written. Values that are optional, and
// sets and strings that may be empty, may be left out; all others must be there.
void each_field(auto& line, Header*, auto&& visit) {
  visit("version", line.version);
}
void each_field(auto& line, Cpus*, auto&& visit) {
  visit("sockets", line.sockets);
  visit("cores", line.cores);
  visit("threads", line.threads);
  visit("memory_mb", line.memory_mb);
  visit("os", line.os);
}
void each_field(auto& line, Driver*, auto&& visit) {
  visit("version", line.version);
}
void each_field(auto& line, FoundGpu*, auto&& visit) {
  visit("index", line.index);
  visit("minor", line.minor);
  visit("uuid", line.uuid);
  visit("bus", line.bus);
  visit("memory_mb", line.memory_mb);
  visit("model", line.model);
  visit("cpus", line.cpus);
  visit("numa", line.numa);
  visit("mig", line.mig);
}
void each_field(auto& line, FoundInstance*, auto&& visit) {
  visit("gpu", line.gpu);
  visit("gpu_instance", line.gpu_instance);
  visit("compute_instance", line.compute_instance);
  visit("uuid", line.uuid);
  visit("profile", line.profile);
  visit("memory_mb", line.memory_mb);
}
void each_field(auto& line, FoundLinks*, auto&& visit) {
  visit("from", line.from);
  visit("to", line.to);
  visit("count", line.count);
}
void each_field(auto& line, FoundWay*, auto&& visit) {
  visit("from", line.from);
  visit("to", line.to);
  visit("by", line.way);
}
void each_field(auto& line, Lost*, auto&& visit) {
  visit("index", line.index);
  visit("why", line.why);
}
void each_field(auto& line, Sample*, auto&& visit) {
  visit("gpu", line.gpu);
  visit("busy_percent", line.busy_percent);
  visit("memory_used_mb", line.memory_used_mb);
  visit("power_mw", line.power_mw);
  visit("celsius", line.celsius);
  visit("ecc_corrected", line.ecc_corrected);
  visit("ecc_uncorrected", line.ecc_uncorrected);
  visit("rows_remapped", line.rows_remapped);
  visit("rows_pending", line.rows_pending);
  visit("rows_failed", line.rows_failed);
}
void each_field(auto& line, Process*, auto&& visit) {
  visit("gpu", line.gpu);
  visit("pid", line.pid);
  visit("memory_mb", line.memory_mb);
  visit("gpu_instance", line.gpu_instance);
}
void each_field(auto& line, Xid*, auto&& visit) {
  visit("gpu", line.gpu);
  visit("code", line.code);
}
void each_field(auto&, End*, auto&&) {}

}  // namespace berth::survey
