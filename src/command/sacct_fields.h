// The fields of sacct: names, widths and values of a job or of one of its steps.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "command/show_text.h"
#include "wire/info.pb.h"

namespace berth::command {

/// A line of sacct: a job (step unset), or a step of it.
struct HistoryRow {
  const wire::HistoryJob* job = nullptr;
  const wire::HistoryStep* step = nullptr;
};

/// What sizes are shown in.
struct SacctShown {
  Shown shown;
  char unit = 0;                     // --units; 0 = the natural one
  std::int64_t from = 0, until = 0;  // -T: times are cut to these; 0 = not
};

struct SacctField {
  std::string_view name;
  int width = 10;  // negative: left-justified
  void (*show)(const HistoryRow& row, const SacctShown& shown, std::string& out) = nullptr;
};

std::span<const SacctField> sacct_fields();
inline std::string_view title_of(const SacctField& field) {
  return field.name;
}

}  // namespace berth::command
