// A framed connection in the supervisor's poll loop: a client or an agent. Descriptors that come
// with frames (SCM_RIGHTS) wait in order.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "base/fd.h"
#include "tls/channel.h"
#include "wire/frame.h"

namespace berth::step {

class Peer {
 public:
  explicit Peer(Fd fd, std::string unread = {});
  /// A client whose socket the agent handed on, as one of Supervise, SuperviseAttach,
  /// SuperviseRelay and SuperviseFile says.
  template <class Order>
  static Peer handed_on(Fd fd, const Order& order) {
    return handed_on(std::move(fd), order.unread(), order.unsent(), order.session_key());
  }

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
    if (!open()) return;
    if (channel_.plain()) {
      wire::append(out_, message);
    } else {
      channel_.put(wire::framed(message), out_);
    }
  }
  void send_bytes(std::string_view frames) {
    if (open()) channel_.put(frames, out_);
  }
  /// A larger frame is nonsense.
  void limit_frames(std::size_t bytes) { most_frame_ = bytes; }
  /// Sends what the kernel takes now; false when the other side is gone.
  bool flush();
  /// Nobody will read it.
  void drop_output() {
    out_.clear();
    sent_ = 0;
  }
  [[nodiscard]] bool wants_write() const { return sent_ < out_.size(); }
  /// The other side of a TLS session is proven; true on a unix socket.
  [[nodiscard]] bool proven() const { return channel_.established(); }
  [[nodiscard]] std::size_t backlog() const { return out_.size() - sent_ + channel_.kept(); }

 private:
  static Peer handed_on(Fd fd, const std::string& unread, const std::string& unsent,
                        const std::string& key);
  /// Bytes of the socket as frames; false when they are not of the other side.
  bool unseal(std::string_view raw);

  Fd fd_;
  tls::Channel channel_;
  std::size_t most_frame_ = wire::kMostBytes;
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
