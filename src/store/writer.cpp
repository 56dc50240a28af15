#include "store/writer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "store/schema.h"

namespace berth::store {
namespace {

bool holds_something(const wire::JobRecord& record) {
  return record.state() == "PENDING" || record.state() == "RUNNING" ||
         record.state() == "SUSPENDED" || record.end_time() == 0;
}

bool completes(const wire::JobRecord& record) {
  return record.waiting_nodes_size() > 0 ||
         std::ranges::find(record.flags(), "COMPLETING") != record.flags().end();
}

}  // namespace

Result<Writer> Writer::make(sqlite3* database) {
  Writer writer;
  writer.database_ = database;
  const std::pair<Statement*, std::string_view> all[] = {
      {&writer.meta_,
       "INSERT INTO meta VALUES (?, ?)"
       " ON CONFLICT (name) DO UPDATE SET value = excluded.value"},
      {&writer.blob_, "INSERT INTO blobs VALUES (?, ?) ON CONFLICT (key) DO NOTHING"},
      {&writer.select_blob_, kSelectBlob},
      // ?18 is the last key of the job: a row is live and latest only while no later run has one.
      {&writer.job_,
       "INSERT INTO jobs (key, id, uid, submitted, started, ended, state, partition, account,"
       " name, array_job, array_task, het_job, het_offset, token, asked, live, record, latest)"
       " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
       " ?17 AND newest, ?19, newest"
       " FROM (SELECT NOT EXISTS (SELECT 1 FROM jobs WHERE key > ?1 AND key <= ?18) AS newest)"
       " WHERE true"  // else the parser takes ON for a join
       " ON CONFLICT (key) DO UPDATE SET uid = excluded.uid, submitted = excluded.submitted,"
       " started = excluded.started, ended = excluded.ended, state = excluded.state,"
       " partition = excluded.partition, account = excluded.account, name = excluded.name,"
       " array_job = excluded.array_job, array_task = excluded.array_task,"
       " het_job = excluded.het_job, het_offset = excluded.het_offset, token = excluded.token,"
       " asked = excluded.asked, live = excluded.live, record = excluded.record,"
       " latest = excluded.latest"},
      {&writer.earlier_,
       "SELECT record, name, account FROM jobs WHERE key >= ? AND key < ? AND latest = 1"},
      {&writer.retire_, "UPDATE jobs SET live = 0, latest = 0 WHERE key >= ? AND key < ?"},
      {&writer.step_,
       "INSERT INTO steps VALUES (?, ?, ?, ?)"
       " ON CONFLICT (job, attempt, step) DO UPDATE SET record = excluded.record"},
      {&writer.node_,
       "INSERT INTO nodes VALUES (?, ?)"
       " ON CONFLICT (name) DO UPDATE SET record = excluded.record"},
      {&writer.partition_,
       "INSERT INTO partitions VALUES (?, ?)"
       " ON CONFLICT (name) DO UPDATE SET record = excluded.record"},
      {&writer.reservation_,
       "INSERT INTO reservations (name, record) VALUES (?, ?)"
       " ON CONFLICT (name) DO UPDATE SET record = excluded.record"},
      {&writer.delete_reservation_, "DELETE FROM reservations WHERE name = ?"},
      {&writer.delete_node_, "DELETE FROM nodes WHERE name = ?"},
      {&writer.delete_partition_, "DELETE FROM partitions WHERE name = ?"},
      {&writer.delete_job_, "DELETE FROM jobs WHERE key >= ? AND key <= ?"},
      {&writer.delete_steps_, "DELETE FROM steps WHERE job = ?"},
      {&writer.old_jobs_,
       "SELECT id FROM jobs WHERE ended > 0 AND ended < ? AND live = 0 AND latest = 1 LIMIT ?"},
      {&writer.delete_blobs_,
       "DELETE FROM blobs WHERE key IN (SELECT key FROM blobs WHERE NOT EXISTS"
       " (SELECT 1 FROM jobs WHERE jobs.asked = blobs.key) LIMIT ?)"},
  };
  for (const auto& [statement, sql] : all) {
    Result<Statement> made = Statement::make(database, sql);
    if (!made) return pass(std::move(made.error()));
    *statement = std::move(*made);
  }
  return writer;
}

Result<void> Writer::put(const Batch& batch) {
  Result<void> done;
  const auto each = [&](const auto& rows, auto&& put_one) {
    for (const auto& row : rows) {
      if (!done) return;
      done = put_one(row);
    }
  };
  const auto named = [](Statement& statement, const auto& record) {
    const std::string bytes = record.SerializeAsString();
    return statement.bind(record.name()).bind_blob(bytes).run();
  };
  each(batch.deleted_jobs, [&](std::uint32_t id) { return delete_job(id); });
  each(batch.blobs, [&](const Blob& blob) { return put_blob(blob); });
  each(batch.jobs, [&](const JobRow& row) { return put_job(row); });
  each(batch.steps, [&](const wire::StepRecord& record) { return put_step(record); });
  each(batch.deleted_nodes, [&](const std::string& name) { return delete_node_.bind(name).run(); });
  each(batch.nodes, [&](const wire::NodeRecord& record) { return named(node_, record); });
  each(batch.deleted_partitions,
       [&](const std::string& name) { return delete_partition_.bind(name).run(); });
  each(batch.partitions,
       [&](const wire::PartitionRecord& record) { return named(partition_, record); });
  each(batch.deleted_reservations,
       [&](const std::string& name) { return delete_reservation_.bind(name).run(); });
  each(batch.reservations,
       [&](const wire::ReservationRecord& record) { return named(reservation_, record); });
  if (done && batch.next_job_id) done = put_meta("next_job_id", *batch.next_job_id);
  if (done && batch.leases_rest_until) {
    done = put_meta("leases_rest_until", static_cast<std::uint64_t>(*batch.leases_rest_until));
  }
  if (batch.clock) {
    if (done) done = put_meta("clock_boot", batch.clock->boot);
    if (done) {
      done = put_meta("clock_ahead", static_cast<std::uint64_t>(batch.clock->ahead_nanoseconds));
    }
    if (done) done = put_meta("clock_adopted", static_cast<std::uint64_t>(batch.clock->adopted));
  }
  return done;
}

Result<void> Writer::put_meta(std::string_view name, std::uint64_t value) {
  return meta_.bind(name).bind(value).run();
}

Result<void> Writer::put_blob(const Blob& blob) {
  if (auto done = blob_.bind(blob.key).bind_blob(blob.bytes).run(); !done) return done;
  if (::sqlite3_changes(database_) > 0) return {};
  select_blob_.bind(blob.key);
  const bool same = select_blob_.next() && select_blob_.bytes(0) == blob.bytes;
  Result<void> result;
  if (select_blob_.failed()) {
    result = select_blob_.error();
  } else if (!same) {
    result = fail(Code::io, "other bytes are stored under the key of a request");
  }
  select_blob_.reset();
  return result;
}

Result<void> Writer::put_job(const JobRow& row) {
  const wire::JobRecord& record = row.record;
  const std::int64_t key = row_key(record.id(), record.restarts());
  const bool live = holds_something(record) || completes(record);
  const std::int64_t ended = holds_something(record) ? 0 : record.end_time();
  const std::string bytes = record.SerializeAsString();
  Result<void> done = job_.bind(key)
                          .bind(record.id())
                          .bind(record.uid())
                          .bind(record.submit_time())
                          .bind(record.start_time())
                          .bind(ended)
                          .bind(std::string_view(record.state()))
                          .bind(std::string_view(record.partition()))
                          .bind(std::string_view(row.account))
                          .bind(std::string_view(row.name))
                          .bind_if(record.has_array_job_id(), record.array_job_id())
                          .bind_if(record.has_array_task_id(), record.array_task_id())
                          .bind_if(record.has_het_job_id(), record.het_job_id())
                          .bind(record.het_offset())
                          .bind(std::string_view(record.token()))
                          .bind(record.asked_blob())
                          .bind(std::int64_t{live})
                          .bind(last_key_of(record.id()))
                          .bind_blob(bytes)
                          .run();
  if (done && record.restarts() > 0) done = retire_earlier(record, key);
  return done;
}

Result<void> Writer::retire_earlier(const wire::JobRecord& record, std::int64_t key) {
  const std::int64_t first = first_key_of(record.id());
  std::vector<JobRow> open;
  Result<void> done;
  earlier_.bind(first).bind(key);
  while (done && earlier_.next()) {
    Result<JobRow> row = job_row(earlier_, 0);
    if (!row) {
      done = pass(std::move(row.error()));
    } else if (holds_something(row->record)) {
      open.push_back(std::move(*row));
    }
  }
  if (earlier_.failed()) done = earlier_.error();
  earlier_.reset();
  // A run whose end was not put before the next one began: history must not show it as running.
  for (JobRow& row : open) {
    if (!done) break;
    row.record.set_state(record.preempted_by() != 0     ? "PREEMPTED"
                         : record.failed_node().empty() ? "REQUEUED"
                                                        : "NODE_FAIL");
    row.record.set_end_time(record.end_time() > 0
                                ? record.end_time()
                                : std::max({record.begin_time(), row.record.start_time(),
                                            row.record.submit_time(), std::int64_t{1}}));
    row.record.clear_flags();
    row.record.clear_waiting_nodes();
    done = put_job(row);
  }
  if (done) done = retire_.bind(first).bind(key).run();
  return done;
}

Result<void> Writer::put_step(const wire::StepRecord& record) {
  const std::string bytes = record.SerializeAsString();
  return step_.bind(record.job_id())
      .bind(record.attempt())
      .bind(record.step_id())
      .bind_blob(bytes)
      .run();
}

Result<void> Writer::delete_job(std::uint32_t id) {
  if (auto done = delete_job_.bind(first_key_of(id)).bind(last_key_of(id)).run(); !done) {
    return done;
  }
  return delete_steps_.bind(id).run();
}

Result<std::size_t> Writer::purge_jobs(std::int64_t before, std::size_t most) {
  std::vector<std::uint32_t> ids;
  old_jobs_.bind(before).bind(static_cast<std::uint64_t>(most));
  while (old_jobs_.next()) ids.push_back(static_cast<std::uint32_t>(old_jobs_.number(0)));
  Result<void> done;
  if (old_jobs_.failed()) done = old_jobs_.error();
  old_jobs_.reset();
  for (const std::uint32_t id : ids) {
    if (done) done = delete_job(id);
  }
  if (!done) return pass(std::move(done.error()));
  return ids.size();
}

Result<std::size_t> Writer::purge_blobs(std::size_t most) {
  auto done = delete_blobs_.bind(static_cast<std::uint64_t>(most)).run();
  if (!done) return pass(std::move(done.error()));
  return static_cast<std::size_t>(::sqlite3_changes(database_));
}

}  // namespace berth::store
