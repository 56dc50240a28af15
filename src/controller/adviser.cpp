#include "controller/adviser.h"

#include "base/result.h"
#include "wire/frame.h"

namespace berth::controller {
namespace {

void add_lines(const std::vector<std::string>& lines, wire::SubmitReply& reply) {
  for (const std::string& text : lines) {
    wire::Line& line = *reply.add_lines();
    line.set_severity(static_cast<std::uint32_t>(Severity::bare));
    line.set_text(text);
  }
}

}  // namespace

void Adviser::start() {
  thread_ = std::thread([this] { work(); });
}

Adviser::~Adviser() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Adviser::add_known(const wire::Asked& asked, wire::SubmitReply& reply) {
  const auto lines = advice_.known(asked);
  if (!lines) return false;
  add_lines(*lines, reply);
  return true;
}

void Adviser::answer(Peer peer, std::shared_ptr<const wire::Asked> asked, wire::SubmitReply reply,
                     std::shared_ptr<const cluster::Cluster> cluster) {
  if (!thread_.joinable()) {
    return answer({peer, std::move(asked), std::move(reply), std::move(cluster)});
  }
  {
    const std::lock_guard lock(mutex_);
    items_.push_back({peer, std::move(asked), std::move(reply), std::move(cluster)});
  }
  changed_.notify_one();
}

void Adviser::work() {
  for (;;) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !items_.empty(); });
      if (stopping_) return;
      item = std::move(items_.front());
      items_.pop_front();
    }
    answer(std::move(item));
  }
}

void Adviser::answer(Item item) {
  add_lines(advice_.lines(*item.cluster, *item.asked), item.reply);
  messenger_.act({{.peer = item.peer, .bytes = wire::framed(item.reply), .answered = true}});
}

}  // namespace berth::controller
