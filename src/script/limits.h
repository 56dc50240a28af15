// What reading one script may cost, counted down; shared by all who do the work.
#pragma once

#include <cstddef>

#include "script/script.h"

namespace berth::script {

class Limits {
 public:
  /// False, from then on always, when the account is empty.
  bool spend_expansion(std::size_t bytes) { return spend(expansion_, bytes); }
  bool spend_work(std::size_t units) { return spend(work_, units); }
  bool spend_command() { return spend(commands_, 1); }
  void stop() { exceeded_ = true; }
  [[nodiscard]] bool exceeded() const { return exceeded_; }

 private:
  bool spend(std::size_t& account, std::size_t amount) {
    if (amount > account) exceeded_ = true;
    account -= exceeded_ ? 0 : amount;
    return !exceeded_;
  }

  std::size_t expansion_ = kMaxExpansion;
  std::size_t work_ = std::size_t{64} << 20;  // about a byte looked at: well under a second
  std::size_t commands_ = kMaxCommands;
  bool exceeded_ = false;
};

}  // namespace berth::script
