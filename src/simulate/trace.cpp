#include "simulate/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulate/fields.h"
#include "text/words.h"

namespace berth::simulate {
namespace {

constexpr std::array<std::pair<Format, std::string_view>, 3> kFormats = {{
    {Format::swf, "swf"},
    {Format::sacct, "sacct"},
    {Format::openb, "openb"},
}};

}  // namespace

std::string_view format_name(Format format) {
  for (const auto& [known, name] : kFormats) {
    if (known == format) return name;
  }
  return "";
}

std::optional<Format> format_of(std::string_view name) {
  for (const auto& [format, known] : kFormats) {
    if (text::equal_ignoring_case(known, name)) return format;
  }
  return std::nullopt;
}

void Trace::skip(std::uint64_t line, std::string_view why) {
  ++skipped;
  if (skipped_first.size() < kNamed) {
    skipped_first.push_back(fmt::format("{}:{}: {}", name, line, why));
  }
}

std::uint32_t Trace::intern(Ask ask) {
  const auto [at, fresh] = known_.try_emplace(ask, static_cast<std::uint32_t>(asks.size()));
  if (fresh) asks.push_back(std::move(ask));
  return at->second;
}

void Trace::sort() {
  std::ranges::stable_sort(jobs, {}, &TraceJob::submit);
}

std::optional<Format> detect(std::string_view text) {
  Lines lines(text);
  std::vector<std::string_view> fields;
  constexpr int kLooked = 1000;  // of comments and empty lines before the first that says something
  std::string_view line;
  for (int i = 0; i < kLooked && lines.next(line); ++i) {
    line = text::trim(line);
    if (line.starts_with(';')) return Format::swf;
    if (line.empty()) continue;
    if (line.find('|') != std::string_view::npos) return Format::sacct;
    if (line.starts_with("name,cpu_milli")) return Format::openb;
    split_blanks(line, fields);
    if (fields.size() >= 11 && whole_of(fields[0]) && whole_of(fields[1])) return Format::swf;
    return std::nullopt;
  }
  return std::nullopt;
}

Result<Trace> read_trace(std::string_view text, std::string_view name,
                         std::optional<Format> format) {
  if (!format) format = detect(text);
  if (!format) {
    return fail(Code::bad_value, fmt::format("{}: not a trace that is known", name),
                "SWF, the output of sacct -P with its header, or the pods of openb; --format says "
                "which");
  }
  Result<Trace> trace = *format == Format::swf     ? read_swf(text, name)
                        : *format == Format::sacct ? read_sacct(text, name)
                                                   : read_openb(text, name);
  if (!trace) return trace;
  if (trace->jobs.empty()) {
    return fail(Code::bad_value, fmt::format("{}: no line of it is a job that ran", name),
                trace->skipped_first.empty() ? "it is empty" : trace->skipped_first.front());
  }
  trace->format = format_name(*format);
  trace->sort();
  return trace;
}

}  // namespace berth::simulate
