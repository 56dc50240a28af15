// The statements that change rows. The caller (Store) makes the transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "store/batch.h"
#include "store/sqlite.h"

namespace berth::store {

class Writer {
 public:
  Writer() = default;
  static Result<Writer> make(sqlite3* database);

  Result<void> put(const Batch& batch);
  Result<void> put_meta(std::string_view name, std::uint64_t value);
  Result<std::size_t> purge_jobs(std::int64_t before, std::size_t most);
  Result<std::size_t> purge_blobs(std::size_t most);

 private:
  Result<void> put_blob(const Blob& blob);
  Result<void> put_job(const JobRow& row);
  /// The rows of the job's runs before this one are history now.
  Result<void> retire_earlier(const wire::JobRecord& record, std::int64_t key);
  Result<void> put_step(const wire::StepRecord& record);
  Result<void> delete_job(std::uint32_t id);

  sqlite3* database_ = nullptr;
  Statement meta_;
  Statement blob_;
  Statement select_blob_;
  Statement job_;
  Statement earlier_;
  Statement retire_;
  Statement step_;
  Statement node_;
  Statement partition_;
  Statement reservation_;
  Statement delete_reservation_;
  Statement delete_node_;
  Statement delete_partition_;
  Statement delete_job_;
  Statement delete_steps_;
  Statement old_jobs_;
  Statement delete_blobs_;
};

}  // namespace berth::store
