// Answers questions from what was published. A thread of its own: a flood of squeue delays other
// questions at most, never a submission.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "controller/front.h"
#include "controller/published.h"
#include "controller/request_counts.h"
#include "controller/users.h"
#include "store/history.h"

namespace berth::controller {

class Reader {
 public:
  /// Makes the picture show all that was acknowledged up to now; may wait for the state thread.
  using Refresh = std::function<void(bool with_jobs)>;

  Reader(Front& front, const Published& published, Users& users, RequestCounts& counts,
         Refresh refresh, std::string state_directory);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Any thread.
  void ask(Request request);
  void stop();

 private:
  void work();
  void answer(const Request& request);
  [[nodiscard]] std::string jobs(const wire::ListJobs& ask, const Caller& caller);
  [[nodiscard]] std::string priorities(const wire::ListPriorities& ask, const Caller& caller);
  /// Uids of names and numbers; the error names who is not known.
  [[nodiscard]] Result<std::vector<std::uint32_t>> uids_of(
      const google::protobuf::RepeatedPtrField<std::string>& names);
  [[nodiscard]] std::string nodes(const wire::ListNodes& ask) const;
  void history(const Request& request);

  Front& front_;
  const Published& published_;
  Users& users_;
  RequestCounts& counts_;
  Refresh refresh_;
  std::string state_directory_;
  std::optional<store::History> history_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool stopping_ = false;
  std::thread thread_;
};

/// The jobs that are asked for and may be seen.
std::vector<std::shared_ptr<const JobView>> chosen_jobs(const Picture& picture,
                                                        const wire::ListJobs& ask,
                                                        const Caller& caller,
                                                        const std::vector<std::uint32_t>& uids);
/// The frame of a JobsReply: the bytes of the jobs one after the other.
std::string jobs_frame(const wire::JobsReply& head,
                       const std::vector<std::shared_ptr<const JobView>>& jobs,
                       const wire::ListJobs& ask);

}  // namespace berth::controller
