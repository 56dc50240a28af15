// Answers sstat. A thread of its own: many nodes may have to be heard, and neither a submission nor
// a squeue waits for that.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <variant>

#include "controller/front.h"
#include "controller/published.h"
#include "controller/request_counts.h"
#include "controller/step_readings.h"

namespace berth::controller {

class Gauges {
 public:
  /// As Reader's: makes the picture show all that was acknowledged up to now.
  using Refresh = std::function<void(bool with_jobs)>;

  Gauges(Front& front, const Published& published, RequestCounts& counts, Refresh refresh);
  ~Gauges();
  Gauges(const Gauges&) = delete;
  Gauges& operator=(const Gauges&) = delete;

  // Any thread:
  /// A MeasureSteps of a client, or a MeasuredOnNode of an agent.
  void take(Request request);
  void closed(Peer peer);
  void stop();

 private:
  void work();
  void question(const Request& request);

  Front& front_;
  const Published& published_;
  RequestCounts& counts_;
  Refresh refresh_;
  StepReadings readings_;  // of the thread
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::variant<Request, Peer>> events_;  // guarded by mutex_
  bool busy_ = false;                               // a question is open; guarded by mutex_
  bool stopping_ = false;                           // guarded by mutex_
  std::thread thread_;
};

/// The steps that a name means, as far as the picture knows them: one entry more of the answer,
/// without figures, and where they run. `all`: all of a job, instead of its lowest numbered one.
void add_steps(const Picture& picture, const wire::JobName& name, bool all, const Caller& caller,
               StepReadings::Question& out);

}  // namespace berth::controller
