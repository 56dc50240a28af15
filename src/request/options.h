// Which options were given, with their text and where they came from. The table of all options is
// in options.def (one row an option; see parse.h for how rows become a Request).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace berth::request {

/// One value for each row of the option table.
enum class Opt : std::uint16_t {
#define BERTH_OPTION(id, ...) id,
#include "request/options.def"
#undef BERTH_OPTION
  count_
};

/// Later levels beat earlier ones.
enum class Level { directive, environment, command_line };

struct Given {
  std::string text;  // the argument as written; "" for flags
  Level level = Level::command_line;
  int line = 0;          // script line of a directive, from 1
  std::string variable;  // name of the environment variable
};

class OptionSet {
 public:
  void put(Opt opt, Given given) { given_[opt] = std::move(given); }
  void erase(Opt opt) { given_.erase(opt); }
  [[nodiscard]] const Given* find(Opt opt) const {
    const auto at = given_.find(opt);
    return at == given_.end() ? nullptr : &at->second;
  }
  [[nodiscard]] bool has(Opt opt) const { return given_.contains(opt); }
  [[nodiscard]] bool on_command_line(Opt opt) const {
    const Given* g = find(opt);
    return g != nullptr && g->level == Level::command_line;
  }
  [[nodiscard]] bool from_environment(Opt opt) const {
    const Given* g = find(opt);
    return g != nullptr && g->level == Level::environment;
  }
  [[nodiscard]] const std::map<Opt, Given>& all() const { return given_; }

 private:
  std::map<Opt, Given> given_;
};

}  // namespace berth::request
