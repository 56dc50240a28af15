// Questions of sacct, answered from the same rows that the controller writes, through a read-only
// connection of its own: for a second thread; it neither waits for commits nor holds them up.
//
//   auto history = store::History::open(state_directory);     // after Store::open made the file
//   store::Filter filter{.uids = {1000}, .from = t0, .until = t1};
//   do { auto page = history->jobs(filter);                   // at most filter.most rows, by id
//        … filter.after = page->next; } while (filter.after);
//   auto steps = history->steps(record.id(), record.attempt());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/batch.h"
#include "wire/record.pb.h"
#include "wire/submit.pb.h"

namespace berth::store {

/// A job, an array (with all its elements) or a heterogeneous job (with its components).
struct FilterId {
  std::uint32_t id = 0;
  std::optional<std::uint32_t> array_task = {};  // 12_3
  std::optional<std::uint32_t> het_offset = {};  // 12+1
};

/// Empty or 0 = not filtered by it. Names are compared as they are.
struct Filter {
  std::vector<FilterId> ids = {};
  std::vector<std::uint32_t> uids = {};
  std::vector<std::string> states = {};  // base states, "COMPLETED"
  std::vector<std::string> partitions = {};
  std::vector<std::string> accounts = {};
  std::vector<std::string> names = {};
  std::int64_t from = 0;      // jobs that had not ended before this …
  std::int64_t until = 0;     // … and were submitted at or before this
  bool earlier_runs = false;  // also rows of requeued jobs before the last
  std::size_t most = 1000;
  std::uint64_t after = 0;  // Page::next of the page before
};

struct Page {
  std::vector<JobRow> jobs;
  std::uint64_t next = 0;  // 0 = this was the last page
};

class History {
 public:
  static Result<History> open(const std::string& directory);
  History(History&&) noexcept;
  History& operator=(History&&) noexcept;
  ~History();

  Result<Page> jobs(const Filter& filter);
  Result<std::vector<wire::StepRecord>> steps(std::uint32_t job_id, std::uint32_t attempt);
  Result<wire::Asked> asked(std::uint64_t key);

 private:
  struct Inside;
  explicit History(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace berth::store
