// What tasks use: their processes found and added up, when somebody asks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "step/process_use.h"
#include "wire/basic.pb.h"

namespace berth::step {

struct TaskUse {
  std::uint64_t cpu = 0;  // microseconds
  std::uint64_t pages = 0;
  std::uint64_t memory = 0;       // all of its processes now
  std::uint64_t memory_most = 0;  // the same, or what one of them had
  std::uint64_t address_space = 0;
  std::uint64_t address_space_most = 0;
  bool bytes_known = false;
  ProcessBytes bytes{};
  std::uint64_t khz = 0;  // weighted by the time of its processes; 0 = not known
};

/// The living processes below each of them, itself first. `leaders` that are gone have none.
std::vector<std::vector<pid_t>> families(std::span<const pid_t> leaders);

/// What processes use together.
TaskUse use_of_all(std::span<const pid_t> processes, const KernelUnits& units, CpuClocks& clocks);

/// One task more. `runs`: what only a living one has is known, too.
void note_task(wire::StepFigures& figures, std::uint32_t rank, const TaskUse& use, bool runs);

/// A variable that a process was started with; "" = none, or it may not be seen.
std::string started_with(pid_t pid, std::string_view variable);

}  // namespace berth::step
