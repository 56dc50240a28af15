// What the tasks of a step use, as sstat shows it while it runs and sacct afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/basic.pb.h"

namespace berth::command {

enum class Quantity { cpu, memory, address_space, pages, read, written, cpu_khz };
/// Of all tasks; the node and the task are those of the most and the least.
enum class Part { average, most, most_node, most_task, least, least_node, least_task, total };

struct UsageStyle {
  bool convert = true;  // --noconvert: bytes
  char unit = 0;        // --units: always this one
};

/// A step's figures and what they mean.
struct StepUsed {
  const wire::StepFigures& figures;
  std::string_view nodes;   // a host list; the figures of a step with one node do not name it
  bool tasks_known = true;  // false: only sums and the most are
};

/// "817", "1.50K", "64580K", "1G": a larger unit where halves of it are exact.
void append_bytes(std::string& out, std::uint64_t bytes, const UsageStyle& style);
/// "2.60G" of 2,600,000.
void append_khz(std::string& out, std::uint64_t khz, bool convert);

/// "817", "12.35K": joules, in thousands.
void append_joules(std::string& out, std::uint64_t joules, bool convert);
/// What the GPUs of a step have taken, in joules; 0 where none has told it.
std::uint64_t joules_of(const wire::StepFigures& figures);

/// Nothing where it was not measured.
void append_used(std::string& out, const StepUsed& step, Quantity what, Part part,
                 const UsageStyle& style);
/// "cpu=00:00:01,energy=0,fs/disk=817,gres/gpumem=30000M,gres/gpuutil=80,mem=1572K,…": what was
/// taken in, and of bytes those that were read.
void append_used_in(std::string& out, const StepUsed& step, Part part, const UsageStyle& style);
/// "energy=0,fs/disk=31": those that were written.
void append_used_out(std::string& out, const StepUsed& step, Part part, const UsageStyle& style);

}  // namespace berth::command
