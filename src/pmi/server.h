// The server of PMI-1 and PMI-2 for the tasks of one step on one node: bytes and news in, what is
// to be done out. It has no socket and no clock; whatever a task sends, memory stays within
// limits.h.
//
//   task ── received ──▶ Server ── take ──▶ Answer        to the task
//   tree ── fenced  ──▶                     Contribution  to the tree: all tasks are at a fence
//   root ── named, spawned ──▶              Publish, Lookup, SpawnRequest … to the root
//
// What a task puts it sees itself at once, the others after the next fence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pmi/events.h"
#include "pmi/framing.h"
#include "pmi/kvs.h"
#include "pmi/message.h"
#include "pmi/spawn.h"

namespace berth::pmi {

/// What the server must know of the step.
struct Step {
  std::string id;                    // "12.0": PMI's job, and the name of its key space; no blanks
  std::uint32_t size = 0;            // tasks of the whole step
  std::uint32_t universe_size = 0;   // slots of the job; 0: as many as tasks
  std::vector<std::uint32_t> ranks;  // of this node
  std::string mapping;               // process_mapping of the whole step, or ""
  std::map<std::uint32_t, std::uint32_t> appnums;  // of ranks of this node; others have 0
  std::map<std::string, std::string> given;        // keys there from the start: SpawnRequest::given
  std::string spawner;                             // the step that spawned this one, or ""
};

class Server {
 public:
  explicit Server(Step step);

  /// Bytes of a task, cut anywhere. Whoever feeds them stops while the task does not read its
  /// answers: an answer can be longer than its question.
  void received(std::uint32_t rank, std::string_view bytes);
  /// Its connection ended, or the task did. It counts as arrived at every fence from now on.
  void closed(std::uint32_t rank);

  /// The contributions of all nodes to the fence that this one last contributed to. On an error
  /// (another number, damaged or too many bytes) nothing has happened, and the tasks still wait.
  Result<void> fenced(std::uint64_t number, std::string_view merged);
  /// The root's answer to Publish, Unpublish (the value is of no use) or Lookup (the port).
  void named(std::uint64_t ticket, const Result<std::string>& port);
  /// The root's answer to SpawnRequest: the new step's id once its tasks are started.
  void spawned(std::uint64_t ticket, const Result<std::string>& id);

  /// What is to be done, in order.
  std::vector<Event> take();

  /// It said init at least once.
  [[nodiscard]] bool used(std::uint32_t rank) const;
  /// It said finalize, and not init again.
  [[nodiscard]] bool finalized(std::uint32_t rank) const;

 private:
  /// Whom an answer that comes later is for, and how it must look.
  struct Origin {
    std::uint32_t rank = 0;
    int version = 1;
    std::optional<std::string> thread;  // PMI-2's thrid, which goes back as it came
  };
  enum class State { fresh, running, finalized, closed };
  struct Task {
    std::uint32_t rank = 0;
    State state = State::fresh;
    bool used = false;
    bool finalized = false;
    int version = 1;
    Inbox inbox;
    Kvs puts;  // not yet in a contribution
    SpawnDraft spawn;
    std::uint64_t fence = 0;  // the last one it has arrived at
    Origin fence_origin;
    std::size_t outstanding = 0;  // waiting_ and tickets_
  };
  /// A question for an attribute that is not there yet.
  struct Waiting {
    Origin origin;
    bool of_node = false;
    std::string key;
  };
  enum class Kind { publish, unpublish, lookup, spawn };
  struct Ticket {
    Origin origin;
    Kind kind = Kind::publish;
  };
  using Handler = Result<void> (Server::*)(Task&, const Message&);
  struct Row {
    std::string_view command;
    Handler handler;
  };

  // Both versions.
  Task* find(std::uint32_t rank);
  [[nodiscard]] const Task* find(std::uint32_t rank) const;
  void answer(const Origin& origin, std::string_view command, const AnswerFields& fields);
  void misuse(Task& task, std::string_view what);
  [[nodiscard]] Result<void> put(Task& task, std::string_view key, std::string_view value);
  [[nodiscard]] const std::string* get(const Task& task, std::string_view key) const;
  [[nodiscard]] std::uint32_t appnum(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t universe_size() const;
  Result<void> arrive(Task& task, Origin origin);
  void contribute();
  void finalize(Task& task);
  void end(Task& task);
  void depart();
  Result<std::uint64_t> ticket(Task& task, Kind kind, Origin origin);
  [[nodiscard]] std::optional<Origin> redeem(std::uint64_t ticket, Kind& kind);
  Result<void> abort(Task& task, const Message& message);
  Result<void> request_spawn(Task& task, Origin origin);

  // server_lines.cpp: PMI-1.
  Result<void> line(Task& task, std::string_view line);
  Result<void> line_init(Task& task, const Message& message);
  Result<void> line_maxes(Task& task, const Message& message);
  Result<void> line_appnum(Task& task, const Message& message);
  Result<void> line_name(Task& task, const Message& message);
  Result<void> line_universe(Task& task, const Message& message);
  Result<void> line_put(Task& task, const Message& message);
  Result<void> line_get(Task& task, const Message& message);
  Result<void> line_by_place(Task& task, const Message& message);
  Result<void> line_barrier(Task& task, const Message& message);
  Result<void> line_publish(Task& task, const Message& message);
  Result<void> line_unpublish(Task& task, const Message& message);
  Result<void> line_lookup(Task& task, const Message& message);
  Result<void> line_finalize(Task& task, const Message& message);

  // server_counted.cpp: PMI-2.
  static Origin origin_of(const Task& task, const Message& message);
  Result<void> counted(Task& task, std::string_view text);
  Result<void> counted_init(Task& task, const Message& message);
  Result<void> counted_id(Task& task, const Message& message);
  Result<void> counted_put(Task& task, const Message& message);
  Result<void> counted_get(Task& task, const Message& message);
  Result<void> counted_fence(Task& task, const Message& message);
  Result<void> counted_attribute(Task& task, const Message& message);
  Result<void> counted_put_attribute(Task& task, const Message& message);
  Result<void> counted_publish(Task& task, const Message& message);
  Result<void> counted_unpublish(Task& task, const Message& message);
  Result<void> counted_lookup(Task& task, const Message& message);
  Result<void> counted_spawn(Task& task, const Message& message);
  Result<void> counted_finalize(Task& task, const Message& message);
  [[nodiscard]] bool answer_attribute(const Waiting& question);
  void answer_waiting(bool of_node);

  Step step_;
  std::map<std::uint32_t, Task> tasks_;
  Kvs shared_;      // given, and what fences brought
  Kvs attributes_;  // of the node
  std::vector<Waiting> waiting_;
  std::map<std::uint64_t, Ticket> tickets_;
  std::uint64_t next_ticket_ = 1;
  std::size_t held_ = 0;           // bytes of all puts and of attributes_
  std::uint64_t contributed_ = 0;  // the last fence this node gave its part to
  std::uint64_t fenced_ = 0;       // the last one that is over
  bool departed_ = false;
  std::vector<Event> events_;
};

}  // namespace berth::pmi
