// scontrol token: for a machine to join the cluster with, or to prove who a user is. scontrol
// revoke: the identity of a node is void, or the tokens of a user are.
#include <fmt/format.h>

#include "command/scontrol.h"
#include "command/scontrol_session.h"
#include "text/number.h"
#include "text/words.h"
#include "wire/identity.pb.h"

namespace berth::command::scontrol {

int token(Session& session, Words words) {
  wire::MakeTokens ask;
  for (const std::string& word : words) {
    const std::size_t eq = word.find('=');
    const std::string key = text::to_lower(word.substr(0, eq));
    const std::string value = eq == std::string::npos ? std::string() : word.substr(eq + 1);
    if (key == "lifespan") {
      // Slurm knows "infinite" too: a secret without an end is not made here.
      const auto seconds = text::parse_number(value, INT32_MAX);
      if (!seconds || *seconds == 0) {
        return session.refuse(fmt::format("lifespan={} is not a number of seconds", value),
                              "without lifespan a user's token lives 1800 s, a node's 3600 s");
      }
      ask.set_lifespan(static_cast<std::int64_t>(*seconds));
    } else if (key == "username" && !value.empty()) {
      ask.set_user(value);
    } else if ((key == "node" || key == "nodes") && !value.empty()) {
      ask.set_nodes(value);
    } else if ((key == "newnode" || key == "newnodes") && !value.empty()) {
      ask.set_nodes(value);
      ask.set_new_nodes(true);
    } else {
      return session.refuse(
          fmt::format("unknown word for token: {}", word),
          "scontrol token [username=NAME] [lifespan=SECONDS], or scontrol token "
          "node=LIST, or newnode=LIST for machines that slurm.conf does not name");
    }
  }
  const auto made = session.ask<wire::TokensMade>(ask);
  if (!made) return session.complain("token", made.error());
  for (int i = 0; i < made->tokens_size(); ++i) {
    if (ask.nodes().empty()) {
      session.out += fmt::format("SLURM_JWT={}\n", made->tokens(i));
    } else if (made->tokens_size() == 1) {
      session.out += fmt::format("{}\n", made->tokens(i));
    } else {
      session.out += fmt::format("{} {}\n", made->names(i), made->tokens(i));
    }
  }
  return 0;
}

int revoke(Session& session, Words words) {
  wire::RevokeNodes ask;
  std::string list;
  for (const std::string& word : words) {
    const std::size_t eq = word.find('=');
    const bool named = eq != std::string::npos;
    const std::string key = named ? text::to_lower(word.substr(0, eq)) : "node";
    if (key == "username" && eq + 1 < word.size() && ask.user().empty()) {
      ask.set_user(word.substr(eq + 1));
      continue;
    }
    if (key != "node" && key != "nodes") {
      return session.refuse(fmt::format("unknown word for revoke: {}", word),
                            "scontrol revoke node=LIST, or scontrol revoke username=NAME");
    }
    if (!list.empty()) list += ',';
    list += named ? word.substr(eq + 1) : word;
  }
  ask.set_nodes(list);
  const auto done = session.ask<wire::Done>(ask);
  return done ? 0 : session.complain("revoke", done.error());
}

}  // namespace berth::command::scontrol
