// What oom_score.h promises.
#include "step/oom_score.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "base/fd.h"
#include "base/process.h"

namespace berth::step {
namespace {

constexpr const char* kFile = "/proc/self/oom_score_adj";

}  // namespace

int oom_score() {
  const Fd file(::open(kFile, O_RDONLY | O_CLOEXEC));
  std::array<char, 16> text{};
  if (!file || ::read(file.get(), text.data(), text.size() - 1) <= 0) return 0;
  return std::atoi(text.data());
}

bool set_oom_score(int score) {
  const Fd file(::open(kFile, O_WRONLY | O_CLOEXEC));
  return file && write_all(file.get(), std::to_string(score));
}

StartsUnspared::StartsUnspared() : before_(oom_score()) {
  if (before_ < 0) set_oom_score(0);
}

StartsUnspared::~StartsUnspared() {
  if (before_ < 0) set_oom_score(before_);
}

}  // namespace berth::step
