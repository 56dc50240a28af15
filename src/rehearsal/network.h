// A network in memory: connections that deliver frames in order, after a while. A path between two
// hosts may be cut, in one direction or in both: what is under way then waits, as TCP would repeat
// it, and comes when the path is whole again. Nobody learns of a cut but by silence.
//
// A process that ends closes its connections; a machine that loses its power says nothing, and
// answers what is sent to it only when it is up again.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rehearsal/agenda.h"
#include "rehearsal/random.h"

namespace berth::rehearsal {

using Host = std::uint32_t;

class Network;

/// One end of a connection. Handlers are called by the agenda, never from within a call.
class Socket : public std::enable_shared_from_this<Socket> {
 public:
  struct Handlers {
    std::function<void(std::string_view frame)> frame = {};
    std::function<void()> closed = {};
  };
  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] std::uint32_t uid() const { return uid_; }
  [[nodiscard]] Host other_host() const;
  void start(Handlers handlers) { handlers_ = std::move(handlers); }
  void send(std::string frame);
  /// What was sent before still arrives. No handler is called any more.
  void close();
  /// The machine loses its power.
  void vanish();

 private:
  friend class Network;
  struct Item {
    Moment due;
    std::string frame;
    bool end = false;
  };
  void receive(Item item);
  void push(Item item);
  void pump();

  Network* network_ = nullptr;
  Host host_ = 0;
  std::uint32_t uid_ = 0;  // of whoever dialled
  std::weak_ptr<Socket> other_;
  Host other_host_ = 0;
  Handlers handlers_;
  bool open_ = true;
  bool vanished_ = false;
  bool pumping_ = false;        // an event is written down for the first item
  std::deque<Item> under_way_;  // from here to the other end
  Moment last_due_{};
  Moment usual_{};  // of this connection
};

class Network {
 public:
  using Accept = std::function<void(std::shared_ptr<Socket>)>;
  /// null: it cannot be reached.
  using Dialled = std::move_only_function<void(std::shared_ptr<Socket>)>;

  Network(Agenda& agenda, Random& random) : agenda_(agenda), random_(random) {}
  /// Who listens to a connection often keeps it: that ends here.
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  void listen(Host host, Accept accept) { listeners_[host] = std::move(accept); }
  void stop_listening(Host host) { listeners_.erase(host); }
  void dial(Host from, Host to, std::uint32_t uid, Dialled done);

  void cut(Host from, Host to) { cuts_.insert({from, to}); }
  void heal(Host from, Host to);
  void heal_all();
  [[nodiscard]] bool is_cut(Host from, Host to) const { return cuts_.contains({from, to}); }
  /// A machine without power neither sends nor receives.
  void set_power(Host host, bool on);

 private:
  friend class Socket;
  [[nodiscard]] bool passes(Host from, Host to) const {
    return !cuts_.contains({from, to}) && !dark_.contains(from) && !dark_.contains(to);
  }
  void wake_stalled();
  [[nodiscard]] Moment delay(Moment usual);

  Agenda& agenda_;
  Random& random_;
  std::map<Host, Accept> listeners_;
  std::set<std::pair<Host, Host>> cuts_;
  std::set<Host> dark_;
  std::vector<std::weak_ptr<Socket>> all_;
  std::vector<std::shared_ptr<Socket>> stalled_;  // wait for a path
};

}  // namespace berth::rehearsal
