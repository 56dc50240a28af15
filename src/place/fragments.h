// How much of a node's free GPUs will not be of use, given what jobs typically ask for. Two views,
// both in thousandths of GPUs:
//
//   to the next job   what the next job cannot use: all of it where the job does not fit, else the
//                     GPUs with too little left for it ("fragmentation", Weng et al., ATC 2023);
//   in the end        what stays free when the node is filled up with random typical jobs. This
//                     sees early that the CPUs will run out before the GPUs do.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/typical.h"
#include "place/bin.h"

namespace berth::place {

class Fragments {
 public:
  explicit Fragments(const std::vector<cluster::WeightedDemand>& typical);

  [[nodiscard]] double lost_to_next(const Bin& bin) const;
  [[nodiscard]] double lost_in_the_end(const Bin& bin) const;

 private:
  std::vector<cluster::WeightedDemand> wanting_;  // those that want GPUs; weights add up to 1
  std::vector<std::vector<Demand>> fills_;        // sequences drawn from them, always the same
  std::uint64_t least_cpu_ = 0;                   // no typical job that wants GPUs takes less
  std::uint64_t least_memory_ = 0;
  std::uint32_t least_gpu_ = 0;
};

}  // namespace berth::place
