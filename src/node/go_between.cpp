#include "node/go_between.h"

#include "wire/frame.h"
#include "wire/refusal.h"

namespace berth::node {
namespace {

constexpr std::chrono::seconds kDialPatience{5};

void answer_no(net::Connection& client, const Error& error) {
  wire::Done done;
  *done.mutable_refusal() = wire::to_refusal(error);
  client.send(done);
  client.close();
}

/// A client and the controller that it talks to. Frames of one go to the other, no faster than that
/// takes them; what is kept of them meanwhile is held by the client's user, and has its deadlines.
struct Pair : std::enable_shared_from_this<Pair> {
  std::shared_ptr<net::Connection> client;
  std::shared_ptr<net::Connection> controller;
  std::shared_ptr<net::Visit> visit;

  void pass(net::Connection& to, net::Connection& from, const wire::Frame& frame) {
    std::string bytes;
    wire::append_payload(bytes, frame.kind, frame.payload);
    to.send_bytes(std::move(bytes));
    if (to.congested()) from.pause();
    count();
  }
  void count() {
    if (!client || !visit) return;
    visit->queued(*client, client->backlog() + controller->backlog() + begun_);
    if (client->backlog() > 0) client->tell_drained();
    if (controller->backlog() > 0) controller->tell_drained();
  }
  /// The other side of `from` has taken all.
  void drained(net::Connection& from) {
    // Another connection of the same user may hold too much.
    const bool stopped = &from == client.get() && visit && visit->stopped();
    if (from.paused() && !stopped) from.resume();
    if (client && visit && &from == controller.get()) visit->answering(0);
    count();
  }
  void answer(net::Connection& from, const wire::Frame& frame) {
    pass(*client, from, frame);
    // The time to take it begins anew with each frame.
    if (client && visit) visit->answering(client->backlog());
  }
  void answer_begun(std::size_t held) {
    begun_ = held;
    count();
  }
  void end() {
    const auto self = shared_from_this();  // the handlers go with the connections
    for (auto* one : {&client, &controller}) {
      if (const auto connection = std::exchange(*one, nullptr)) connection->close();
    }
    visit.reset();
  }

 private:
  std::size_t begun_ = 0;  // of the answer that comes
};

}  // namespace

void GoBetween::serve(net::Door& door, const std::shared_ptr<net::Connection>& client, uid_t uid,
                      gid_t gid, std::string program) {
  const net::Address where = controller_.where();
  const auto pair = std::make_shared<Pair>();
  auto visit = door.enter(client, {.uid = uid, .free = uid == 0},
                          [weak = std::weak_ptr(pair)](const std::string&) {
                            if (const auto evicted = weak.lock()) evicted->end();
                          });
  if (!visit) return;
  if (where.is_unix()) {
    return answer_no(*client, fail(Code::no_connection,
                                   "the controller is on this machine: its own "
                                   "socket says who calls")
                                  .error());
  }
  pair->client = client;
  pair->visit = std::move(visit);
  net::Connection::dial(
      loop_, where, kDialPatience,
      [this, pair, uid, gid,
       program = std::move(program)](Result<std::shared_ptr<net::Connection>> dialled) {
        if (!pair->client) {  // it was evicted meanwhile
          if (dialled) (*dialled)->abort();
          return;
        }
        auto session = dialled ? controller_.session() : pass(dialled.error());
        if (!session) {
          if (dialled) (*dialled)->abort();
          answer_no(*pair->client, session.error());
          return pair->end();
        }
        pair->controller = *dialled;
        net::Connection& controller = *pair->controller;
        controller.secure(std::move(*session));
        controller.limit_frames(wire::kMostBytes);
        wire::Hello hello;
        hello.set_protocol(wire::kProtocol);
        hello.set_program(program);
        hello.set_vouched_uid(uid);
        hello.set_vouched_gid(gid);
        controller.send(hello);
        const auto ended = [pair](net::Connection&, std::string_view) { pair->end(); };
        controller.start({.on_frame =
                              [pair](net::Connection& from, const wire::Frame& frame) {
                                if (pair->client) pair->answer(from, frame);
                              },
                          .on_closed = ended,
                          .on_drained =
                              [pair](net::Connection&) {
                                if (pair->client) pair->drained(*pair->client);
                              },
                          .on_partial = [pair](net::Connection&, std::size_t held,
                                               std::size_t) { pair->answer_begun(held); }});
        if (!pair->client) return;
        pair->client->limit_frames(wire::kUserBytes);
        pair->client->start(
            {.on_frame =
                 [pair](net::Connection& from, const wire::Frame& frame) {
                   if (pair->controller) pair->pass(*pair->controller, from, frame);
                 },
             .on_closed = ended,
             .on_drained =
                 [pair](net::Connection&) {
                   if (pair->controller) pair->drained(*pair->controller);
                 },
             .on_partial =
                 [pair](net::Connection& from, std::size_t held, std::size_t frame_bytes) {
                   if (pair->visit) pair->visit->partial(from, held, frame_bytes);
                 }});
      });
}

}  // namespace berth::node
