#include "controller/offline.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <vector>

#include "controller/identities.h"
#include "controller/setup.h"
#include "net/paths.h"
#include "store/backup.h"
#include "store/check.h"
#include "store/store.h"

namespace berth::controller {
namespace {

/// Beside the store, and as precious: without them every node has to join again.
const std::vector<std::string> kFilesBeside = {"cluster.key", kAuthorityFile, "identities"};
constexpr std::size_t kMostNamed = 20;

struct Place {
  std::string state;
  std::string beside;  // as the controller's own
};

Result<Place> find_place(const Options& options) {
  Place place{.state = options.state, .beside = ""};
  const std::string conf = options.conf.empty() ? net::find_conf() : options.conf;
  if (conf.empty()) {
    if (!place.state.empty()) return place;
    return fail(Code::bad_config, "no slurm.conf is known", "name it with -f");
  }
  auto setup = read_setup(conf, true);
  if (!setup) return pass(std::move(setup.error()));
  const std::string run = options.run.empty() ? net::run_directory(setup->conf_path) : options.run;
  if (::access((run + "/berth.acked").c_str(), F_OK) == 0) place.beside = run;
  if (!place.state.empty()) return place;
  // That of `berth up` is beside the slurm.conf it made.
  const std::string made =
      (std::filesystem::path(setup->conf_path).parent_path() / "state").string();
  place.state =
      ::access((made + "/berth.db").c_str(), F_OK) == 0 ? made : setup->keys().state_save_location;
  return place;
}

/// What root has made belongs to whom the directory belongs to: SlurmUser.
void give_to_owner(const std::string& directory) {
  struct stat about{};
  if (::geteuid() != 0 || ::stat(directory.c_str(), &about) != 0) return;
  std::error_code error;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory, error)) {
    [[maybe_unused]] const int ignored = ::lchown(file.path().c_str(), about.st_uid, about.st_gid);
  }
}

Result<int> check(const Place& place) {
  const auto checked = store::check(place.state);
  if (!checked) return pass(checked.error());
  for (const std::string& trouble : checked->troubles) fmt::print("{}\n", trouble);
  fmt::print("{}: {} jobs, {} steps, {} scripts, {} commits, start {}: {}\n", place.state,
             checked->jobs, checked->steps, checked->scripts, checked->commits, checked->epoch,
             checked->troubles.empty() ? "whole" : "DAMAGED");
  if (checked->troubles.empty()) return 0;
  fmt::print(
      "what to do: `berth restore FILE` puts a backup in its place; where only the last "
      "commits are missing,\n`berthctld --accept-loss` goes on without them\n");
  return 1;
}

Result<int> accept_loss(const Place& place) {
  auto store = store::Store::open(place.state, {.beside = place.beside, .accept_loss = true});
  if (!store) return pass(std::move(store.error()));
  const auto loaded = store->load(std::time(nullptr));
  if (!loaded) return pass(loaded.error());
  fmt::print(
      "{} is taken as it is: the next job has the id {}, jobs that wait are held "
      "(`scontrol release ID` lets one run)\n",
      place.state, loaded->next_job_id);
  return 0;
}

Result<int> back_up(const Place& place, const std::string& file) {
  const auto made = store::make_backup(place.state, file, kFilesBeside);
  if (!made) return pass(made.error());
  fmt::print(
      "{}: {} jobs, {} commits, {} bytes; it has the keys of the cluster: keep it as safe "
      "as {}\n",
      file, made->jobs, made->commits, made->bytes, place.state);
  return 0;
}

Result<int> restore(const Place& place, const std::string& file) {
  const auto done =
      store::restore_backup(place.state, file, kAuthorityFile, {.beside = place.beside});
  if (!done) return pass(done.error());
  fmt::print(
      "restored {} jobs as they were at {:%F %T}; {} of them wait and are held, since they "
      "may have run\n(`scontrol release ID` lets one run)\n",
      done->jobs, fmt::localtime(static_cast<std::time_t>(done->made)), done->held);
  if (done->compared) {
    fmt::print("lost: {} jobs that were submitted since{}", done->lost.size(),
               done->lost.empty() ? "" : ":");
    for (std::size_t i = 0; i < done->lost.size() && i < kMostNamed; ++i) {
      fmt::print("{}{}", i == 0 ? " " : ",", done->lost[i]);
    }
    fmt::print("{}; what happened since to {} others\n", done->lost.size() > kMostNamed ? ",…" : "",
               done->changed);
  } else if (done->acknowledged > done->commits) {
    fmt::print("lost: the {} commits since; what was in the place of the backup cannot be read\n",
               done->acknowledged - done->commits);
  } else {
    fmt::print("lost: whatever was stored since; nothing was here that could be compared\n");
  }
  fmt::print("job ids go on at {}: {} to {} are not handed out again\n", done->next_job_id,
             done->next_job_id_then, done->next_job_id - 1);
  for (const std::string& name : done->files) fmt::print("{} came from the backup\n", name);
  if (!done->replaced.empty()) fmt::print("what was here is in {}\n", done->replaced);
  fmt::print("start berthctld now\n");
  return 0;
}

}  // namespace

Result<int> run_offline(const Options& options) {
  ::umask(077);
  const auto place = find_place(options);
  if (!place) return pass(place.error());
  if (!options.backup.empty()) return back_up(*place, options.backup);
  const auto done = options.check         ? check(*place)
                    : options.accept_loss ? accept_loss(*place)
                                          : restore(*place, options.restore);
  give_to_owner(place->state);
  return done;
}

}  // namespace berth::controller
