// How soon the kernel kills a process when memory runs out: oom_score_adj, from -1000 (never) to
// 1000.
//
// Agents and supervisors are spared, so that a hog does not take its node along. What runs for
// users never is: a process that must not be killed holds its group at the limit for ever.
#pragma once

namespace berth::step {

inline constexpr int kNeverKilled = -1000;

/// Of this process; 0 when it is not known.
int oom_score();
/// False (errno): to go lower needs CAP_SYS_RESOURCE.
bool set_oom_score(int score);

/// What a process starts has the score of its maker. While this lives, it is no lower than
/// anybody's.
class StartsUnspared {
 public:
  StartsUnspared();
  ~StartsUnspared();
  /// This process was spared.
  [[nodiscard]] bool needed() const { return before_ < 0; }
  /// It is not spared any more, also when this has ended.
  void stay() { before_ = 0; }
  StartsUnspared(const StartsUnspared&) = delete;
  StartsUnspared& operator=(const StartsUnspared&) = delete;

 private:
  int before_;
};

}  // namespace berth::step
