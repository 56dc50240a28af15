#include "store/history.h"

#include <sys/types.h>

#include <functional>

#include "store/schema.h"
#include "store/sqlite.h"

namespace berth::store {
namespace {

constexpr std::size_t kMostValues = 20000;  // SQLite takes 32766 in one statement

/// A WHERE clause that grows, and what is bound to its question marks. Values never become text of
/// the statement.
class Where {
 public:
  void add(const std::string& condition) {
    sql_ += sql_.empty() ? " WHERE (" : " AND (";
    sql_ += condition + ")";
  }
  template <class T>
  void value(T bound) {
    binds_.push_back([bound](Statement& statement) { statement.bind(bound); });
  }
  template <class T>
  void one_of(const std::string& column, const std::vector<T>& values) {
    if (values.empty()) return;
    std::string marks;
    for (const T& each : values) {
      marks += marks.empty() ? "?" : ", ?";
      if constexpr (std::is_same_v<T, std::string>) {
        value(std::string_view(each));
      } else {
        value(each);
      }
    }
    add(column + " IN (" + marks + ")");
  }
  [[nodiscard]] const std::string& sql() const { return sql_; }
  [[nodiscard]] std::size_t values() const { return binds_.size(); }
  void bind(Statement& statement) const {
    for (const auto& bind_one : binds_) bind_one(statement);
  }

 private:
  std::string sql_;
  std::vector<std::function<void(Statement&)>> binds_;
};

void add_ids(Where& where, const std::vector<FilterId>& ids) {
  std::string any;
  for (const FilterId& id : ids) {
    if (!any.empty()) any += " OR ";
    if (id.array_task) {
      // The pending rest of the array has no task of its own: the caller knows what is in it.
      any += "(array_job = ? AND (array_task = ? OR array_task IS NULL))";
      where.value(id.id);
      where.value(*id.array_task);
    } else if (id.het_offset) {
      any += "(het_job = ? AND het_offset = ?)";
      where.value(id.id);
      where.value(*id.het_offset);
    } else {
      any += "(key >= ? AND key <= ?) OR array_job = ? OR het_job = ?";
      where.value(first_key_of(id.id));
      where.value(last_key_of(id.id));
      where.value(id.id);
      where.value(id.id);
    }
  }
  if (!any.empty()) where.add(any);
}

}  // namespace

struct History::Inside {
  Database database;
  Statement select_steps;
  Statement select_blob;
};

History::History(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
History::History(History&&) noexcept = default;
History& History::operator=(History&&) noexcept = default;
History::~History() = default;

Result<History> History::open(const std::string& directory) {
  auto inside = std::make_unique<Inside>();
  Result<Database> database = open_database(database_path(directory), SQLITE_OPEN_READONLY);
  if (!database) return pass(std::move(database.error()));
  inside->database = std::move(*database);
  ::sqlite3_busy_timeout(inside->database.get(), 2000);
  if (auto good = check_version(inside->database.get()); !good) {
    return pass(std::move(good.error()));
  }
  Result<Statement> steps = Statement::make(inside->database.get(), kSelectSteps);
  Result<Statement> blob = Statement::make(inside->database.get(), kSelectBlob);
  if (!steps) return pass(std::move(steps.error()));
  if (!blob) return pass(std::move(blob.error()));
  inside->select_steps = std::move(*steps);
  inside->select_blob = std::move(*blob);
  return History(std::move(inside));
}

Result<Page> History::jobs(const Filter& filter) {
  Where where;
  add_ids(where, filter.ids);
  where.one_of("uid", filter.uids);
  where.one_of("state", filter.states);
  where.one_of("partition", filter.partitions);
  where.one_of("account", filter.accounts);
  where.one_of("name", filter.names);
  if (filter.from > 0) {
    where.add("ended = 0 OR ended >= ?");
    where.value(filter.from);
  }
  if (filter.until > 0) {
    where.add("submitted <= ?");
    where.value(filter.until);
  }
  if (!filter.earlier_runs) where.add("latest = 1");
  if (filter.after > 0) {
    where.add("+key > ?");
    where.value(filter.after);
  }
  if (where.values() > kMostValues) return fail(Code::limit, "too many names in one question");

  // "+key": SQLite shall find rows by the filter's index and sort them, not walk the whole table
  // for the sake of the order.
  const bool narrow = !filter.ids.empty() || !filter.uids.empty() || filter.from > 0;
  const std::string sql = "SELECT record, name, account, key FROM jobs" + where.sql() +
                          (narrow ? " ORDER BY +key" : " ORDER BY key") + " LIMIT ?";
  Result<Statement> select = Statement::make(inside_->database.get(), sql);
  if (!select) return pass(std::move(select.error()));
  where.bind(*select);
  select->bind(static_cast<std::uint64_t>(filter.most) + 1);

  Page page;
  std::uint64_t last = 0;
  while (select->next()) {
    if (page.jobs.size() == filter.most) {
      page.next = last;
      return page;
    }
    Result<JobRow> row = job_row(*select, 0);
    if (!row) return pass(std::move(row.error()));
    last = static_cast<std::uint64_t>(select->number(3));
    row->key = last;
    page.jobs.push_back(std::move(*row));
  }
  if (select->failed()) return select->error();
  return page;
}

Result<std::vector<wire::StepRecord>> History::steps(std::uint32_t job_id, std::uint32_t attempt) {
  return read_steps(inside_->select_steps, job_id, attempt);
}

Result<wire::Asked> History::asked(std::uint64_t key) {
  return read_asked(inside_->select_blob, key);
}

}  // namespace berth::store
