// Which GPUs of a node are not to be given out, and why. Rules only: rounds, Xids and times in,
// words out.
//
//   sign                              it is well again when
//   it does not answer                it answers
//   it was missing from the start     it has been found (the agent looks again)
//   uncorrected ECC errors            their count is 0 (the GPU was reset)
//   rows of memory to be remapped     none is left; or none can be remapped any more: never
//   an Xid that speaks against it     it has answered, without another one, for the probation
//   processes after a job             they are gone
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bits.h"
#include "node/gpu_meter.h"
#include "node/gpu_watch.h"

namespace berth::node {

class GpuHealth {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  /// GPUs that are out, as jobs count them, and why.
  using Out = std::map<std::uint32_t, std::string>;
  /// A process on a GPU, as the machine knows it.
  struct Holder {
    bool lives = false;   // false: it is gone, or not to be seen from here
    bool shared = false;  // it serves all jobs and stays (MPS)
    std::string command;  // "" = not known
    std::string user;
  };
  using Look = std::function<Holder(std::uint32_t pid)>;

  GpuHealth(std::vector<MeteredGpu> gpus, std::chrono::milliseconds probation, Look look)
      : probation_(probation), look_(std::move(look)) {
    for (MeteredGpu& gpu : gpus) gpus_.push_back({std::move(gpu), {}, {}, {}, {}, {}, {}, {}});
  }
  /// The same GPUs, of which one that was missing has been found.
  void found(std::vector<MeteredGpu> gpus);

  /// `clock`: the time of day, "12:03:59".
  void xid(const survey::Xid& xid, Moment now, const std::string& clock);
  /// `held`: GPUs that jobs have at this moment.
  void round(const GpuRound& round, const Bits& held, Moment now);
  /// The last job on these GPUs has ended and everything of it is gone: who is on one of them now
  /// was not part of it.
  void freed(const Bits& gpus);
  /// Somebody knows that the GPU is well again after an Xid. What it tells of itself stays.
  void end_probation(std::uint32_t gpu);

  [[nodiscard]] Out out() const;
  /// It is out for an Xid and tells nothing bad; it may have a holder, too.
  [[nodiscard]] bool on_probation(std::uint32_t gpu) const;
  /// Who is on it that no job knows, in words; "" = nobody.
  [[nodiscard]] std::string holder_on(std::uint32_t gpu) const;

 private:
  struct Gpu {
    MeteredGpu is;
    std::string sign;                  // what it tells of itself; "" = nothing bad
    std::string xid;                   // the last one that speaks against it, in words
    std::optional<Moment> well_since;  // after that
    std::optional<std::set<std::uint32_t>> residents;  // on it before any job: they stay
    std::map<std::uint32_t, std::optional<std::uint64_t>> processes;  // pid → MiB, last round
    std::map<std::uint32_t, int> foreign_rounds;   // pid → how often it was seen on the free GPU
    std::pair<std::uint32_t, std::string> holder;  // pid, words; "" = nobody
  };
  void see(Gpu& gpu, const GpuRound& round, bool held, Moment now) const;
  void name_holder(Gpu& gpu, std::uint32_t pid, std::optional<std::uint64_t> memory_mb) const;
  [[nodiscard]] std::string sign_of(const Gpu& gpu, const GpuRound& round) const;

  std::vector<Gpu> gpus_;
  std::chrono::milliseconds probation_;
  Look look_;
};

}  // namespace berth::node
