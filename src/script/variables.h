// Shell variables with what is known about them, and frames that take changes back (subshells,
// branches of an `if`).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "script/script.h"

namespace berth::script {

struct Value {
  std::vector<std::string> items;  // one for a plain variable
  bool array = false;
  bool known = true;  // false: set, but to something that only running the script would tell
  bool exported = false;

  static Value of(std::string text) { return {{std::move(text)}, false, true, false}; }
  static Value unknown() { return {{""}, false, false, false}; }
  [[nodiscard]] const std::string& text() const;
  friend bool operator==(const Value&, const Value&) = default;
};

class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& start);

  [[nodiscard]] const Value* find(const std::string& name) const;
  /// Keeps the export mark of a variable that exists.
  void set(const std::string& name, Value value);
  void unset(const std::string& name);
  void mark_exported(const std::string& name);

  /// From now on changes are remembered …
  void push_frame();
  /// … and taken back here. Returns the values the changed variables had before that.
  std::map<std::string, std::optional<Value>> pop_frame();

  /// Exported variables that differ from the start. The same object until something changes.
  std::shared_ptr<const Changes> changes();

 private:
  void assign(const std::string& name, std::optional<Value> value);

  const std::map<std::string, std::string>* start_;
  std::map<std::string, Value> values_;
  std::vector<std::map<std::string, std::optional<Value>>> frames_;
  std::set<std::string> touched_;  // every exported name ever changed
  std::shared_ptr<const Changes> changes_;
};

}  // namespace berth::script
