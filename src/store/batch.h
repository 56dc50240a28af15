// What one turn of the controller changed: written by Store::commit in one transaction.
//
//   store::Batch batch;
//   record.set_asked_blob(store.add_blob(batch, asked.SerializeAsString()));   // once for each
//   submission batch.jobs.push_back({record, "train", "physics"}); batch.next_job_id = 17; if (auto
//   done = store.commit(batch); !done) …   // nothing of it was stored; may be tried again
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/record.pb.h"

namespace berth::store {

/// A row of a job. The row is (id, restarts): a requeued job goes on in a new row, and the row of
/// the earlier run stays as it was put last, for history (`sacct --duplicates`). Its end is put
/// before or with the first record of the next run; when it is not, it is closed as REQUEUED (or
/// NODE_FAIL).
struct JobRow {
  wire::JobRecord record;
  std::string name;  // of the job and its account: they are in Asked, but history filters by them
  std::string account;
  std::uint64_t key = 0;  // its place in the order of history; set by History alone
};

struct Blob {
  std::uint64_t key = 0;
  std::string bytes;
};

/// How a controller's time goes on in the next one (base/cluster_clock.h).
struct ClockMark {
  std::uint64_t boot = 0;
  std::int64_t ahead_nanoseconds = 0;
  std::int64_t adopted = 0;
  friend bool operator==(const ClockMark&, const ClockMark&) = default;
};

struct Batch {
  std::vector<Blob> blobs;  // by Store::add_blob
  std::vector<JobRow> jobs;
  std::vector<wire::StepRecord> steps;
  std::vector<wire::NodeRecord> nodes;
  std::vector<wire::PartitionRecord> partitions;
  std::vector<wire::ReservationRecord> reservations;
  std::vector<std::string> deleted_reservations;
  std::vector<std::string> deleted_nodes;
  std::vector<std::string> deleted_partitions;
  std::vector<std::uint32_t> deleted_jobs;  // all rows and steps of these ids
  std::optional<std::uint32_t> next_job_id;
  /// Until then nodes let jobs run whose leases are over: the controller stops, and has told them.
  std::optional<std::int64_t> leases_rest_until;
  std::optional<ClockMark> clock;
  /// False: it may be lost by a crash of the machine until the next synced commit (creation of
  /// steps).
  bool synced = true;

  [[nodiscard]] bool empty() const {
    return blobs.empty() && jobs.empty() && steps.empty() && nodes.empty() && partitions.empty() &&
           reservations.empty() && deleted_reservations.empty() && deleted_nodes.empty() &&
           deleted_partitions.empty() && deleted_jobs.empty() && !next_job_id &&
           !leases_rest_until && !clock;
  }
};

}  // namespace berth::store
