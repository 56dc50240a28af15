// What relay.h promises.
#include "step/relay.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "launch/exchanges.h"
#include "launch/node_link.h"
#include "launch/tree.h"
#include "net/fds.h"
#include "step/identity.h"
#include "step/peer.h"
#include "wire/refusal.h"

namespace berth::step {
namespace {

using Clock = std::chrono::steady_clock;

/// Beyond this, for the client or for one node, the other side is not read from.
constexpr std::size_t kMostBacklog = std::size_t{1} << 20;
constexpr std::size_t kMostDialling = 64;
/// For agents that are just being started again, as srun has for its own.
constexpr std::chrono::seconds kRelayPatience{20};
constexpr std::chrono::milliseconds kRedialAfter{50};
constexpr std::chrono::milliseconds kBusyAgent{2};
/// How long a client may take to read the end of the output, and then to close.
constexpr std::chrono::seconds kLeavePatience{300};

class Relay {
 public:
  Relay(const wire::Relay& plan, Peer client)
      : up_(std::move(client)), exchanges_(static_cast<std::size_t>(plan.nodes_size()), false) {
    for (const wire::RelayNode& node : plan.nodes()) {
      nodes_.push_back(
          {.name = node.ticket().node(), .ranks = {node.ranks().begin(), node.ranks().end()}});
    }
    for (launch::Branch& branch : launch::relay_branches(plan)) {
      branches_.push_back(
          {.link = launch::NodeLink(branch), .nodes = branch.nodes, .left = branch.nodes.count});
    }
    left_ = nodes_.size();
  }

  void run() {
    take_client();  // what came with the order
    while (up_.open()) {
      dial_some();
      poll_once();
      if (left_ > 0 || up_.backlog() > 0) continue;
      // The other side reads to the end before it closes; a close now could lose data on TCP.
      if (!leave_at_) {
        leave_at_ = Clock::now() + kLeavePatience;
        ::shutdown(up_.fd(), SHUT_WR);
      }
      if (Clock::now() >= *leave_at_) return;
    }
  }

 private:
  struct Node {
    std::string name;
    std::vector<std::uint32_t> ranks;
    bool over = false;
  };
  struct Branch {
    launch::NodeLink link;
    launch::Share nodes;
    std::size_t left;
    bool begun = false;  // it answered: it cannot be dialled again
    [[nodiscard]] bool over() const { return left == 0; }
    [[nodiscard]] bool single() const { return nodes.count == 1; }
  };

  void dial_some() {
    if (redial_at_ && Clock::now() < *redial_at_) return;
    redial_at_.reset();
    auto busy = static_cast<std::size_t>(std::ranges::count_if(
        branches_, [](const Branch& branch) { return branch.link.connecting(); }));
    for (Branch& branch : branches_) {
      if (branch.over() || branch.link.dialled() || busy >= kMostDialling) continue;
      if (auto begun = branch.link.dial(); !begun) {
        lost(branch, begun.error());
      } else if (!branch.link.dialled()) {
        redial_at_ = Clock::now() + kBusyAgent;
        return;
      } else if (branch.link.connecting()) {
        ++busy;
      }
    }
  }

