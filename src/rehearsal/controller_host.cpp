// What controller_host.h promises.
#include "rehearsal/controller_host.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "auth/ticket.h"
#include "rehearsal/disk.h"

namespace berth::rehearsal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kTurnsBetweenLooks = 16;

/// Files here are written and read thousands of times a second: memory, where there is such a
/// place.
std::string place_for_files() {
  return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

}  // namespace

Result<std::unique_ptr<Site>> Site::open(const std::string& slurm_conf) {
  Disk::install();
  std::string folder = place_for_files() + "/berth-rehearsal-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return fail(Code::io, folder);
  std::unique_ptr<Site> site(new Site(folder));
  std::ofstream(folder + "/slurm.conf") << slurm_conf;
  auto setup = controller::read_setup(folder + "/slurm.conf", true);
  if (!setup) return pass(std::move(setup.error()));
  site->setup_ = std::move(*setup);
  // Its nodes are machines that can be lost.
  site->setup_.policy.emulated = false;
  // As Slurm, a job that was requeued is not begun for two minutes: with short leases that would
  // hide whether anybody waits for them.
  site->setup_.policy.requeue_delay = 1;
  std::filesystem::create_directory(site->blank_store());
  if (auto made = site->identities(); !made) return pass(std::move(made.error()));
  auto key = auth::load_or_create_cluster_key(site->blank_store() + "/cluster.key");
  if (!key) return pass(std::move(key.error()));
  site->cluster_key_ = std::move(*key);
  auto store = store::Store::open(site->blank_store());
  if (!store) return pass(std::move(store.error()));
  return site;
}

Result<controller::Identities> Site::identities() const {
  return controller::Identities::load(blank_store(), setup_.node_config.cluster_name());
}

Site::~Site() {
  std::filesystem::remove_all(folder_);
}

ControllerHost::ControllerHost(Site& site, Agenda& agenda, Network& network, Random& random,
                               Witness& witness)
    : site_(site),
      agenda_(agenda),
      network_(network),
      random_(random),
      witness_(witness),
      time_(agenda),
      folder_(site.folder() + "/seed"),
      files_(site.blank_store()) {
  log_.set_level(controller::LogLevel::error);
  if (!witness.talks()) (void)log_.open("/dev/null");
  std::filesystem::create_directory(folder_);
}

ControllerHost::~ControllerHost() {
  Disk::set_full(false);
  engine_.reset();
  std::filesystem::remove_all(folder_);
}

void ControllerHost::keep_files(bool power_cut) {
  const std::string fresh = fmt::format("{}/{}", folder_, ++lives_);
  if (power_cut) {
    Disk::copy_synced(files_, fresh, random_);
  } else {
    Disk::copy_written(files_, fresh);
  }
  files_ = fresh;
}

void ControllerHost::start() {
  if (engine_) return;
  witness_.say("controller starts");
  ++witness_.counts.starts;
  messages_left_.reset();  // it was meant for the one before
  network_.set_power(kController, true);
  Disk::set_full(false);
  if (files_ == site_.blank_store()) keep_files(false);
  auto store = store::Store::open(files_);
  if (!store) return witness_.broken("lost: " + std::string(store.error().what()));
  const auto epoch = store->raise_epoch();
  if (!epoch) return witness_.broken("lost: " + std::string(epoch.error().what()));
  auto identities = site_.identities();
  if (!identities) return witness_.broken(std::string(identities.error().what()));
  clock_.emplace(time_);
  engine_ = std::make_unique<controller::Engine>(
      controller::Parts{.clock = *clock_,
                        .log = log_,
                        .crash = crash_,
                        .users = site_.users(),
                        .messenger = *this,
                        .published = published_,
                        .requests = requests_,
                        .setup = site_.setup(),
                        .store = std::move(*store),
                        .cluster_key = site_.cluster_key(),
                        .identities = std::move(*identities),
                        .addresses = {},
                        .state = files_,
                        .epoch = *epoch,
                        .emulate = false,
                        .host = "controller",
                        .shut = [] {},
                        .limit_scripts = [](std::size_t) {},
                        .set_trust = [](const auto&) {},
                        .set_certificates = [](const auto&) {}});
  if (auto done = engine_->load(); !done) {
    return witness_.broken("lost: " + std::string(done.error().what()));
  }
  witness_.look_at_store(engine_->state());
  network_.listen(kController,
                  [this](std::shared_ptr<Socket> socket) { accept(std::move(socket)); });
  set_alarm();
}

void ControllerHost::kill() {
  if (!engine_) return;
  witness_.say("controller is killed");
  end(false);
}

void ControllerHost::lose_power() {
  if (!engine_) return;
  witness_.say("the controller's machine loses its power");
  network_.set_power(kController, false);
  end(true);
}

