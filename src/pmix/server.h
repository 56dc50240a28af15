// The host's side of a PMIx server: what tasks on this node ask of the library and it asks of us,
// for the whole step. Exchanges go through the supervisors' tree.
#pragma once

#include <pmix.h>
#include <pmix_server.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "pmix/supervisor_link.h"

namespace berth::pmix {

class Server {
 public:
  /// There is one in a process: the library's callbacks have no argument for it.
  Server(wire::ServePmix step, SupervisorLink& supervisor);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "" or why not. After it, tasks may come.
  std::string start();
  /// Frames of the supervisor until it is gone.
  void run();

 private:
  struct Fence {
    pmix_modex_cbfunc_t done = nullptr;
    void* cookie = nullptr;
  };
  static pmix_server_module_t callbacks();
  static pmix_status_t on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t info[],
                                size_t infos, char* data, size_t size, pmix_modex_cbfunc_t done,
                                void* cookie);
  static pmix_status_t on_direct_modex(const pmix_proc_t* proc, const pmix_info_t info[],
                                       size_t infos, pmix_modex_cbfunc_t done, void* cookie);
  static pmix_status_t on_abort(const pmix_proc_t* proc, void* object, int status,
                                const char text[], pmix_proc_t procs[], size_t count,
                                pmix_op_cbfunc_t done, void* cookie);

  pmix_status_t fence(const pmix_proc_t* procs, std::size_t count, std::string data, Fence whose);
  pmix_status_t fetch(std::uint32_t rank, Fence whose);
  void take(const wire::Exchange& exchange);
  void take(const wire::Errand& errand);
  void answer_fetch(const wire::Errand& question);

  wire::ServePmix step_;
  SupervisorLink& supervisor_;
  std::vector<std::uint32_t> node_of_rank_;
  std::mutex mutex_;                              // the library calls back from its own thread
  std::map<std::string, std::uint64_t> numbers_;  // exchanges so far, by who takes part
  std::map<std::pair<std::string, std::uint64_t>, Fence> fences_;
  std::uint64_t next_errand_ = 1;
  std::map<std::uint64_t, Fence> errands_;
};

}  // namespace berth::pmix
