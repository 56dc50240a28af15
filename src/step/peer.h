// A framed connection in the supervisor's poll loop: a client or an agent. Descriptors that come
// with frames (SCM_RIGHTS) wait in order.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "base/fd.h"
#include "wire/frame.h"

namespace berth::step {

class Peer {
 public:
  explicit Peer(Fd fd, std::string unread = {});

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool open() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }

  /// Reads what is there; false when the other side is gone.
  bool read();
  /// The next whole frame; its payload is valid until the next call. Closes on nonsense.
  std::optional<wire::Frame> next();
  /// The oldest descriptor that came and was not taken.
  Fd take_descriptor();

  template <class M>
  void send(const M& message) {
    if (open()) wire::append(out_, message);
  }
  void send_bytes(std::string_view bytes) {
    if (open()) out_.append(bytes);
  }
  /// Sends what the kernel takes now; false when the other side is gone.
  bool flush();
  /// Nobody will read it.
  void drop_output() {
    out_.clear();
    sent_ = 0;
  }
  [[nodiscard]] std::size_t backlog() const { return out_.size() - sent_; }

 private:
  Fd fd_;
  std::string in_;
  std::size_t taken_ = 0;
  std::string out_;
  std::size_t sent_ = 0;
  std::deque<Fd> descriptors_;
};

/// Sends a frame with a descriptor, for a Peer at the other end. Never waits: false when the socket
/// does not take all of it at once.
bool send_with_descriptor(int socket, std::string_view frame, int descriptor);

}  // namespace berth::step
