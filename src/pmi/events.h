// What a PMI server wants done by the supervisor that owns it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace berth::pmi {

/// To be written to a task.
struct Answer {
  std::uint32_t rank = 0;
  std::string bytes;
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// All tasks of this node have arrived at a fence: to the launch tree, which hands the
/// contributions of all nodes, one after the other in any order, to Server::fenced of every node.
/// The first fence has the number 1.
struct Contribution {
  std::uint64_t number = 0;
  std::string bytes;
  friend bool operator==(const Contribution&, const Contribution&) = default;
};

/// No task of this node is left: the tree must not wait for this node at any fence after those that
/// it has contributed to. Comes once.
struct Departed {
  friend bool operator==(const Departed&, const Departed&) = default;
};

/// A task ends the whole step. It gets no answer.
struct Abort {
  std::uint32_t rank = 0;
  int code = 1;
  std::string message;
  friend bool operator==(const Abort&, const Abort&) = default;
};

/// To the root of the tree; answered with Server::named.
struct Publish {
  std::uint64_t ticket = 0;
  std::uint32_t rank = 0;
  std::string name;
  std::string port;
  friend bool operator==(const Publish&, const Publish&) = default;
};
struct Unpublish {
  std::uint64_t ticket = 0;
  std::uint32_t rank = 0;
  std::string name;
  friend bool operator==(const Unpublish&, const Unpublish&) = default;
};
struct Lookup {
  std::uint64_t ticket = 0;
  std::uint32_t rank = 0;
  std::string name;
  friend bool operator==(const Lookup&, const Lookup&) = default;
};

/// One program of a request to start some.
struct SpawnCommand {
  std::vector<std::string> argv;  // the program itself first
  std::uint32_t tasks = 0;
  std::vector<std::pair<std::string, std::string>> info;  // as MPI_Info had it: host, wdir, …
  friend bool operator==(const SpawnCommand&, const SpawnCommand&) = default;
};

/// To the root of the tree, which starts one new step of all these programs, with `given` as
/// Step::given; answered with Server::spawned.
struct SpawnRequest {
  std::uint64_t ticket = 0;
  std::uint32_t rank = 0;
  std::vector<SpawnCommand> commands;  // the place of each is its appnum
  std::map<std::string, std::string> given;
  friend bool operator==(const SpawnRequest&, const SpawnRequest&) = default;
};

/// A task broke the protocol: its connection is to be closed, and the user told why. The server
/// has forgotten the connection already.
struct Misuse {
  std::uint32_t rank = 0;
  std::string what;
  friend bool operator==(const Misuse&, const Misuse&) = default;
};

using Event = std::variant<Answer, Contribution, Departed, Abort, Publish, Unpublish, Lookup,
                           SpawnRequest, Misuse>;

}  // namespace berth::pmi