void ControllerHost::end(bool power_cut) {
  network_.stop_listening(kController);
  agenda_.cancel(turn_);
  agenda_.cancel(alarm_);
  messages_left_.reset();
  for (auto& [peer, link] : links_) {
    if (power_cut) {
      link.socket->vanish();
    } else {
      link.socket->close();
    }
  }
  links_.clear();
  const std::string before = files_;
  keep_files(power_cut);
  engine_.reset();
  Disk::forget(before);
  std::filesystem::remove_all(before);
}

void ControllerHost::fill_disk(bool full) {
  witness_.say(full ? "the controller's disk is full" : "there is room on the controller's disk");
  Disk::set_full(full);
}

void ControllerHost::stop_in_order() {
  if (!engine_) return;
  witness_.say("controller is stopped in order");
  try {
    engine_->let_leases_rest();
  } catch (const Killed&) {
  }
  kill();
}

void ControllerHost::accept(std::shared_ptr<Socket> socket) {
  const controller::Peer peer = ++last_peer_;
  Link& link = links_[peer];
  link.standing.role =
      socket->uid() == 0 ? controller::Role::administrator : controller::Role::user;
  link.socket = socket;
  socket->start({.frame = [this, peer](std::string_view bytes) { take(peer, bytes); },
                 .closed = [this, peer] { closed(peer); }});
}

void ControllerHost::take(controller::Peer peer, std::string_view bytes) {
  const auto found = links_.find(peer);
  wire::Frame frame;
  if (found == links_.end() ||
      wire::scan_frame(bytes, wire::kMostBytes, frame) != wire::Scan::complete) {
    return;
  }
  Link& link = found->second;
  if (link.busy) {
    link.waiting.emplace_back(frame.kind, frame.payload);
  } else {
    hand_on(peer, link, frame.kind, std::string(frame.payload));
  }
}

void ControllerHost::hand_on(controller::Peer peer, Link& link, wire::Kind kind,
                             std::string payload) {
  if (!controller::may_send(controller::rule_of(kind), link.standing)) {
    link.socket->close();
    return closed(peer);
  }
  if (!link.standing.registered) link.busy = true;
  const std::uint32_t uid = link.socket->uid();
  controller::Request request{.peer = peer,
                              .caller = {uid, uid, uid == 0, controller::Proof::socket},
                              .kind = kind,
                              .payload = std::move(payload)};
  if (kind == wire::Kind::RegisterNodes) {
    request.from = fmt::format("10.0.0.{}", link.socket->other_host());
  }
  engine_->request(std::move(request));
  turn_soon();
}

void ControllerHost::closed(controller::Peer peer) {
  const auto node = links_.extract(peer);
  if (node.empty() || !node.mapped().kept) return;
  engine_->closed(peer);
  turn_soon();
}

void ControllerHost::turn_soon() {
  if (turn_ != Agenda::kNone) return;
  turn_ = agenda_.after(random_.skewed(microseconds(200), milliseconds(20)), [this] { turn(); });
}

void ControllerHost::set_alarm() {
  agenda_.cancel(alarm_);
  const Moment when = engine_->wakes_at().time_since_epoch();
  alarm_ = agenda_.at(when, [this] { turn(); });
}

void ControllerHost::turn() {
  agenda_.cancel(turn_);
  agenda_.cancel(alarm_);
  try {
    engine_->wake();
  } catch (const Killed&) {
    return kill();
  }
  witness_.look_at_places(engine_->state(), clock_->seconds());
  if (++witness_.counts.turns % kTurnsBetweenLooks == 0) {
    witness_.look_at_counters(engine_->state());
  }
  set_alarm();
}

void ControllerHost::act(std::vector<controller::Act> acts) {
  for (controller::Act& act : acts) {
    if (messages_left_ == 0) throw Killed{};
    const bool message = !act.bytes.empty();
    act_on(act);
    // Between two messages it may still have done something.
    if (message && messages_left_ && --*messages_left_ == 0 && random_.one_in(2)) throw Killed{};
  }
}

void ControllerHost::act_on(controller::Act& act) {
  const auto found = links_.find(act.peer);
  if (found == links_.end()) {
    // It closed before anybody said that it matters.
    if (act.keep || act.agent) {
      engine_->closed(act.peer);
      turn_soon();
    }
    return;
  }
  Link& link = found->second;
  if (act.keep || act.agent) link.kept = true;
  if (act.agent) link.standing.registered = true;
  if (!act.bytes.empty()) {
    // One frame at a time: that is how they are lost.
    std::string_view rest = act.bytes;
    while (!rest.empty()) {
      const std::size_t size = wire::frame_bytes(rest);
      link.socket->send(std::string(rest.substr(0, size)));
      rest.remove_prefix(size);
    }
  }
  if (act.close) {
    link.socket->close();
    return closed(act.peer);
  }
  if (!act.answered) return;
  link.busy = false;
  while (!link.waiting.empty() && !link.busy) {
    auto [kind, payload] = std::move(link.waiting.front());
    link.waiting.pop_front();
    hand_on(act.peer, link, kind, std::move(payload));
    if (!links_.contains(act.peer)) return;
  }
}

}  // namespace berth::rehearsal
