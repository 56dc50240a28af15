// Ports that steps have for themselves on the node of their rank 0, where the others meet it. A
// port comes back when its step is gone, and is not given out again soon: connections may still be
// closing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace berth::job {

/// Some ports in a row, until it is gone.
class PortLease {
 public:
  PortLease() = default;
  PortLease(const PortLease&) = delete;
  PortLease& operator=(const PortLease&) = delete;
  virtual ~PortLease() = default;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct PortRange {
  std::uint32_t first = 20000;  // below those that the kernel gives to who asks for none
  std::uint32_t last = 29999;
};

class Ports {
 public:
  explicit Ports(PortRange range = {});
  /// The range has changed; what was given out stays so.
  void use(PortRange range);
  /// On this machine; nullptr when all are in use.
  std::shared_ptr<const PortLease> take(const std::string& machine, std::uint32_t count);
  /// A step that was there before this controller.
  std::shared_ptr<const PortLease> adopt(const std::string& machine, std::uint32_t first,
                                         std::uint32_t count);

 private:
  struct Book;
  std::shared_ptr<Book> book_;
  PortRange range_;
  std::uint32_t next_ = 0;
};

}  // namespace berth::job
