#include "place/bin.h"

#include <algorithm>
#include <numeric>

namespace berth::place {

std::uint32_t Bin::free_milli() const {
  return std::accumulate(gpus.begin(), gpus.end(), std::uint32_t{0});
}

std::uint32_t Bin::whole_gpus() const {
  std::uint32_t count = 0;
  for (std::size_t i = gpus.size(); i > 0 && gpus[i - 1] == kWholeGpu; --i) ++count;
  return count;
}

bool operator==(const Bin& a, const Bin& b) {
  return a.cpu_milli == b.cpu_milli && a.memory_mb == b.memory_mb && a.model == b.model &&
         a.shares_gpus == b.shares_gpus &&
         std::equal(a.gpus.begin(), a.gpus.end(), b.gpus.begin(), b.gpus.end());
}

bool fits(const Bin& bin, const Demand& demand) {
  if (bin.cpu_milli < demand.cpu_milli || bin.memory_mb < demand.memory_mb) return false;
  if (!demand.wants_gpu()) return true;
  if (!bin.model_fits(demand)) return false;
  if (demand.gpus > 0) {
    return bin.gpus.size() >= demand.gpus && bin.gpus[bin.gpus.size() - demand.gpus] == kWholeGpu;
  }
  return bin.shares_gpus && !bin.gpus.empty() &&
         bin.gpus[bin.gpus.size() - 1] >= demand.share_milli;
}

std::uint64_t copies(const Bin& bin, const Demand& demand) {
  if (!fits(bin, demand)) return 0;
  std::uint64_t most = ~std::uint64_t{0};
  if (demand.gpus > 0) {
    most = bin.whole_gpus() / demand.gpus;
  } else if (demand.share_milli > 0) {
    most = 0;
    for (std::uint16_t free : bin.gpus) most += free / demand.share_milli;
  }
  if (demand.cpu_milli > 0) most = std::min(most, bin.cpu_milli / demand.cpu_milli);
  if (demand.memory_mb > 0) most = std::min(most, bin.memory_mb / demand.memory_mb);
  return most;
}

void take(Bin& bin, const Demand& demand) {
  bin.cpu_milli -= demand.cpu_milli;
  bin.memory_mb -= demand.memory_mb;
  std::uint16_t* const first = bin.gpus.begin();
  std::uint16_t* const last = bin.gpus.end();
  if (demand.gpus > 0) {
    std::fill(last - demand.gpus, last, std::uint16_t{0});
    std::rotate(first, last - demand.gpus, last);
  } else if (demand.share_milli > 0) {
    std::uint16_t* const at = std::lower_bound(first, last, demand.share_milli);
    const auto left = static_cast<std::uint16_t>(*at - demand.share_milli);
    std::uint16_t* const to = std::lower_bound(first, at, left);
    std::move_backward(to, at, at + 1);
    *to = left;
  }
}

std::size_t BinHash::operator()(const Bin& bin) const {
  std::uint64_t hash = bin.shares_gpus ? 1 : 0;
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  mix(bin.cpu_milli);
  mix(bin.memory_mb);
  mix(bin.model);
  for (std::uint16_t free : bin.gpus) mix(free);
  return hash;
}

}  // namespace berth::place
