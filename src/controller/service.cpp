#include "controller/service.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "auth/ticket.h"
#include "base/whole_file.h"
#include "net/paths.h"
#include "store/store.h"

namespace berth::controller {
namespace {

Result<void> make_state_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return fail(Code::io, fmt::format("cannot make the directory {}: {}", path, error.message()));
  }
  // Scripts and environments of all users are in there.
  if (::chmod(path.c_str(), 0700) != 0) {
    return fail(Code::io, fmt::format("cannot protect {}: {}", path, std::strerror(errno)));
  }
  return {};
}

/// Other machines are served where there are any: a pretended cluster and the single node of this
/// machine need no open port.
bool has_other_machines(const Setup& setup, bool emulate, const std::string& host) {
  if (emulate) return false;
  if (setup.keys().controller.contains("listen")) return true;
  return setup.cluster.nodes.size() > 1 ||
         (setup.cluster.nodes.size() == 1 && setup.cluster.nodes.front().name != host &&
          setup.cluster.nodes.front().name != "localhost");
}

/// What the side towards other machines needs: a certificate made for this run.
Result<Front::Remote> remote_side(const Identities& identities, const std::string& cluster_key,
                                  const std::string& host) {
  const auto mine = identities.authority().issue_controller(host);
  if (!mine) return pass(mine.error());
  auto context = tls::Context::controller(*mine, identities.authority().certificate());
  if (!context) return pass(std::move(context.error()));
  return Front::Remote{.context = std::move(*context), .cluster_key = cluster_key};
}

/// Commands of other machines find it beside their slurm.conf; here it is put there for them.
void publish_authority(Log& log, const std::string& conf, const tls::Authority& authority) {
  const std::string path = net::authority_file(conf);
  if (auto done = write_whole_file(path, authority.certificate(), 0644); !done) {
    log.info("{}: `berth join` puts it on nodes; login machines need a copy", done.error().what());
  }
}

/// A store in which nothing was ever done is not that of a cluster whose machines know another
/// authority: it would hand out the same job ids again, to nodes that work for another controller.
Result<void> check_authority(const ServiceOptions& options, const store::Store& store) {
  const std::string path = net::authority_file(options.conf);
  std::ifstream file(path);
  const std::string known{std::istreambuf_iterator<char>(file), {}};
  if (known.empty() || !store.blank()) return {};
  const auto own = read_private_file(authority_path(options.state));
  if (!own) return pass(own.error());
  if (own->contains(known)) return {};
  return fail(
      Code::conflict,
      fmt::format("there is nothing in {}, and {} is the authority of a cluster that has another "
                  "store",
                  options.state, path),
      "start berthctld on the machine that has the store, or with its StateSaveLocation; if it is "
      "lost, `berth restore FILE` puts a backup in its place; `berthctld --accept-loss` begins "
      "anew without any job, and then every node has to join again");
}

/// Where other machines find this controller.
std::vector<std::string> own_addresses(const conf::DaemonKeys& keys) {
  std::vector<std::string> out;
  for (const conf::ControllerHost& host : keys.controllers) {
    out.push_back(
        net::Address::tcp(host.address, static_cast<std::uint16_t>(keys.controller_port)).text());
  }
  return out;
}

/// Whom the state thread will ask for because of this request; nullopt: of nobody, and messages of
/// agents stay in their order. What only administrators may ask for is looked up where it is read.
std::optional<Users::Wanted> users_in(const Request& request) {
  const Who who = rule_of(request.kind).who;
  if (request.kind == wire::Kind::Hello) {
    const auto hello = wire::decode<wire::Hello>(request.payload);
    if (!hello || !hello->has_vouched_uid()) return std::nullopt;
    return Users::Wanted{.uids = {hello->vouched_uid()}};
  }
  if (who != Who::anyone) return std::nullopt;
  Users::Wanted wanted{.uids = {request.caller.uid}};
  if (request.kind == wire::Kind::CancelJobs) {
    if (auto ask = wire::decode<wire::CancelJobs>(request.payload)) {
      wanted.names.assign(ask->users().begin(), ask->users().end());
    }
  }
  if (request.kind == wire::Kind::MakeTokens) {
    if (auto ask = wire::decode<wire::MakeTokens>(request.payload); ask && !ask->user().empty()) {
      wanted.names = {ask->user()};
    }
  }
  return wanted;
}

}  // namespace

Service::Service(net::Loop& loop, Log& log, const TimeSource* time)
    : clock_(time == nullptr ? machine_time_ : *time),
      front_(loop, log, clock_,
             {.to_reader =
                  [this](Request request) {
                    if (request.kind == wire::Kind::MeasureSteps ||
                        request.kind == wire::Kind::MeasuredOnNode) {
                      return gauges_->take(std::move(request));
                    }
                    Reader& reader =
                        request.kind == wire::Kind::ListHistory ? *historian_ : *reader_;
                    reader.ask(std::move(request));
                  },
              .to_state =
                  [this](Request request) {
                    const auto wanted = users_in(request);
                    if (!wanted) return engine_->request(std::move(request));
                    users_.prepare(*wanted, [this, request = std::move(request)]() mutable {
                      engine_->request(std::move(request));
                    });
                  },
              .closed =
                  [this](Peer peer) {
                    engine_->closed(peer);
                    gauges_->closed(peer);
                  },
              .page_taken =
                  [this](Peer peer) {
                    reader_->page_taken(peer);
                    historian_->page_taken(peer);
                  },
              .pages_unwanted =
                  [this](Peer peer) {
                    reader_->pages_unwanted(peer);
                    historian_->pages_unwanted(peer);
                  }}) {}

