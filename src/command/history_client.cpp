#include "command/history_client.h"

#include "command/controller_client.h"

namespace berth::command {
namespace {

Result<wire::HistoryReply> next_reply(net::Client& client) {
  const Result<wire::Frame> frame = client.receive(std::chrono::seconds(100));
  if (!frame) return pass(lost_controller());
  std::optional<wire::HistoryReply> reply;
  if (frame->kind == wire::Kind::HistoryReply) {
    reply = wire::decode<wire::HistoryReply>(frame->payload);
  }
  if (!reply) return fail(Code::protocol, "Unexpected message received");
  return *std::move(reply);
}

}  // namespace

Result<void> each_history(const wire::ListHistory& ask, const request::Environment& environment,
                          std::string_view program,
                          const std::function<Result<void>(const wire::HistoryReply&)>& take) {
  Result<net::Client> client = reach_controller(environment, program);
  if (!client) return pass(std::move(client.error()));
  Result<wire::HistoryReply> reply = ask_client<wire::HistoryReply>(*client, ask);
  for (;;) {
    if (!reply) return pass(std::move(reply.error()));
    if (Result<void> taken = take(*reply); !taken) return taken;
    if (!reply->more()) return {};
    reply = next_reply(*client);
  }
}

}  // namespace berth::command
