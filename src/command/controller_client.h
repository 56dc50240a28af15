// Finding the controller of the cluster that the environment names, and asking it.
//
//   auto reply = ask_controller<wire::JobsReply>(environment, "squeue", wire::ListJobs{});
//   if (!reply) return print_error(reply.error(), "squeue");
//
// Several requests, or pushed frames: reach_controller() once and use the Client.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "command/messages.h"
#include "net/client.h"
#include "request/request.h"

namespace berth::command {

/// Code::no_connection with Slurm's "Unable to contact slurm controller (connect failure)" and a
/// hint that says what to do when no controller answers. `program` is the command's name.
Result<net::Client> reach_controller(const request::Environment& environment,
                                     std::string_view program);

/// The slurm.conf that names the cluster; "" when there is none.
std::string conf_path_of(const request::Environment& environment);

/// The values of a key of slurm.conf, in order, without reading the rest of it; comments are cut.
/// For the few facts that a command needs when it cannot ask the controller.
std::vector<std::string> conf_values(const std::string& conf_path, std::string_view key);

/// A controller runs, or ran a moment ago: worth to try again when it does not answer.
bool controller_expected(const request::Environment& environment);

/// The error of a controller that went away in the middle: the same text as above.
Error lost_controller();

template <class Reply, class Ask>
Result<Reply> ask_client(net::Client& client, const Ask& ask,
                         net::Patience patience = std::chrono::seconds(100)) {
  Result<Reply> reply = client.ask<Reply>(ask, patience);
  if (!reply &&
      (reply.error().code == Code::no_connection || reply.error().code == Code::timed_out)) {
    return pass(lost_controller());
  }
  return reply;
}

/// A refusal comes back as the Error, with the lines to print.
template <class Reply, class Ask>
Result<Reply> ask_controller(const request::Environment& environment, std::string_view program,
                             const Ask& ask) {
  Result<net::Client> client = reach_controller(environment, program);
  if (!client) return pass(std::move(client.error()));
  return ask_client<Reply>(*client, ask);
}

}  // namespace berth::command
