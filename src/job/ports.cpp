// What ports.h promises.
#include "job/ports.h"

#include <map>

namespace berth::job {

struct Ports::Book {
  /// By machine, and how many leases have it: components of one step adopt the same.
  std::map<std::string, std::map<std::uint32_t, int>> taken;
};

namespace {

template <class Book>
class Lease : public PortLease {
 public:
  Lease(std::shared_ptr<Book> book, std::string machine, std::uint32_t from, std::uint32_t many)
      : book_(std::move(book)), machine_(std::move(machine)) {
    first = from;
    count = many;
    for (std::uint32_t i = 0; i < many; ++i) ++book_->taken[machine_][from + i];
  }
  ~Lease() override {
    const auto at = book_->taken.find(machine_);
    if (at == book_->taken.end()) return;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto port = at->second.find(first + i);
      if (port != at->second.end() && --port->second == 0) at->second.erase(port);
    }
    if (at->second.empty()) book_->taken.erase(at);
  }

 private:
  std::shared_ptr<Book> book_;
  std::string machine_;
};

}  // namespace

Ports::Ports(PortRange range)
    : book_(std::make_shared<Book>()), range_(range), next_(range.first) {}

void Ports::use(PortRange range) {
  range_ = range;
  if (next_ < range.first || next_ > range.last) next_ = range.first;
}

std::shared_ptr<const PortLease> Ports::take(const std::string& machine, std::uint32_t count) {
  const std::uint32_t size = range_.last - range_.first + 1;
  if (count == 0 || count > size) return nullptr;
  const auto at = book_->taken.find(machine);
  const auto free_from = [&](std::uint32_t first) {
    if (at == book_->taken.end()) return true;
    const auto next = at->second.lower_bound(first);
    return next == at->second.end() || next->first >= first + count;
  };
  for (std::uint32_t tried = 0; tried < size; ++tried) {
    if (next_ + count - 1 > range_.last) next_ = range_.first;
    const std::uint32_t first = next_;
    if (!free_from(first)) {
      ++next_;
      continue;
    }
    next_ = first + count;
    return std::make_shared<Lease<Book>>(book_, machine, first, count);
  }
  return nullptr;
}

std::shared_ptr<const PortLease> Ports::adopt(const std::string& machine, std::uint32_t first,
                                              std::uint32_t count) {
  return std::make_shared<Lease<Book>>(book_, machine, first, count);
}

}  // namespace berth::job
