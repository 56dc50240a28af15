// The connection of a client to a node: the agent reads one request, then hands the socket to the
// process that serves it (a supervisor, a relay, a receiver of a file), which the agent cannot give
// its TLS session. So there are two sessions on one TCP connection:
//
//   1. client ↔ agent       keyed by what the controller made for this ticket; one request, then
//                           both end it
//   2. client ↔ supervisor  keyed by binding() of the first, which the agent gives the supervisor
//                           with the socket
//
// The client need not wait between them: its second session begins right behind its end of the
// first.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "tls/context.h"
#include "tls/stream.h"

namespace berth::tls {

/// What names and keys the first session: from the controller, with a ticket.
struct Session {
  std::string name;
  std::string key;
};

/// The name of every second session's key.
inline constexpr std::string_view kHandedOver = "handed over";
/// The purpose of binding() that gives the second session's key.
inline constexpr std::string_view kHandoverPurpose = "berth handover";

/// The client's side. Has the calls of Stream.
class Handover {
 public:
  static Result<Handover> open(const Session& session, std::string request);

  void begin(std::string& out) { first_.begin(out); }
  Result<void> take(std::string_view raw, std::string& plain, std::string& out);
  void put(std::string_view plain, std::string& out);
  /// The second session is made: the node serves the request.
  [[nodiscard]] bool established() const { return second_ && second_->established(); }
  [[nodiscard]] std::size_t kept() const;

 private:
  Handover(Context context, Stream first, std::string request)
      : context_(std::move(context)), first_(std::move(first)), request_(std::move(request)) {}

  Context context_;
  Stream first_;
  std::optional<Stream> second_;
  std::string request_;
  std::string waiting_;  // put() before there is a second session
};

/// The side of the process that got the socket.
Result<Stream> take_over(const std::string& key);

}  // namespace berth::tls
