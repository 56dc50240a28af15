#include "store/backup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>

#include "base/fd.h"
#include "base/whole_file.h"
#include "store/acknowledged.h"
#include "store/check.h"
#include "store/claim.h"
#include "store/copy.h"
#include "store/schema.h"
#include "store/sqlite.h"

namespace berth::store {
namespace {

namespace fs = std::filesystem;

/// The first column of the first row; 0 = there is none.
Result<std::int64_t> number_of(sqlite3* database, std::string_view sql) {
  Result<Statement> ask = Statement::make(database, sql);
  if (!ask) return pass(std::move(ask.error()));
  const bool found = ask->next();
  if (ask->failed()) return ask->error();
  return found ? ask->number(0) : 0;
}

/// key of the row → the record.
using Jobs = std::map<std::int64_t, std::string>;

Result<Jobs> jobs_of(const std::string& path) {
  Result<Database> database = open_database(path, SQLITE_OPEN_READWRITE);
  if (!database) return pass(std::move(database.error()));
  if (auto good = check_version(database->get()); !good) return pass(std::move(good.error()));
  Result<Statement> select = Statement::make(database->get(), "SELECT key, record FROM jobs");
  if (!select) return pass(std::move(select.error()));
  Jobs all;
  while (select->next()) all.emplace(select->number(0), select->bytes(1));
  if (select->failed()) return select->error();
  return all;
}

Result<void> put_files(const std::string& copy, const std::string& directory,
                       const std::vector<std::string>& names) {
  Result<Database> database = open_database(copy, SQLITE_OPEN_READWRITE);
  if (!database) return pass(std::move(database.error()));
  auto done =
      execute(database->get(), "CREATE TABLE files (name TEXT PRIMARY KEY, bytes BLOB NOT NULL)");
  if (!done) return done;
  Result<Statement> put = Statement::make(database->get(), "INSERT INTO files VALUES (?, ?)");
  if (!put) return pass(std::move(put.error()));
  for (const std::string& name : names) {
    const auto bytes = read_private_file(fmt::format("{}/{}", directory, name));
    if (!bytes) return pass(bytes.error());
    if (bytes->empty()) continue;
    done = put->bind(std::string_view(name)).bind_blob(*bytes).run();
    if (!done) return done;
  }
  Result<Statement> when =
      Statement::make(database->get(), "INSERT INTO meta VALUES ('backup', ?)");
  if (!when) return pass(std::move(when.error()));
  return when->bind(static_cast<std::int64_t>(std::time(nullptr))).run();
}

/// Where what a restore replaces goes; made when the first file goes there.
class Aside {
 public:
  explicit Aside(std::string directory) : directory_(std::move(directory)) {}
  /// "" = nothing went there.
  [[nodiscard]] const std::string& path() const { return path_; }
  Result<void> make() {
    for (int i = 0; path_.empty(); ++i) {
      std::string path = fmt::format("{}/replaced-{}{}", directory_, std::time(nullptr),
                                     i == 0 ? "" : fmt::format("-{}", i));
      if (::mkdir(path.c_str(), 0700) == 0) {
        path_ = std::move(path);
      } else if (errno != EEXIST) {
        return fail(Code::io, fmt::format("{}: {}", path, std::strerror(errno)));
      }
    }
    return {};
  }
  /// Moves a file of the directory there, if it exists.
  Result<void> take(const std::string& name) {
    const std::string from = fmt::format("{}/{}", directory_, name);
    if (!fs::exists(from)) return {};
    if (auto made = make(); !made) return made;
    std::error_code error;
    fs::rename(from, fmt::format("{}/{}", path_, name), error);
    if (error) return fail(Code::io, fmt::format("{}: {}", from, error.message()));
    return {};
  }

