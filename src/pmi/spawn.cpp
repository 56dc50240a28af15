// What spawn.h promises. Arguments and pairs are numbered on the wire; they are taken in the order
// in which they come, which is the same for every client and does not depend on where it begins to
// count.
#include "pmi/spawn.h"

#include <algorithm>
#include <utility>

#include "pmi/limits.h"
#include "text/number.h"

namespace berth::pmi {
namespace {

constexpr std::uint64_t kMostTasks = 1U << 24;

/// Whether it is the prefix and a number: "arg12".
bool numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  return text::parse_number(name.substr(prefix.size())).has_value();
}

}  // namespace

Result<void> SpawnDraft::begin() {
  if (request_.commands.size() == kMaxSpawnCommands) {
    return fail(Code::limit, "a spawn request has too many programs");
  }
  request_.commands.emplace_back().argv.emplace_back();
  open_ = true;
  return {};
}

Result<bool> SpawnDraft::add_line(std::string_view line) {
  if (line == "endcmd") {
    open_ = false;
    if (request_.commands.size() < total_) return false;
    if (auto sound = check(); !sound) return pass(sound.error());
    return true;
  }
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return fail(Code::protocol, "a line of a spawn request has no '='");
  }
  if (auto counted = count(line.size()); !counted) return pass(counted.error());
  if (auto added = add(line.substr(0, equals), line.substr(equals + 1)); !added) {
    return pass(added.error());
  }
  return false;
}

Result<void> SpawnDraft::add_message(const Message& message) {
  for (const auto& [name, value] : message.fields) {
    if (name == "subcmd") {
      if (auto begun = begin(); !begun) return begun;
    }
    if (auto added = add(name, value); !added) return added;
  }
  open_ = false;
  if (request_.commands.size() != total_) {
    return fail(Code::protocol, "a spawn request has another number of programs than it says");
  }
  return check();
}

SpawnRequest SpawnDraft::take() {
  SpawnRequest request = std::move(request_);
  *this = SpawnDraft();
  return request;
}

Result<void> SpawnDraft::add(std::string_view name, std::string_view value) {
  if (name == "totspawns" || name == "ncmds") {
    const auto number = text::parse_number(value, kMaxSpawnCommands);
    if (!number || *number == 0) {
      return fail(Code::protocol, "a spawn request has a bad number of programs");
    }
    total_ = *number;
    return {};
  }
  if (numbered(name, "preput_key_") || numbered(name, "ppkey")) {
    if (value.empty() || value.size() > kMaxKey) {
      return fail(Code::protocol, "a spawn request has a bad key");
    }
    given_key_ = value;
    return {};
  }
  if (numbered(name, "preput_val_") || numbered(name, "ppval")) {
    if (given_key_.empty() || value.size() > kMaxValue) {
      return fail(Code::protocol, "a spawn request has a bad value");
    }
    request_.given.insert_or_assign(std::exchange(given_key_, {}), std::string(value));
    return {};
  }
  if (request_.commands.empty()) return {};  // fields of the request that are of no use
  SpawnCommand& command = request_.commands.back();
  if (name == "execname" || name == "subcmd") {
    command.argv.front() = value;
  } else if (name == "nprocs" || name == "maxprocs") {
    const auto number = text::parse_number(value, kMostTasks);
    if (!number) return fail(Code::protocol, "a spawn request has a bad number of tasks");
    command.tasks = static_cast<std::uint32_t>(*number);
  } else if (numbered(name, "arg") || numbered(name, "argv")) {
    command.argv.emplace_back(value);
  } else if (numbered(name, "info_key_") || numbered(name, "infokey")) {
    command.info.emplace_back(value, "");
  } else if (numbered(name, "info_val_") || numbered(name, "infoval")) {
    if (command.info.empty())
      return fail(Code::protocol, "a spawn request has a value without key");
    command.info.back().second = value;
  }
  return {};
}

Result<void> SpawnDraft::count(std::size_t bytes) {
  bytes_ += bytes + 1;
  if (bytes_ > kMaxSpawnBytes) return fail(Code::limit, "a spawn request is too long");
  return {};
}

Result<void> SpawnDraft::check() const {
  const bool sound = std::ranges::all_of(request_.commands, [](const SpawnCommand& command) {
    return !command.argv.front().empty() && command.tasks > 0;
  });
  if (!sound) return fail(Code::protocol, "a spawn request lacks a program or its number of tasks");
  return {};
}

}  // namespace berth::pmi
