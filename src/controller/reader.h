// Answers questions from what was published. A thread of its own: a flood of squeue delays other
// questions at most, never a submission.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "controller/front.h"
#include "controller/published.h"
#include "controller/request_counts.h"
#include "controller/users.h"
#include "store/history.h"

namespace berth::controller {

/// A long answer, which is made page by page: the next one when the kernel has taken the one
/// before. Nothing is kept between two pages but where to go on.
class Pages {
 public:
  struct Page {
    std::string frame;
    bool more = false;
  };
  Pages() = default;
  virtual ~Pages() = default;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  virtual Page next() = 0;
};

class Reader {
 public:
  /// Makes the picture show all that was acknowledged up to now; may wait for the state thread.
  using Refresh = std::function<void(bool with_jobs)>;

  Reader(const Clock& clock, Front& front, const Published& published, Users& users,
         RequestCounts& counts, Refresh refresh, std::string state_directory);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Any thread.
  void ask(Request request);
  /// The page that was sent to him last was taken; nobody waits for the others.
  void page_taken(Peer peer);
  void pages_unwanted(Peer peer);
  void stop();

 private:
  void work();
  struct Item {
    enum class What { request, next_page, no_more } what = What::request;
    Request request = {};
    Peer peer = 0;  // of a page
  };
  void put(Item item);
  void answer(const Request& request);
  void begin(Peer peer, std::unique_ptr<Pages> pages);
  void send_page(Peer peer);
  void jobs(Peer peer, const wire::ListJobs& ask, const Caller& caller);
  [[nodiscard]] std::string priorities(const wire::ListPriorities& ask, const Caller& caller);
  /// Uids of names and numbers; the error names who is not known.
  [[nodiscard]] Result<std::vector<std::uint32_t>> uids_of(
      const google::protobuf::RepeatedPtrField<std::string>& names);
  [[nodiscard]] std::string nodes(const wire::ListNodes& ask) const;
  void history(const Request& request);

  const Clock& clock_;
  Front& front_;
  const Published& published_;
  Users& users_;
  RequestCounts& counts_;
  Refresh refresh_;
  std::string state_directory_;
  std::optional<store::History> history_;
  std::unordered_map<Peer, std::unique_ptr<Pages>> pages_;  // of answers that are not over
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool stopping_ = false;
  std::thread thread_;
};

/// What of the jobs is looked at.
struct Walk {
  job::JobId after = 0;
  std::size_t most = SIZE_MAX;
};
/// The jobs that are asked for and may be seen, in the order of their ids.
std::vector<std::shared_ptr<const JobView>> chosen_jobs(const Picture& picture,
                                                        const wire::ListJobs& ask,
                                                        const Caller& caller,
                                                        const std::vector<std::uint32_t>& uids,
                                                        Walk walk = {});

/// JobsReply: the bytes of the jobs one after the other.
class JobPages : public Pages {
 public:
  JobPages(const Clock& clock, const Published& published, wire::ListJobs ask, Caller caller,
           std::vector<std::uint32_t> uids, std::size_t page_bytes = kPageBytes)
      : clock_(clock),
        published_(published),
        ask_(std::move(ask)),
        caller_(caller),
        uids_(std::move(uids)),
        page_bytes_(wire::kHeaderBytes + page_bytes) {}
  Page next() override;

  /// A page is as much larger as its last job is.
  static constexpr std::size_t kPageBytes = std::size_t{256} << 10;

 private:
  struct Elements {
    std::shared_ptr<const Bits> tasks;
    std::string common;  // JobInfo of each, but for the index
    std::size_t next = 0;
  };
  void append(std::string& out, const std::shared_ptr<const JobView>& job, bool all);
  void append_elements(std::string& out);

  const Clock& clock_;
  const Published& published_;
  wire::ListJobs ask_;
  Caller caller_;
  std::vector<std::uint32_t> uids_;
  std::size_t page_bytes_;
  job::JobId after_ = 0;
  std::optional<Elements> elements_;  // of which some are not sent
};

}  // namespace berth::controller
