// A line on the terminal that says how far a simulation is.
#pragma once

#include <chrono>
#include <string>

#include "simulate/world.h"

namespace berth::command {

class ProgressLine {
 public:
  /// Nothing is printed when standard error is not a terminal.
  explicit ProgressLine(std::string label);
  void show(const simulate::Progress& progress);
  /// Wipes the line.
  void clear();

 private:
  std::string label_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace berth::command
