// The openb traces (cluster-trace-gpu-v2023): nodes and requests as CSV, columns found by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "place/bin.h"

namespace berth::openb {

/// The machines and the requests of one experiment. A GPU model is a bit in both.
struct Workload {
  std::vector<place::Bin> nodes;         // all free
  std::vector<cluster::Demand> demands;  // in the order of the file
  std::uint64_t gpu_milli = 0;           // of all nodes
};

/// `nodes_name` and `pods_name` are for messages ("nodes.csv:7: gpu: …").
Result<Workload> read_workload(std::string_view nodes_csv, std::string_view pods_csv,
                               const std::string& nodes_name = "nodes",
                               const std::string& pods_name = "pods");

}  // namespace berth::openb
