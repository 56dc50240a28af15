// Which cores of a node a job gets (placement-jobs.md §7).
#include <algorithm>
#include <vector>

#include "place/share.h"

namespace berth::place {
namespace {

/// The allowed cores of a node socket by socket; taking goes from the lowest core up.
class CoreTaker {
 public:
  CoreTaker(const cluster::Node& node, const Bits& allowed) : node_(node), left_(node.sockets) {
    for (std::uint32_t s = 0; s < node.sockets; ++s) left_[s] = allowed & node.socket_cores(s);
  }

  [[nodiscard]] std::uint32_t sockets() const { return node_.sockets; }
  [[nodiscard]] std::uint64_t left(std::uint32_t socket) const { return left_[socket].count(); }
  [[nodiscard]] const Bits& taken() const { return taken_; }

  std::uint64_t take(std::uint32_t socket, std::uint64_t cores) {
    std::uint64_t n = 0;
    for (; n < cores; ++n) {
      const std::size_t core = left_[socket].next();
      if (core == Bits::npos) break;
      left_[socket].reset(core);
      taken_.set(core);
    }
    return n;
  }

  /// One core from each socket in turn until `count` are taken, at most cap[s] from socket s.
  void in_turn(std::uint64_t count, const std::vector<std::uint64_t>& cap) {
    std::vector<std::uint64_t> used(sockets(), 0);
    for (bool gave = true; count > 0 && gave;) {
      gave = false;
      for (std::uint32_t s = 0; s < sockets() && count > 0; ++s) {
        if (used[s] >= cap[s] || take(s, 1) == 0) continue;
        ++used[s];
        --count;
        gave = true;
      }
    }
  }

 private:
  const cluster::Node& node_;
  std::vector<Bits> left_;
  Bits taken_;
};

constexpr std::uint64_t kNoCap = ~std::uint64_t{0};

/// Repeatedly the socket with the fewest free cores that suffices, else the one with most.
void take_block(CoreTaker& taker, std::uint64_t count) {
  while (count > 0) {
    std::uint32_t best = taker.sockets();
    for (std::uint32_t s = 0; s < taker.sockets(); ++s) {
      if (taker.left(s) == 0) continue;
      if (best == taker.sockets()) {
        best = s;
        continue;
      }
      const bool s_fits = taker.left(s) >= count;
      const bool best_fits = taker.left(best) >= count;
      const bool better = s_fits != best_fits ? s_fits
                          : s_fits            ? taker.left(s) < taker.left(best)
                                              : taker.left(s) > taker.left(best);
      if (better) best = s;
    }
    if (best == taker.sockets()) return;
    count -= taker.take(best, count);
  }
}

/// Whole tasks socket by socket, then what is left over in turn.
void take_by_task(CoreTaker& taker, const cluster::Node& node, const Ask& ask, std::uint64_t count,
                  std::uint64_t tasks) {
  const std::uint64_t threads = ask.usable_threads(node);
  const std::uint64_t c = ask.cpus_per_task;
  const bool cores_alone = ask.per_core_tasks == 1U && c > threads;  // no core is shared by tasks
  const std::uint64_t cores_per_task = (c + threads - 1) / threads;
  for (std::uint32_t s = 0; s < taker.sockets() && tasks > 0 && count > 0; ++s) {
    const std::uint64_t room =
        cores_alone ? taker.left(s) / cores_per_task : taker.left(s) * threads / c;
    const auto fit = static_cast<std::uint32_t>(std::min(tasks, room));
    const std::uint64_t cores = ask.cores_for(node, fit, fit * ask.cpus_per_task);
    count -= taker.take(s, std::min(count, cores));
    tasks -= fit;
  }
  taker.in_turn(count, std::vector<std::uint64_t>(taker.sockets(), kNoCap));
}

/// --ntasks-per-socket: sockets are capped, and those that are not necessary avoided from 0 on.
void take_per_socket(CoreTaker& taker, std::uint64_t count, std::uint64_t cap_cores) {
  std::vector<std::uint64_t> cap(taker.sockets());
  std::uint64_t room = 0;
  for (std::uint32_t s = 0; s < taker.sockets(); ++s) {
    cap[s] = std::min(taker.left(s), cap_cores);
    room += cap[s];
  }
  for (std::uint32_t s = 0; s < taker.sockets(); ++s) {
    if (room - cap[s] < count) continue;
    room -= cap[s];
    cap[s] = 0;
  }
  taker.in_turn(count, cap);
}

}  // namespace

Bits choose_cores(const cluster::Node& node, const Ask& ask, const Bits& allowed,
                  std::uint32_t count, std::uint32_t tasks) {
  CoreTaker taker(node, allowed);
  const std::uint64_t threads = ask.usable_threads(node);
  if (ask.block_cores) {
    take_block(taker, count);
  } else if (ask.per_socket_tasks) {
    const std::uint64_t cpus = std::uint64_t{*ask.per_socket_tasks} * ask.cpus_per_task;
    take_per_socket(taker, count, (cpus + threads - 1) / threads);
  } else if (ask.cpus_per_task > 1) {
    take_by_task(taker, node, ask, count, tasks);
  } else {
    taker.in_turn(count, std::vector<std::uint64_t>(node.sockets, kNoCap));
  }
  return taker.taken();
}

}  // namespace berth::place
