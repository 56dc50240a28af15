// The helper's connection to the step's supervisor: frames, one after the other.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/fd.h"
#include "wire/frame.h"

namespace berth::pmix {

class SupervisorLink {
 public:
  explicit SupervisorLink(Fd fd) : fd_(std::move(fd)) {}

  /// From any thread.
  template <class M>
  void send(const M& message) {
    send_bytes(wire::framed(message));
  }
  /// Waits for the next frame, which is valid until the next call; nullopt: the supervisor is gone.
  std::optional<wire::Frame> next();

 private:
  void send_bytes(std::string_view bytes);

  Fd fd_;
  std::mutex sending_;
  std::string in_;
  std::size_t taken_ = 0;
};

}  // namespace berth::pmix
