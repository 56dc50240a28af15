// What server.h promises.
#include "pmix/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <set>

#include "pmix/job_info.h"
#include "pmix/listener.h"

namespace berth::pmix {
namespace {

constexpr const char* kChannel = "pmix";

Server* the_server = nullptr;

/// A call of the library that answers from another thread.
class Awaited {
 public:
  static void done(pmix_status_t status, void* self) {
    auto* const awaited = static_cast<Awaited*>(self);
    const std::scoped_lock lock(awaited->mutex_);
    awaited->status_ = status;
    awaited->over_ = true;
    awaited->changed_.notify_all();
  }
  pmix_status_t wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  pmix_status_t status_ = PMIX_SUCCESS;
};

/// Gives bytes to the library, which says when it has done with them.
void give(pmix_modex_cbfunc_t done, void* cookie, pmix_status_t status, std::string bytes) {
  auto* const kept = new std::string(std::move(bytes));
  done(
      status, kept->data(), kept->size(), cookie,
      [](void* what) { delete static_cast<std::string*>(what); }, kept);
}

/// What tasks read from shared memory has the number of this process in its name; tasks are told a
/// name that was known before there was this process.
std::string name_shared_files(const std::string& directory) {
  if (directory.empty()) return {};
  const std::string real = fmt::format("pmix_dstor_ds21_{}", ::getpid());
  const std::string known = directory + "/ds21";
  if (::symlink(real.c_str(), known.c_str()) == 0) return {};
  return fmt::format("{}: {}", known, std::strerror(errno));
}

/// Takes note; nothing else depends on it.
pmix_status_t seen(const pmix_proc_t*, void*, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

}  // namespace

Server::Server(wire::ServePmix step, SupervisorLink& supervisor)
    : step_(std::move(step)),
      supervisor_(supervisor),
      node_of_rank_(nodes_of_ranks(step_.layout())) {
  the_server = this;
}

pmix_server_module_t Server::callbacks() {
  pmix_server_module_t module{};
  module.client_connected = seen;
  module.client_finalized = seen;
  module.abort = on_abort;
  module.fence_nb = on_fence;
  module.direct_modex = on_direct_modex;
  module.spawn = [](const pmix_proc_t* proc, const pmix_info_t*, size_t, const pmix_app_t*, size_t,
                    pmix_spawn_cbfunc_t, void*) -> pmix_status_t {
    wire::PmixServes message;
    message.set_trouble(
        fmt::format("task {} asked for more tasks (MPI_Comm_spawn), which a step with PMIx "
                    "cannot have: start them all with srun -n, or use an MPI that speaks PMI-1 "
                    "or PMI-2",
                    proc->rank));
    the_server->supervisor_.send(message);
    return PMIX_ERR_NOT_SUPPORTED;
  };
  module.register_events = [](pmix_status_t*, size_t, const pmix_info_t*, size_t, pmix_op_cbfunc_t,
                              void*) -> pmix_status_t { return PMIX_OPERATION_SUCCEEDED; };
  module.deregister_events = [](pmix_status_t*, size_t, pmix_op_cbfunc_t, void*) -> pmix_status_t {
    return PMIX_OPERATION_SUCCEEDED;
  };
  return module;
}

std::string Server::start() {
  static pmix_server_module_t module = callbacks();
  Infos how(6);
  how.add(PMIX_SERVER_NSPACE, std::string("berth"));
  how.add_rank(PMIX_SERVER_RANK, step_.node_id());
  how.add(PMIX_HOSTNAME, step_.node());
  const std::string directory = step_.directory().empty() ? "/tmp" : step_.directory();
  how.add(PMIX_SERVER_TMPDIR, directory);
  how.add(PMIX_SYSTEM_TMPDIR, directory);
  if (const auto rc = PMIx_server_init(&module, how.data(), how.size()); rc != PMIX_SUCCESS) {
    return fmt::format("PMIx_server_init: {}", PMIx_Error_string(rc));
  }
  if (std::string why = name_shared_files(step_.directory()); !why.empty()) return why;
  if (!listener_was_taken()) return "the PMIx library did not take the socket that tasks dial";
  Infos infos(kStepEntries);
  Awaited registered;
  const auto begun = register_step(step_, Awaited::done, &registered, infos);
  if (const auto rc = begun == PMIX_SUCCESS ? registered.wait() : begun;
      rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED) {
    return fmt::format("PMIx_server_register_nspace: {}", PMIx_Error_string(rc));
  }
  const wire::NodeRanks& here = step_.layout().nodes(static_cast<int>(step_.node_id()));
  for (const std::uint32_t rank : here.ranks()) {
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, step_.name_space().c_str(), rank);
    Awaited known;
    const auto asked = PMIx_server_register_client(&proc, step_.uid(), step_.gid(), nullptr,
                                                   Awaited::done, &known);
    const auto rc = asked == PMIX_SUCCESS ? known.wait() : asked;
    if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED) {
      return fmt::format("PMIx_server_register_client: {}", PMIx_Error_string(rc));
    }
  }
  open_the_door();
  return {};
}

void Server::run() {
  while (const auto frame = supervisor_.next()) {
    if (frame->kind == wire::Kind::Exchange) {
      if (const auto m = wire::decode<wire::Exchange>(frame->payload)) take(*m);
    } else if (frame->kind == wire::Kind::Errand) {
      if (const auto m = wire::decode<wire::Errand>(frame->payload)) take(*m);
    }
  }
}

