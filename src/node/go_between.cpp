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

/// Frames of one go to the other, no faster than that takes them.
net::Connection::Handlers passing_to(const std::shared_ptr<net::Connection>& other,
                                     std::shared_ptr<net::Visit> visit) {
  const std::weak_ptr<net::Connection> weak = other;
  return {.on_frame =
              [weak, visit](net::Connection& from, const wire::Frame& frame) {
                const auto to = weak.lock();
                if (!to) return;
                std::string bytes;
                wire::append_payload(bytes, frame.kind, frame.payload);
                to->send_bytes(std::move(bytes));
                if (to->congested()) from.pause();
              },
          .on_closed =
              [weak](net::Connection&, std::string_view) {
                if (const auto to = weak.lock()) to->close();
              },
          .on_drained =
              [weak](net::Connection&) {
                if (const auto to = weak.lock()) to->resume();
              }};
}

}  // namespace

void GoBetween::serve(std::shared_ptr<net::Connection> client, std::shared_ptr<net::Visit> visit,
                      uid_t uid, gid_t gid, std::string program) {
  const net::Address where = controller_.where();
  if (where.is_unix()) {
    return answer_no(*client, fail(Code::no_connection,
                                   "the controller is on this machine: its own "
                                   "socket says who calls")
                                  .error());
  }
  net::Connection::dial(loop_, where, kDialPatience,
                        [this, client, visit, uid, gid, program = std::move(program)](
                            Result<std::shared_ptr<net::Connection>> dialled) {
                          auto session = dialled ? controller_.session() : pass(dialled.error());
                          if (!session) return answer_no(*client, session.error());
                          const std::shared_ptr<net::Connection>& controller = *dialled;
                          controller->secure(std::move(*session));
                          controller->limit_frames(wire::kMostBytes);
                          wire::Hello hello;
                          hello.set_protocol(wire::kProtocol);
                          hello.set_program(program);
                          hello.set_vouched_uid(uid);
                          hello.set_vouched_gid(gid);
                          controller->send(hello);
                          controller->start(passing_to(client, visit));
                          client->limit_frames(wire::kUserBytes);
                          client->start(passing_to(controller, visit));
                        });
}

}  // namespace berth::node
