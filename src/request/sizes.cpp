// What sizes.h promises.
#include "request/sizes.h"

#include <fmt/format.h>

#include "request/directives.h"

namespace berth::request {
namespace {

constexpr std::size_t kName = 1024;
constexpr std::size_t kHosts = std::size_t{64} << 10;
constexpr std::size_t kList = std::size_t{128} << 10;

}  // namespace

std::size_t most_bytes(Opt opt) {
  switch (opt) {
    case Opt::wrap:
      return kMostScript;
    case Opt::nodelist:
    case Opt::exclude:
      return kHosts;
    case Opt::array:
    case Opt::cpu_bind:
    case Opt::mem_bind:
    case Opt::gpu_bind:
    case Opt::tres_bind:
    case Opt::dependency:
    case Opt::distribution:
    case Opt::export_env:
      return kList;
    case Opt::bcast:
    case Opt::bcast_exclude:
    case Opt::chdir:
    case Opt::error:
    case Opt::epilog:
    case Opt::export_file:
    case Opt::input:
    case Opt::nodefile:
    case Opt::output:
    case Opt::prolog:
    case Opt::task_epilog:
    case Opt::task_prolog:
      return kMostPath;
    default:
      return kName;
  }
}

std::unexpected<Error> too_long(std::string_view what, std::size_t bytes, std::size_t most) {
  return fail(Code::too_long, std::string(slurm_text(Code::too_long)),
              fmt::format("{}: {} bytes, at most {} are taken", what, bytes, most));
}

}  // namespace berth::request
