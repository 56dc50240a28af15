// What a job makes of its GPUs in one word, for columns of squeue and sacct. berth's own.
#pragma once

#include <span>
#include <string>

#include "command/show_text.h"
#include "wire/info.pb.h"

namespace berth::command {

using GpuUses = google::protobuf::RepeatedPtrField<wire::GpuUse>;

/// Per cent of the time it was busy.
double mean_busy(const wire::GpuUse& use);

/// "85%" over all of them; "N/A" where nothing was told.
void append_gpu_busy(std::string& out, const GpuUses& uses);
/// The most that one of them had in use.
void append_gpu_memory(std::string& out, const GpuUses& uses, bool convert);
/// How long all of them have been idle: "00:12:30".
void append_gpu_idle(std::string& out, const GpuUses& uses);
/// What all of them draw now: "1300W"; "N/A" where none tells it.
void append_gpu_power(std::string& out, const GpuUses& uses);
/// What all of them have taken, in joules: "317.52K"; "N/A" where none tells it.
void append_gpu_energy(std::string& out, const GpuUses& uses, bool convert);

}  // namespace berth::command