pmix_status_t Server::on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t*, size_t,
                               char* data, size_t size, pmix_modex_cbfunc_t done, void* cookie) {
  return the_server->fence(procs, count, std::string(data, data == nullptr ? 0 : size),
                           {done, cookie});
}

pmix_status_t Server::fence(const pmix_proc_t* procs, std::size_t count, std::string data,
                            Fence whose) {
  // Who takes part: all, or the nodes of these ranks. Every one of them calls this in the same
  // order.
  std::set<std::uint32_t> ranks;
  bool all = false;
  for (std::size_t i = 0; i < count; ++i) {
    all = all || procs[i].rank == PMIX_RANK_WILDCARD;
    if (procs[i].rank < node_of_rank_.size()) ranks.insert(procs[i].rank);
  }
  all = all || ranks.size() == node_of_rank_.size();
  const bool only_here =
      all ? step_.layout().nodes_size() == 1 : std::ranges::all_of(ranks, [&](std::uint32_t rank) {
        return node_of_rank_[rank] == step_.node_id();
      });
  if (only_here) {
    give(whose.done, whose.cookie, PMIX_SUCCESS, std::move(data));
    return PMIX_SUCCESS;
  }
  wire::Exchange exchange;
  exchange.set_channel(kChannel);
  exchange.set_nodes(1);
  if (!all) {
    std::set<std::uint32_t> nodes;
    for (const std::uint32_t rank : ranks) nodes.insert(node_of_rank_[rank]);
    exchange.set_group(fmt::format("{}", fmt::join(ranks, ",")));
    exchange.set_wanted(static_cast<std::uint32_t>(nodes.size()));
  }
  exchange.set_data(std::move(data));
  {
    const std::scoped_lock lock(mutex_);
    exchange.set_number(++numbers_[exchange.group()]);
    fences_[{exchange.group(), exchange.number()}] = whose;
  }
  supervisor_.send(exchange);
  return PMIX_SUCCESS;
}

void Server::take(const wire::Exchange& exchange) {
  Fence whose;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = fences_.find({exchange.group(), exchange.number()});
    if (found == fences_.end()) return;  // others have exchanged something
    whose = found->second;
    fences_.erase(found);
  }
  give(whose.done, whose.cookie, PMIX_SUCCESS, exchange.data());
}

pmix_status_t Server::on_direct_modex(const pmix_proc_t* proc, const pmix_info_t*, size_t,
                                      pmix_modex_cbfunc_t done, void* cookie) {
  return the_server->fetch(proc->rank, {done, cookie});
}

/// What another rank has put, from its node.
pmix_status_t Server::fetch(std::uint32_t rank, Fence whose) {
  if (rank >= node_of_rank_.size()) return PMIX_ERR_NOT_FOUND;
  wire::Errand errand;
  errand.set_from(step_.node());
  errand.set_to(step_.layout().nodes(static_cast<int>(node_of_rank_[rank])).name());
  errand.set_channel(kChannel);
  errand.set_data(std::to_string(rank));
  {
    const std::scoped_lock lock(mutex_);
    errand.set_number(next_errand_++);
    errands_[errand.number()] = whose;
  }
  supervisor_.send(errand);
  return PMIX_SUCCESS;
}

void Server::take(const wire::Errand& errand) {
  if (!errand.answer()) return answer_fetch(errand);
  Fence whose;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = errands_.find(errand.number());
    if (found == errands_.end()) return;
    whose = found->second;
    errands_.erase(found);
  }
  const bool there = !errand.data().empty();
  give(whose.done, whose.cookie, there ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, errand.data());
}

void Server::answer_fetch(const wire::Errand& question) {
  struct Asked {
    Server* server;
    wire::Errand answer;
  };
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, step_.name_space().c_str(),
                   static_cast<pmix_rank_t>(std::strtoul(question.data().c_str(), nullptr, 10)));
  auto* const asked = new Asked{this, {}};
  asked->answer.set_from(step_.node());
  asked->answer.set_to(question.from());
  asked->answer.set_channel(kChannel);
  asked->answer.set_number(question.number());
  asked->answer.set_answer(true);
  const auto rc = PMIx_server_dmodex_request(
      &proc,
      [](pmix_status_t status, char* data, size_t size, void* self) {
        const std::unique_ptr<Asked> mine(static_cast<Asked*>(self));
        if (status == PMIX_SUCCESS && data != nullptr) mine->answer.set_data(data, size);
        mine->server->supervisor_.send(mine->answer);
      },
      asked);
  if (rc == PMIX_SUCCESS) return;
  const std::unique_ptr<Asked> mine(asked);
  supervisor_.send(mine->answer);
}

pmix_status_t Server::on_abort(const pmix_proc_t* proc, void*, int status, const char text[],
                               pmix_proc_t*, size_t, pmix_op_cbfunc_t, void*) {
  wire::AbortStep abort;
  abort.set_rank(proc->rank);
  abort.set_code(status);
  if (text != nullptr && std::string_view(text) != "N/A") abort.set_text(text);
  the_server->supervisor_.send(abort);
  return PMIX_OPERATION_SUCCEEDED;
}

}  // namespace berth::pmix
