// What all sub-commands of scontrol share: flags, the connection, and what is printed at the end.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command/controller_client.h"
#include "command/scontrol_values.h"

namespace berth::command::scontrol {

struct Session {
  explicit Session(const request::Environment& e) : environment(e) {}

  const request::Environment& environment;
  Style style;
  bool all = false;     // -a: hidden partitions too
  bool future = false;  // --future: nodes in state FUTURE too
  bool quiet = false;   // -Q
  bool json = false;
  std::vector<std::string> argv;  // for the "meta" of --json
  std::string out;                // standard output, written once
  bool verbatim = false;          // `out` is a file's content for a file, not for a terminal

  /// One request to the controller, on one connection for each sub-command.
  template <class Reply, class Ask>
  Result<Reply> ask(const Ask& message) {
    if (!client_) {
      Result<net::Client> reached = reach_controller(environment, "scontrol");
      if (!reached) return pass(std::move(reached.error()));
      client_.emplace(std::move(*reached));
    }
    return ask_client<Reply>(*client_, message);
  }
  void hang_up() { client_.reset(); }

  /// "prefix: text" on standard error, and the hint; gives 1. Silent with -Q.
  int complain(std::string_view prefix, const Error& error) const;
  /// "text" on standard error; gives 1. Silent with -Q.
  int complain(std::string_view text) const;
  /// "scontrol: error: text" and "berth: hint"; gives 1.
  int refuse(std::string_view text, std::string_view hint) const;

 private:
  std::optional<net::Client> client_;
};

using Words = std::span<const std::string>;

// Each takes the words after its own name and gives the exit code.
int show(Session& session, Words words);
int update(Session& session, Words words);
int create(Session& session, Words words);
int remove(Session& session, Words words);
/// hold, uhold, release, requeue, requeuehold, suspend, resume, top.
int act(Session& session, std::string_view action, Words words);
int notify(Session& session, Words words);
int token(Session& session, Words words);
int revoke(Session& session, Words words);
int wait_job(Session& session, Words words);
int write(Session& session, Words words);
int explain(Session& session, Words words);
int ping(Session& session, Words words);
int reconfigure(Session& session, Words words);
int shutdown(Session& session, Words words);
int set_debug(Session& session, Words words);
int error_text(Session& session, Words words);
int completing(Session& session, Words words);
int list_jobs(Session& session, Words words);
int list_steps(Session& session, Words words);
int power(Session& session, Words words);

/// `show hostnames`, `show hostlist`, `show hostlistsorted`: no controller is needed.
enum class HostListForm { names, list, sorted };
int show_hosts(Session& session, HostListForm form, std::optional<std::string> value);

/// What berth does not do: what to do instead; "" = not such a word. `group` is "command" or
/// "show".
std::string_view instead_of(std::string_view group, std::string_view word);

/// The JSON forms of `show`.
enum class JsonKind { jobs, nodes, partitions, licenses, topology, reservations };
int show_json(Session& session, JsonKind kind, const std::optional<std::string>& value);

}  // namespace berth::command::scontrol
