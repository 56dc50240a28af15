#include "simulate/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace berth::simulate {
namespace {

constexpr double kWidth = 640, kHeight = 240;
constexpr double kLeft = 58, kRight = 14, kTop = 10, kBottom = 40;

std::string duration_mark(double seconds) {
  const auto whole = [](double value, const char* unit) {
    return fmt::format("{:.4g} {}", value, unit);
  };
  if (seconds == 0) return "0";
  if (seconds < 60) return whole(seconds, "s");
  if (seconds < 3600) return whole(seconds / 60, "min");
  if (seconds < 86400) return whole(seconds / 3600, "h");
  return whole(seconds / 86400, "d");
}

std::string mark(double value, Axis axis) {
  switch (axis) {
    case Axis::seconds:
    case Axis::log_seconds:
      return duration_mark(value);
    case Axis::percent:
      return fmt::format("{:.4g} %", value * 100);
    case Axis::count:
      return value >= 1e6   ? fmt::format("{:.3g}M", value / 1e6)
             : value >= 1e4 ? fmt::format("{:.3g}k", value / 1e3)
                            : fmt::format("{:.4g}", value);
  }
  return {};
}

/// Round numbers from 0 to at least `top`, about five of them.
std::vector<double> marks_to(double top, Axis axis) {
  double step = 0;
  if (axis == Axis::seconds) {
    constexpr auto kSteps = std::to_array<double>(
        {1,    2,     5,     10,    30,    60,     120,    300,    600,     1800,    3600,
         7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000});
    step = kSteps.back();
    for (const double candidate : kSteps) {
      if (top / candidate <= 7) {
        step = candidate;
        break;
      }
    }
    while (top / step > 7) step *= 2;
  } else {
    const double raw = top / 5;
    const double ten = std::pow(10, std::floor(std::log10(std::max(raw, 1e-9))));
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      step = ten * factor;
      if (raw <= step * 1.0001) break;
    }
  }
  std::vector<double> out;
  for (int i = 0; i <= 12; ++i) {
    out.push_back(step * i);
    if (axis != Axis::seconds && out.back() >= top * 0.9999) break;
    if (axis == Axis::seconds && out.back() + step > top) break;
  }
  return out;
}

class Scale {
 public:
  Scale(double top, bool logarithmic) : top_(std::max(top, 1e-9)), log_(logarithmic) {}
  [[nodiscard]] double part(double value) const {
    if (!log_) return std::clamp(value / top_, 0.0, 1.0);
    return std::clamp(std::log10(1 + value) / std::log10(1 + top_), 0.0, 1.0);
  }

 private:
  double top_;
  bool log_;
};

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string render_plot(const Plot& plot) {
  double right = 0;
  double top = plot.y == Axis::percent ? 0.01 : 1;
  for (const Line& line : plot.lines) {
    for (const auto& [x, y] : line.points) {
      right = std::max(right, x);
      top = std::max(top, y);
    }
  }
  std::vector<double> y_marks = marks_to(top, plot.y);
  top = y_marks.back();
  const Scale xs(right, plot.x == Axis::log_seconds);
  const Scale ys(top, false);
  const auto px = [&](double x) { return kLeft + xs.part(x) * (kWidth - kLeft - kRight); };
  const auto py = [&](double y) {
    return kHeight - kBottom - ys.part(y) * (kHeight - kTop - kBottom);
  };

  std::string out = fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">",
      escaped(plot.title), kWidth, kHeight, escaped(plot.title));
  for (const double y : y_marks) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text "
        "class=\"mark\" text-anchor=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
        kLeft, kWidth - kRight, py(y), py(y), kLeft - 6, py(y) + 4, mark(y, plot.y));
  }
  std::vector<double> x_marks = marks_to(std::max(right, 1.0), Axis::seconds);
  if (plot.x == Axis::log_seconds) {
    x_marks.clear();
    for (const double x :
         {0.0, 1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0, 604800.0, 6048000.0}) {
      if (x <= right) x_marks.push_back(x);
    }
  }
  for (const double x : x_marks) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/><text "
        "class=\"mark\" text-anchor=\"middle\" x=\"{0:.1f}\" y=\"{3:.1f}\">{4}</text>",
        px(x), kTop, kHeight - kBottom, kHeight - kBottom + 15, duration_mark(x));
  }
  out += fmt::format(
      "<text class=\"axis\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>"
      "<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(12 {:.1f}) "
      "rotate(-90)\">{}</text>",
      (kLeft + kWidth - kRight) / 2, kHeight - 6, escaped(plot.x_label),
      (kTop + kHeight - kBottom) / 2, escaped(plot.y_label));
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    std::string path;
    double last = 0;
    for (const auto& [x, y] : plot.lines[i].points) {
      if (!path.empty() && plot.steps) path += fmt::format("L{:.1f} {:.1f}", px(x), last);
      last = py(y);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", px(x), last);
    }
    out += fmt::format("<path class=\"line{}\" d=\"{}\"/>", i % 2, path);
  }
  out += "</svg>";
  if (plot.lines.size() > 1) {
    out += "<div class=\"key\">";
    for (std::size_t i = 0; i < plot.lines.size(); ++i) {
      out += fmt::format("<span><i class=\"key{}\"></i>{}</span>", i % 2,
                         escaped(plot.lines[i].label));
    }
    out += "</div>";
  }
  return out + "</figure>\n";
}

}  // namespace berth::simulate
