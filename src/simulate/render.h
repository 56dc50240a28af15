// A report as text, as JSON and as one page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/figures.h"

namespace berth::simulate {

/// For a terminal: one column for each configuration, and the difference of two.
std::string render_text(const Report& report);
std::string render_json(const Report& report);
/// One file with everything in it: nothing is fetched from elsewhere.
std::string render_html(const Report& report);

/// One figure of all runs, for the tables of text and page.
enum class Unit { count, percent, duration, ratio };
struct Row {
  std::string_view label;
  Unit unit = Unit::count;
  std::vector<double> values;  // one for each run
};
std::vector<Row> rows_of(const Report& report);

/// "1-02:03:04", "12.5 %", "1.25", "1234".
std::string shown(double value, Unit unit);
/// With its sign; "" when they are the same.
std::string shown_difference(double from, double to, Unit unit);
/// "1-02:03:04", "00:00:10".
std::string shown_seconds(double seconds);

}  // namespace berth::simulate