void Service::stop_in_order() {
  front_.stop_listening();
  engine_->stop();
  engine_->let_leases_rest();
}

Service::~Service() {
  front_.stop_listening();
  users_.stop();  // it hands requests on
  // The engine first, since the reader may wait for it; both before what they use.
  if (engine_) engine_->stop();
  if (reader_) reader_->stop();
  if (historian_) historian_->stop();
  if (gauges_) gauges_->stop();
  front_.drop_all();
  reader_.reset();
  historian_.reset();
  gauges_.reset();
  engine_.reset();
}

Result<std::unique_ptr<Service>> Service::open(net::Loop& loop, Log& log, CrashPoints& crash,
                                               ServiceOptions options) {
  if (auto made = make_state_directory(options.state); !made) return pass(std::move(made.error()));
  const bool other_machines = has_other_machines(options.setup, options.emulate, options.host);
  // Where there are some, an old copy or an empty disk in the store's place is serious, and the run
  // directory is on another disk.
  auto store = store::Store::open(options.state, {.beside = other_machines ? options.run : ""});
  if (!store) return pass(std::move(store.error()));
  if (other_machines) {
    if (auto good = check_authority(options, *store); !good) return pass(std::move(good.error()));
  }
  // Only now, so that a refused start leaves no keys that a backup would have to replace.
  auto key = auth::load_or_create_cluster_key(options.state + "/cluster.key");
  if (!key) return pass(std::move(key.error()));
  auto identities = Identities::load(options.state, options.setup.node_config.cluster_name());
  if (!identities) return pass(std::move(identities.error()));
  store->copy_log_beside();
  const auto epoch = store->raise_epoch();
  if (!epoch) return pass(epoch.error());
  crash.reached("after_epoch");

  std::unique_ptr<Service> service(new Service(loop, log, options.time));
  Service& s = *service;
  const auto port = static_cast<std::uint16_t>(options.setup.keys().controller_port);
  const std::vector<std::string> addresses =
      other_machines ? own_addresses(options.setup.keys()) : std::vector<std::string>();
  s.front_.set_most_script(options.setup.policy.max_script);
  for (const std::string& note : options.setup.notes) log.info("{}", note);
  log.info("berthctld, epoch {}, {} nodes, state in {}", *epoch, options.setup.cluster.nodes.size(),
           options.state);
  std::optional<Front::Remote> remote;
  if (other_machines) {
    auto side = remote_side(*identities, *key, options.host);
    if (!side) return pass(std::move(side.error()));
    remote = std::move(*side);
    publish_authority(log, options.conf, identities->authority());
  }
  s.engine_ = std::make_unique<Engine>(
      Parts{.clock = s.clock_,
            .log = log,
            .crash = crash,
            .users = s.users_,
            .messenger = s.front_,
            .published = s.published_,
            .requests = s.requests_,
            .setup = std::move(options.setup),
            .store = std::move(*store),
            .cluster_key = *key,
            .identities = std::move(*identities),
            .addresses = addresses,
            .state = options.state,
            .epoch = *epoch,
            .emulate = options.emulate,
            .host = options.host,
            .shut = std::move(options.shut),
            .limit_scripts = [&s](std::size_t bytes) { s.front_.set_most_script(bytes); },
            .set_trust =
                [&s](std::shared_ptr<const Trust> trust) { s.front_.set_trust(std::move(trust)); },
            .set_certificates =
                [&s](Front::Serials serials) { s.front_.set_certificates(std::move(serials)); }});
  if (auto done = s.engine_->load(); !done) return pass(std::move(done.error()));
  const auto refresh = [&s](bool with_jobs) { s.engine_->refresh(with_jobs); };
  s.reader_ = std::make_unique<Reader>(s.clock_, s.front_, s.published_, s.users_, s.requests_,
                                       refresh, options.state);
  s.historian_ = std::make_unique<Reader>(s.clock_, s.front_, s.published_, s.users_, s.requests_,
                                          refresh, options.state);
  s.gauges_ = std::make_unique<Gauges>(s.front_, s.published_, s.requests_, refresh);
  s.engine_->start();
  const std::string path = net::controller_socket(options.run);
  if (auto done = s.front_.listen_unix(path, ::geteuid() == 0 ? 0777 : 0700); !done) {
    return pass(std::move(done.error()));
  }
  log.info("listening on {}", path);
  if (remote) {
    if (auto done = s.front_.listen_tcp(port, std::move(*remote)); !done) {
      return pass(std::move(done.error()));
    }
    log.info("listening on port {}", port);
  }
  return service;
}

}  // namespace berth::controller
