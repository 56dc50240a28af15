// What local_ranks.h promises.
#include "place/local_ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "place/cpu_bind.h"
#include "place/gpu_bind.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::place {
namespace {

constexpr std::uint64_t kMostOfAKind = 65536;

std::unexpected<Error> unreadable(std::string_view text) {
  return fail(Code::bad_value,
              fmt::format("{}: \"{}\" is not what berth writes there", kLocalShareVariable, text));
}

bool read_hardware(std::string_view text, cluster::Node& node) {
  std::uint32_t* const fields[] = {&node.sockets, &node.cores_per_socket, &node.threads_per_core};
  const std::vector<std::string_view> numbers = text::split(text, 'x');
  if (numbers.size() != 3) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto number = text::parse_number(numbers[i], kMostOfAKind);
    if (!number || *number == 0) return false;
    *fields[i] = static_cast<std::uint32_t>(*number);
  }
  return std::uint64_t{node.sockets} * node.cores_per_socket * node.threads_per_core <=
         kMostOfAKind;
}

bool read_gpus(std::string_view text, LocalShare& out) {
  cluster::Gres gpus;
  gpus.name = "gpu";
  cluster::GresShare share;
  share.name = "gpu";
  for (const std::string_view word : text::split(text, ',')) {
    const std::size_t at = word.find('@');
    if (at == word.npos) return false;
    const auto index = text::parse_number(word.substr(0, at), 4096);
    if (!index) return false;
    const std::string_view near = word.substr(at + 1);
    if (gpus.devices.size() <= *index) {
      gpus.devices.resize(*index + 1);
      share.units.resize(*index + 1);
    }
    if (near != "*") {
      const auto socket = text::parse_number(near, out.node.sockets - 1);
      if (!socket) return false;
      gpus.devices[*index].sockets.set(*socket);
    }
    share.units[*index] = 1;
  }
  out.node.gres.push_back(std::move(gpus));
  out.share.gres.push_back(std::move(share));
  return true;
}

}  // namespace

Bits LocalShare::visible(const Bits& gpus) const {
  if (!fenced) return gpus;
  Bits out;
  std::size_t position = 0;
  share.gpus().each([&](std::size_t gpu) {
    if (gpus.test(gpu)) out.set(position);
    ++position;
  });
  return out;
}

std::string local_share_text(const cluster::Node& node, const cluster::NodeShare& share,
                             bool fenced) {
  std::string out = fmt::format("{}x{}x{} cores {}", node.sockets, node.cores_per_socket,
                                node.threads_per_core, share.cores.ranges());
  const cluster::Gres* gres = node.find_gres("gpu");
  std::string gpus;
  share.gpus().each([&](std::size_t gpu) {
    std::string near = "*";
    if (gres != nullptr && gpu < gres->devices.size()) {
      const cluster::Device& device = gres->devices[gpu];
      // One that is near several sockets, not all, is said once for each.
      if (!device.any_socket(node.sockets)) near.clear();
      device.sockets.each([&](std::size_t socket) {
        if (near == "*") return;
        near += fmt::format("{}{}", near.empty() ? "" : fmt::format(",{}@", gpu), socket);
      });
    }
    gpus += fmt::format("{}{}@{}", gpus.empty() ? "" : ",", gpu, near);
  });
  if (!gpus.empty()) out += " gpus " + gpus;
  if (fenced) out += " fenced";
  return out;
}

Result<LocalShare> read_local_share(std::string_view text) {
  LocalShare out;
  std::vector<std::string_view> words = text::split(text, ' ');
  out.fenced = !words.empty() && words.back() == "fenced";
  if (out.fenced) words.pop_back();
  if ((words.size() != 3 && words.size() != 5) || words[1] != "cores" ||
      !read_hardware(words[0], out.node)) {
    return unreadable(text);
  }
  const auto cores = text::parse_id_set(words[2]);
  if (!cores || cores->empty() || cores->last() >= out.node.cores()) return unreadable(text);
  out.share.cores = *cores;
  if (words.size() == 5 && (words[3] != "gpus" || !read_gpus(words[4], out))) {
    return unreadable(text);
  }
  return out;
}

Result<LocalChoice> choose_for_rank(const LocalShare& local, const LocalRank& rank) {
  const auto gpus = static_cast<std::uint32_t>(local.share.gpus().count());
  if (rank.rank >= rank.ranks) {
    return fail(Code::bad_value,
                fmt::format("local rank {} of {} ranks on this node", rank.rank, rank.ranks));
  }
  auto bind = gpu_bind_of_ranks({{rank.ranks, gpus}});
  if (rank.gpus_per_rank) {
    const std::uint64_t wanted = std::uint64_t{*rank.gpus_per_rank} * rank.ranks;
    if (wanted > gpus) {
      return fail(
          Code::bad_value,
          fmt::format("{} ranks on this node with {} GPUs each are {} GPUs, but the job has "
                      "{} here",
                      rank.ranks, *rank.gpus_per_rank, wanted, gpus),
          "ask for more GPUs a node, start fewer ranks, or leave --gpus-per-rank out to "
          "share them");
    }
    bind = request::GpuBind{};
    bind->kind = request::GpuBindKind::per_task;
    bind->count = *rank.gpus_per_rank;
    bind->text = fmt::format("gres/gpu:per_task:{}", bind->count);
  }
  auto cpus = bind_cpus(local.node, local.share.cores, rank.ranks, rank.cpus_per_rank, {});
  LocalChoice out;
  std::vector<Bits> masks(rank.ranks, Bits::first_n(local.node.cpus()));
  if (cpus && cpus->bound && cpus->masks.size() == rank.ranks) {
    masks = cpus->masks;
    out.bound = true;
  }
  out.cpus = masks[rank.rank];
  if (gpus == 0 || (rank.gpus_per_rank && *rank.gpus_per_rank == 0)) return out;
  out.gpus = bind_gpus(local.node, local.share, masks, bind, false)[rank.rank].gpus;
  out.shares_gpu = bind && bind->kind == request::GpuBindKind::single && bind->count > 1;
  return out;
}

}  // namespace berth::place
