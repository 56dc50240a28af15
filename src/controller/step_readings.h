// What steps use now, read from the agents of their nodes: who is asked, whose answer is awaited,
// and when it is enough. No clock, no thread, no socket: gauges.h has these.
//
// Who asks for a step that is being read already gets that reading, so that many askers cost the
// nodes what one does.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/front.h"
#include "wire/agent.pb.h"
#include "wire/info.pb.h"

namespace berth::controller {

class StepReadings {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  /// How long nodes have to answer. What has not come by then is left out.
  static constexpr std::chrono::seconds kPatience{10};
  /// As many nodes may be asked at one time, by all.
  static constexpr std::size_t kMostAsked = 100'000;

  struct Node {
    std::string name;
    std::optional<Peer> agent;  // who serves it
    bool ended = false;         // the step is over there: nobody is asked
  };
  struct Step {
    std::uint32_t attempt = 0;
    std::vector<Node> nodes;
    wire::StepFigures ended{};  // what it has used where it is over
  };
  /// A question: the answer as far as it is known, and what its steps need. `steps` belong to the
  /// steps of `answer` that are not denied, in order.
  struct Question {
    Peer peer = 0;
    bool with_pids = false;
    wire::StepsMeasured answer;
    std::vector<Step> steps;
  };

  /// False: too much is asked already.
  bool ask(Question question, Moment now);
  void answered(Peer agent, const wire::MeasuredOnNode& message);
  /// The connection of an agent is gone.
  void lost(Peer agent);
  void pass_time(Moment now);
  [[nodiscard]] std::optional<Moment> next_deadline() const;
  /// What is to be sent.
  std::vector<Front::Act> take_acts() { return std::exchange(acts_, {}); }
  /// Nodes whose answer is awaited.
  [[nodiscard]] std::size_t awaited() const { return awaited_; }

 private:
  struct Key {
    std::uint32_t job = 0;
    std::uint32_t attempt = 0;
    std::uint32_t step = 0;
    bool with_pids = false;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  /// Where a reading is wanted.
  struct Place {
    std::uint64_t question = 0;
    int asked = 0;
    int step = 0;
  };
  struct Reading {
    std::uint64_t number = 0;
    std::vector<std::string> nodes;
    std::map<std::string, Peer> open;  // have not answered
    std::map<std::string, std::vector<std::uint32_t>> pids;
    std::vector<std::string> missing;
    wire::StepFigures figures;
    std::vector<Place> places;
  };
  struct Waiting {
    Peer peer = 0;
    wire::StepsMeasured answer;
    std::size_t open = 0;  // readings
  };

  Reading& begin(const Key& key, const Step& step, Moment now);
  void finish(std::map<Key, Reading>::iterator at);
  void give(const Place& place, const Reading& reading);
  void send_if_complete(std::uint64_t question);

  std::map<Key, Reading> readings_;
  std::map<std::uint64_t, Key> by_number_;
  std::deque<std::pair<Moment, std::uint64_t>> deadlines_;  // in order: all have the same time
  std::map<std::uint64_t, Waiting> questions_;
  std::uint64_t last_number_ = 0;
  std::size_t awaited_ = 0;
  std::vector<Front::Act> acts_;
};

}  // namespace berth::controller
