// The grammar of generic resources and TRES: "gpu:a100:2", "gres/gpu=2", "cpu:4", "a100:4".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::text {

inline constexpr std::uint64_t kMaxTresCount = std::uint64_t{1} << 52;
inline constexpr std::size_t kMaxTresItems = 1024;

/// MiB of the memory of GPUs, what --gpu-mem asks for (berth's own).
inline constexpr std::string_view kGpuMemory = "gpumem";

/// Resources that are parts of GPUs: shard, mps, gpumem. A GPU is given out whole, or by one of
/// them.
bool is_part_of_gpu(std::string_view gres);

struct TresItem {
  std::string kind;  // "gres", "cpu", "license", … ("gres" for --gres items)
  std::string name;  // "gpu"; "" for cpu, mem, …
  std::string type;  // "a100"; "" = any
  std::uint64_t count = 0;
  bool negative = false;    // "gpu:-1": grammatical for Slurm, can never be met
  bool no_consume = false;  // slurm.conf Gres=name:no_consume:count
  friend bool operator==(const TresItem&, const TresItem&) = default;
};

/// --gres: name[[:type]:count],… with optional "gres/" prefix and "=". "none" gives an empty list
/// and sets `none`. Error: Code::invalid_tres ("Invalid Trackable RESource (TRES) specification").
Result<std::vector<TresItem>> parse_gres(std::string_view s, bool& none);

/// --gpus, --gpus-per-*: [type:]count,… → items named gpu.
Result<std::vector<TresItem>> parse_gpus(std::string_view s);

/// --tres-per-task: kind[/name[:model]](=|:)n,…
Result<std::vector<TresItem>> parse_tres_per_task(std::string_view s);

/// slurm.conf Gres=: name[:type][:no_consume]:count with K…P suffixes.
Result<std::vector<TresItem>> parse_node_gres(std::string_view s);

}  // namespace berth::text
