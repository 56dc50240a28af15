// scontrol power up|down [asap|force] NODES [reason=…]: another way to write
// `update NodeName= State=POWER_*`.
#include <fmt/format.h>

#include "command/scontrol_session.h"
#include "text/words.h"

namespace berth::command::scontrol {

int power(Session& session, Words words) {
  const std::string way = text::to_lower(words.front());
  if (way != "up" && way != "down") {
    return session.refuse(fmt::format("invalid power argument:{}", words.front()),
                          "scontrol power up NODES, scontrol power down [asap|force] NODES");
  }
  std::string state = way == "up" ? "POWER_UP" : "POWER_DOWN";
  std::vector<std::string> rest(words.begin() + 1, words.end());
  if (!rest.empty()) {
    const std::string how = text::to_lower(rest.front());
    if (how == "asap" || how == "force") {
      if (way == "up") {
        return session.refuse(fmt::format("{} is for scontrol power down", how), "leave it out");
      }
      state += how == "asap" ? "_ASAP" : "_FORCE";
      rest.erase(rest.begin());
    }
  }
  if (rest.empty()) return session.complain("too few arguments for keyword:power");
  std::vector<std::string> as_update = {"NodeName=" + rest.front(), "State=" + state};
  as_update.insert(as_update.end(), rest.begin() + 1, rest.end());
  return update(session, as_update);
}

}  // namespace berth::command::scontrol
