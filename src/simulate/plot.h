// Line plots as inline SVG.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::simulate {

struct Line {
  std::string label;
  std::vector<std::pair<double, double>> points;  // ascending x
};

enum class Axis { seconds, log_seconds, percent, count };

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  Axis x = Axis::seconds;
  Axis y = Axis::percent;
  bool steps = false;  // a value holds until the next one
  std::vector<Line> lines;
};

/// `<figure>` with the plot; colours are the page's classes line0, line1.
std::string render_plot(const Plot& plot);

/// Text that may stand between tags and in attributes.
std::string escaped(std::string_view text);

}  // namespace berth::simulate