  [[nodiscard]] int timeout() const {
    std::optional<Clock::time_point> when = redial_at_;
    if (leave_at_) when = leave_at_;
    if (!when) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*when - Clock::now()).count();
    return static_cast<int>(std::clamp<long>(left, 0, 60'000));
  }

  void poll_once() {
    const bool slow_client = up_.backlog() > kMostBacklog;
    const bool slow_node = std::ranges::any_of(
        branches_, [](const Branch& branch) { return branch.link.backlog() > kMostBacklog; });
    std::vector<pollfd> polled;
    polled.reserve(branches_.size() + 1);
    // A client that is gone is noticed although nothing is read from it.
    polled.push_back({up_.fd(),
                      static_cast<short>((slow_node ? POLLRDHUP : POLLIN | POLLRDHUP) |
                                         (up_.wants_write() ? POLLOUT : 0)),
                      0});
    bool waiting = false;
    for (Branch& branch : branches_) {
      short events = branch.link.events();
      if (slow_client) events = static_cast<short>(events & ~POLLIN);
      polled.push_back({branch.link.fd(), events, 0});
      waiting = waiting || (!slow_client && branch.link.has_frame());
    }
    ::poll(polled.data(), polled.size(), waiting ? 0 : timeout());
    for (std::size_t i = 0; i < branches_.size(); ++i) {
      Branch& branch = branches_[i];
      const short ready = polled[i + 1].revents;
      if (branch.over() || polled[i + 1].fd < 0) continue;
      if (auto done = branch.link.ready(ready); !done) {
        lost(branch, done.error());
        continue;
      }
      if (!slow_client && !branch.over() &&
          ((ready & (POLLIN | POLLHUP | POLLERR)) != 0 || branch.link.has_frame())) {
        take_branch(branch);
      }
    }
    const short from_client = polled.front().revents;
    if (slow_node && (from_client & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return up_.close();
    if ((from_client & ~POLLOUT) != 0) {
      if (!up_.read()) return up_.close();
      take_client();
    }
    if (up_.open() && !up_.flush()) up_.close();
  }

  /// From the client, for the nodes.
  void take_client() {
    while (const auto frame = up_.next()) {
      switch (frame->kind) {
        case wire::Kind::Input: {
          const auto input = wire::decode<wire::Input>(frame->payload);
          if (!input) return up_.close();
          pass_down(*frame, input->has_rank() ? std::optional(input->rank()) : std::nullopt);
          break;
        }
        case wire::Kind::Errand: {
          const auto errand = wire::decode<wire::Errand>(frame->payload);
          if (!errand) return up_.close();
          pass_to_node(*frame, *errand);
          break;
        }
        case wire::Kind::SignalTasks:
        case wire::Kind::WindowSize:
        case wire::Kind::Exchange:
        case wire::Kind::StepLayout:
          pass_down(*frame, std::nullopt);
          break;
        case wire::Kind::GiveUpStarting:
          give_up_starting(*frame);
          break;
        default:
          return up_.close();
      }
    }
  }

  void pass_down(const wire::Frame& frame, std::optional<std::uint32_t> rank) {
    std::string bytes;
    wire::append_payload(bytes, frame.kind, frame.payload);
    for (Branch& branch : branches_) {
      if (branch.over() || (rank && !has_rank(branch, *rank))) continue;
      if (frame.kind == wire::Kind::Input || frame.kind == wire::Kind::StepLayout) {
        branch.link.send_kept(bytes);  // its tasks get all of it, however late they are
      } else if (branch.begun) {
        branch.link.send_bytes(bytes);
      }
      flush(branch);
    }
  }

  void pass_to_node(const wire::Frame& frame, const wire::Errand& errand) {
    std::string bytes;
    wire::append_payload(bytes, frame.kind, frame.payload);
    for (Branch& branch : branches_) {
      if (branch.over() || !has_node(branch, errand.to())) continue;
      branch.link.send_kept(bytes);  // also to one that is late
      return flush(branch);
    }
    if (!errand.answer()) up_.send(launch::unanswered(errand));
  }

  [[nodiscard]] bool has_node(const Branch& branch, const std::string& name) const {
    for (std::size_t i = 0; i < branch.nodes.count; ++i) {
      const Node& node = nodes_[branch.nodes.first + i];
      if (node.name == name && !node.over) return true;
    }
    return false;
  }

  [[nodiscard]] bool has_rank(const Branch& branch, std::uint32_t rank) const {
    for (std::size_t i = 0; i < branch.nodes.count; ++i) {
      const auto& ranks = nodes_[branch.nodes.first + i].ranks;
      if (std::ranges::find(ranks, rank) != ranks.end()) return true;
    }
    return false;
  }

  void flush(Branch& branch) {
    if (auto sent = branch.link.ready(POLLOUT); !sent) lost(branch, sent.error());
  }

  void give_up_starting(const wire::Frame& frame) {
    giving_up_ = true;
    std::string bytes;
    wire::append_payload(bytes, frame.kind, frame.payload);
    for (Branch& branch : branches_) {
      if (branch.over()) continue;
      if (!branch.begun) {
        // The client does not wait for these any more; whoever starts there finds nobody.
        for (std::size_t i = 0; i < branch.nodes.count; ++i) over(branch, branch.nodes.first + i);
      } else if (!branch.single()) {
        branch.link.send_bytes(bytes);
        flush(branch);
      }
    }
  }

  /// From a branch, for the client.
  void take_branch(Branch& branch) {
    while (!branch.over() && up_.backlog() <= kMostBacklog) {
      auto frame = branch.link.next();
      if (!frame) return lost(branch, frame.error());
      if (!*frame) return;
      take_frame(branch, **frame);
    }
  }

  void take_frame(Branch& branch, const wire::Frame& frame) {
    std::string bytes;
    switch (frame.kind) {
      case wire::Kind::LaunchReply:
        return take_reply(branch, frame);
      case wire::Kind::Done:
        if (const auto done = wire::decode<wire::Done>(frame.payload);
            done && done->has_refusal()) {
          return lost(branch, wire::from_refusal(done->refusal()));
        }
        return;
      case wire::Kind::NodeDone:
        if (const auto done = wire::decode<wire::NodeDone>(frame.payload)) {
          wire::append_payload(bytes, frame.kind, frame.payload);
          up_.send_bytes(bytes);
          over(branch, done->node());
        }
        return;
      case wire::Kind::NodeLost:
        if (const auto gone = wire::decode<wire::NodeLost>(frame.payload)) {
          branch.begun = true;
          wire::append_payload(bytes, frame.kind, frame.payload);
          up_.send_bytes(bytes);
          over(branch, gone->node());
        }
        return;
      case wire::Kind::Exchange:
        if (auto part = wire::decode<wire::Exchange>(frame.payload)) {
          const auto whole = exchanges_.add(std::move(*part));
          if (!whole) return lost(branch, whole.error());
          if (*whole) up_.send(**whole);
        }
        return;
      case wire::Kind::AskLayout:
        if (!std::exchange(layout_asked_, true)) up_.send(wire::AskLayout());
        return;
      case wire::Kind::Errand:
      case wire::Kind::AbortStep:
      case wire::Kind::Output:
      case wire::Kind::TasksExited:
      case wire::Kind::SupervisorLine:
        wire::append_payload(bytes, frame.kind, frame.payload);
        up_.send_bytes(bytes);
        return;
      default:
        return lost(branch, net::Client::unexpected_frame(frame).error());
    }
  }

  void take_reply(Branch& branch, const wire::Frame& frame) {
    auto reply = wire::decode<wire::LaunchReply>(frame.payload);
    if (!reply) return lost(branch, net::Client::unexpected_frame(frame).error());
    // Of a relay that could not be made, or of a node that was dialled from here.
    if (reply->has_refusal() && reply->node().empty()) {
      return lost(branch, wire::from_refusal(reply->refusal()));
    }
    if (branch.single()) reply->set_node(nodes_[branch.nodes.first].name);
    if (!branch.begun) branch.link.answered();
    branch.begun = true;
    up_.send(*reply);
  }

  /// The branch cannot be reached, or not any more.
  void lost(Branch& branch, const Error& why) {
    if (!branch.begun && why.code == Code::no_connection && !giving_up_) {
      if (!patience_until_) patience_until_ = Clock::now() + kRelayPatience;
      if (Clock::now() < *patience_until_) {
        branch.link.again();
        redial_at_ = Clock::now() + kRedialAfter;
        return;
      }
    }
    for (std::size_t i = 0; i < branch.nodes.count; ++i) {
      const std::size_t at = branch.nodes.first + i;
      if (nodes_[at].over) continue;
      wire::NodeLost message;
      message.set_node(nodes_[at].name);
      *message.mutable_why() = wire::to_refusal(why);
      up_.send(message);
      over(branch, at);
    }
  }

  void over(Branch& branch, const std::string& name) {
    for (std::size_t i = 0; i < branch.nodes.count; ++i) {
      if (nodes_[branch.nodes.first + i].name == name) return over(branch, branch.nodes.first + i);
    }
  }
  void over(Branch& branch, std::size_t node) {
    if (std::exchange(nodes_[node].over, true)) return;
    --left_;
    if (--branch.left == 0) branch.link.close();
  }

  Peer up_;
  std::vector<Node> nodes_;
  std::vector<Branch> branches_;
  std::size_t left_ = 0;
  bool giving_up_ = false;
  bool layout_asked_ = false;
  launch::Exchanges exchanges_;
  std::optional<Clock::time_point> redial_at_;
  std::optional<Clock::time_point> patience_until_;
  std::optional<Clock::time_point> leave_at_;
};

}  // namespace

int run_relay(wire::SuperviseRelay order, Fd client) {
  for (const int number : {SIGPIPE, SIGHUP, SIGINT}) ::signal(number, SIG_IGN);
  const Identity who{.uid = order.uid(), .gid = order.gid(), .groups = {order.gid()}};
  if (::geteuid() == 0 && who.uid != 0 && !who.become()) return 1;
  net::raise_fd_limit();
  Relay(order.relay(), Peer::handed_on(std::move(client), order)).run();
  return 0;
}

}  // namespace berth::step
