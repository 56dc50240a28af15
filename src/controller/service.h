// The controller put together: store, network side, state thread, reader. Who owns the loop runs
// it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/cluster_clock.h"
#include "base/result.h"
#include "controller/crash_points.h"
#include "controller/engine.h"
#include "controller/front.h"
#include "controller/gauges.h"
#include "controller/log.h"
#include "controller/published.h"
#include "controller/reader.h"
#include "controller/setup.h"
#include "net/loop.h"

namespace berth::controller {

struct ServiceOptions {
  Setup setup;
  std::string state;  // directory of the store
  std::string run;    // directory of the socket
  std::string conf;   // slurm.conf
  bool emulate = false;
  std::string host;
  std::function<void()> shut;  // scontrol shutdown
  /// For tests; outlives the service. nullptr: this machine's.
  const TimeSource* time = nullptr;
};

class Service {
 public:
  /// Opens the store, raises the epoch, loads, then listens.
  static Result<std::unique_ptr<Service>> open(net::Loop& loop, Log& log, CrashPoints& crash,
                                               ServiceOptions options);
  /// Ends the threads; what was answered last is with the loop.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void reread() { engine_->reread(); }
  /// Before its end, when the process was told to end: nodes hear that another one is to follow.
  void stop_in_order();

 private:
  Service(net::Loop& loop, Log& log, const TimeSource* time);

  MachineTime machine_time_;
  ClusterClock clock_;
  Users users_;
  Published published_;
  RequestCounts requests_;
  Front front_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<Gauges> gauges_;
  std::unique_ptr<Reader> historian_;  // sacct may read for long: squeue does not wait for it
};

}  // namespace berth::controller