 private:
  std::string directory_;
  std::string path_;
};

/// The files beside the store, by name.
using Files = std::map<std::string, std::string>;

Result<Files> files_of(const std::string& backup) {
  Result<Database> database = open_database(backup, SQLITE_OPEN_READWRITE);
  if (!database) return pass(std::move(database.error()));
  Result<Statement> select = Statement::make(database->get(), "SELECT name, bytes FROM files");
  if (!select) {
    return fail(Code::bad_value, fmt::format("{} is not a backup of berth", backup),
                "`berth backup FILE` makes one");
  }
  Files files;
  while (select->next()) {
    std::string name(select->bytes(0));
    if (name.empty() || name.find('/') != std::string::npos) continue;
    files.emplace(std::move(name), select->bytes(1));
  }
  if (select->failed()) return select->error();
  return files;
}

/// Puts the files of the backup where they are not. Those of the same cluster that are there stay:
/// they may be newer, and know of machines whose identity was revoked since. Those of another
/// cluster go aside: a controller that was started on an empty disk has made some.
Result<std::vector<std::string>> take_files(const Files& files, const std::string& directory,
                                            const std::string& names_cluster, Aside& aside) {
  const auto path_of = [&](const std::string& name) {
    return fmt::format("{}/{}", directory, name);
  };
  const auto cluster = files.find(names_cluster);
  if (cluster != files.end() && fs::exists(path_of(names_cluster))) {
    const auto here = read_private_file(path_of(names_cluster));
    if (!here) return pass(here.error());
    if (*here != cluster->second) {
      for (const auto& [name, bytes] : files) {
        if (auto done = aside.take(name); !done) return pass(std::move(done.error()));
      }
    }
  }
  std::vector<std::string> taken;
  for (const auto& [name, bytes] : files) {
    if (fs::exists(path_of(name))) continue;
    if (auto done = write_whole_file(path_of(name), bytes, 0600); !done) {
      return pass(std::move(done.error()));
    }
    taken.push_back(name);
  }
  return taken;
}

/// What the replaced store has and the backup has not.
void compare(const Jobs& before, const Jobs& now, Restored& out) {
  for (const auto& [key, record] : before) {
    const auto id = static_cast<std::uint32_t>(key >> 24);
    const auto found = now.find(key);
    if (found == now.end()) {
      const auto other = now.lower_bound(first_key_of(id));
      const bool known = other != now.end() && other->first <= last_key_of(id);
      if (known) {
        ++out.changed;
      } else if (out.lost.empty() || out.lost.back() != id) {
        out.lost.push_back(id);
      }
    } else if (found->second != record) {
      ++out.changed;
    }
  }
  out.compared = true;
}

/// The files of the old store, so that nothing of it is left and nothing of it is lost.
Result<void> put_store_aside(const std::string& directory, Aside& aside) {
  std::error_code error;
  if (fs::file_size(database_path(directory), error) == 0) return {};
  const std::string name = fs::path(database_path(directory)).filename();
  for (const char* end : {"", "-wal", "-shm"}) {
    if (auto done = aside.take(name + end); !done) return done;
  }
  if (auto made = aside.make(); !made) return made;
  // A copy: the one in its place says what was acknowledged until the restored store goes on.
  fs::copy_file(AcknowledgedFile::path(directory), AcknowledgedFile::path(aside.path()), error);
  return {};
}

/// A file with all keys of the cluster that is removed unless it gets its own name.
struct Part {
  explicit Part(std::string name) : path(std::move(name)) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  const std::string path;
};

}  // namespace

Result<BackedUp> make_backup(const std::string& directory, const std::string& file,
                             const std::vector<std::string>& names) {
  if (fs::exists(file)) return fail(Code::bad_value, fmt::format("{} is there already", file));
  const std::string path = database_path(directory);
  if (!fs::exists(path)) return fail(Code::io, fmt::format("there is no store in {}", directory));
  const Part part(file + ".part");
  auto done = copy_database(path, part.path);
  if (done) done = put_files(part.path, directory, names);
  if (done) done = change_copy(part.path, {});
  if (!done) return pass(std::move(done.error()));
  // Read again: a backup that nobody can restore is none.
  const Result<Checked> checked = check_file(part.path);
  if (!checked) return pass(checked.error());
  if (!checked->troubles.empty()) {
    return fail(Code::io, fmt::format("the store is damaged: {}", checked->troubles.front()),
                kDamagedHint);
  }
  std::error_code error;
  fs::rename(part.path, file, error);
  if (error) return fail(Code::io, fmt::format("{}: {}", file, error.message()));
  if (done = sync_directory(fs::absolute(file).parent_path()); !done) {
    return pass(std::move(done.error()));
  }
  return BackedUp{checked->jobs, checked->commits, fs::file_size(file, error)};
}

Result<Restored> restore_backup(const std::string& directory, const std::string& file,
                                const std::string& names_cluster, const Opening& opening) {
  Restored out;
  {
    std::error_code error;
    if (!fs::exists(file, error)) return fail(Code::io, fmt::format("there is no {}", file));
    Result<Fd> claimed = claim_store(directory);
    if (!claimed) {
      claimed.error().hint = "stop it first";
      return pass(std::move(claimed.error()));
    }
    const Result<Checked> checked = check_file(file);
    if (!checked) return pass(checked.error());
    if (!checked->troubles.empty()) {
      return fail(Code::io, fmt::format("{} is damaged: {}", file, checked->troubles.front()));
    }
    out.jobs = checked->jobs;
    out.commits = checked->commits;
    {
      Result<Database> backup = open_database(file, SQLITE_OPEN_READWRITE);
      if (!backup) return pass(std::move(backup.error()));
      const auto meta = [&](std::string_view name) {
        return number_of(backup->get(),
                         fmt::format("SELECT value FROM meta WHERE name = '{}'", name));
      };
      out.made = meta("backup").value_or(0);
      out.next_job_id_then = static_cast<std::uint32_t>(meta("next_job_id").value_or(0));
    }
    if (const auto told = AcknowledgedFile::read(directory); told && *told) {
      out.acknowledged = (*told)->commits;
    }
    const std::string path = database_path(directory);
    if (fs::file_size(path) > 0) {
      const auto before = jobs_of(path);
      const auto now = jobs_of(file);
      if (before && now) compare(*before, *now, out);
    }
    const auto files = files_of(file);
    if (!files) return pass(files.error());
    const std::string made = path + "-new";
    auto done = copy_database(file, made);
    if (done) {
      done = change_copy(made, {"DROP TABLE files", "DELETE FROM meta WHERE name = 'backup'"});
    }
    if (!done) return pass(std::move(done.error()));
    Aside aside(directory);
    auto taken = take_files(*files, directory, names_cluster, aside);
    if (!taken) return pass(std::move(taken.error()));
    out.files = std::move(*taken);
    done = put_store_aside(directory, aside);
    if (!done) return pass(std::move(done.error()));
    out.replaced = aside.path();
    fs::rename(made, path, error);
    if (error) return fail(Code::io, fmt::format("{}: {}", path, error.message()));
  }
  Opening going_on = opening;
  going_on.accept_loss = true;
  auto store = Store::open(directory, going_on);
  if (!store) return pass(std::move(store.error()));
  auto loaded = store->load(std::time(nullptr));
  if (!loaded) return pass(std::move(loaded.error()));
  out.next_job_id = loaded->next_job_id;
  for (const JobRow& row : loaded->jobs) out.held += row.record.state() == "PENDING" ? 1 : 0;
  return out;
}

}  // namespace berth::store
