// What local_ranks.h promises.
#include "place/local_ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "place/cpu_bind.h"
#include "place/environment_values.h"
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

struct VariableWord {
  std::string_view word;
  bool cluster::GpuVariables::* flag;
};
constexpr VariableWord kVariableWords[] = {{"cuda", &cluster::GpuVariables::cuda},
                                           {"rocr", &cluster::GpuVariables::rocr},
                                           {"opencl", &cluster::GpuVariables::opencl},
                                           {"ze", &cluster::GpuVariables::level_zero}};

cluster::Gres* local_gpus(cluster::Node& node) {
  return node.gres.empty() ? nullptr : &node.gres.front();
}

/// In the order of the GPUs.
bool read_uuids(std::string_view text, LocalShare& out) {
  const std::vector<std::string_view> names = text::split(text, ',');
  const std::vector<std::size_t> gpus = out.share.gpus().members();
  if (gpus.empty() || names.size() != gpus.size()) return false;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (names[i].empty()) return false;
    local_gpus(out.node)->devices[gpus[i]].uuid = names[i];
  }
  return true;
}

bool read_variables(std::string_view text, LocalShare& out) {
  cluster::Gres* gpus = local_gpus(out.node);
  if (gpus == nullptr) return false;
  cluster::GpuVariables told;
  told.only("");
  for (const std::string_view word : text::split(text, ',')) {
    if (word == "none") continue;
    const auto known = std::ranges::find(kVariableWords, word, &VariableWord::word);
    if (known == std::end(kVariableWords)) return false;
    told.*known->flag = true;
  }
  for (cluster::Device& device : gpus->devices) device.variables = told;
  return true;
}

/// " uuids …" and " told …" of the GPUs of a share, where they are not the usual.
std::string names_text(const cluster::Gres& gres, const Bits& gpus) {
  std::string uuids;
  std::string told;
  bool named = true;
  cluster::GpuVariables variables;
  variables.only("");
  gpus.each([&](std::size_t gpu) {
    if (gpu >= gres.devices.size()) return;
    const cluster::Device& device = gres.devices[gpu];
    uuids += (uuids.empty() ? "" : ",") + device.uuid;
    named = named && !device.uuid.empty();
    for (const VariableWord& one : kVariableWords) {
      variables.*one.flag = variables.*one.flag || device.variables.*one.flag;
    }
  });
  for (const VariableWord& one : kVariableWords) {
    if (variables.*one.flag) told += fmt::format("{}{}", told.empty() ? "" : ",", one.word);
  }
  std::string out;
  if (named && !uuids.empty()) out += " uuids " + uuids;
  if (!(variables == cluster::GpuVariables())) out += " told " + (told.empty() ? "none" : told);
  return out;
}

}  // namespace

std::map<std::string, std::string> LocalShare::variables(const Bits& gpus) const {
  return visible_variables(node, gpus, visible(gpus));
}

std::map<std::string, std::string> LocalShare::rank_variables(
    const Bits& own, const std::map<std::string, std::string>& environment) const {
  if (share.gpus().empty()) return {};
  const std::string ids = visible(own).list();
  std::map<std::string, std::string> out = variables(own);
  if (out.empty()) out[kCudaList] = ids;  // nobody else tells them
  // Where all are usual, only those that somebody reads.
  std::erase_if(out, [&](const auto& one) {
    return one.first != kCudaList && usual_variables() && !environment.contains(one.first);
  });
  // What programs of AMD read instead of ROCR_VISIBLE_DEVICES.
  constexpr const char* kHipList = "HIP_VISIBLE_DEVICES";
  if (environment.contains(kHipList)) out[kHipList] = ids;
  return out;
}

bool LocalShare::usual_variables() const {
  return node.gres.empty() || std::ranges::all_of(node.gres.front().devices, [](const auto& gpu) {
           return gpu.variables == cluster::GpuVariables();
         });
}

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
                             bool fenced, bool daemon) {
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
  if (!gpus.empty() && gres != nullptr) out += names_text(*gres, share.gpus());
  if (daemon) out += " daemon";
  if (fenced) out += " fenced";
  return out;
}

Result<LocalShare> read_local_share(std::string_view text) {
  LocalShare out;
  std::vector<std::string_view> words = text::split(text, ' ');
  const auto take_last = [&](std::string_view word) {
    const bool there = !words.empty() && words.back() == word;
    if (there) words.pop_back();
    return there;
  };
  out.fenced = take_last("fenced");
  out.daemon = take_last("daemon");
  if (words.size() < 3 || words.size() % 2 == 0 || words[1] != "cores" ||
      !read_hardware(words[0], out.node)) {
    return unreadable(text);
  }
  const auto cores = text::parse_id_set(words[2]);
  if (!cores || cores->empty() || cores->last() >= out.node.cores()) return unreadable(text);
  out.share.cores = *cores;
  for (std::size_t i = 3; i < words.size(); i += 2) {
    const bool first = out.node.gres.empty();
    const bool good = words[i] == "gpus"    ? first && read_gpus(words[i + 1], out)
                      : words[i] == "uuids" ? read_uuids(words[i + 1], out)
                      : words[i] == "told"  ? read_variables(words[i + 1], out)
                                            : false;
    if (!good) return unreadable(text);
  }
  return out;
}

Result<std::vector<LocalChoice>> choose_for_ranks(const LocalShare& local, const LocalRank& any) {
  const auto gpus = static_cast<std::uint32_t>(local.share.gpus().count());
  auto bind = gpu_bind_of_ranks({{any.ranks, gpus}});
  if (any.gpus_per_rank) {
    const std::uint64_t wanted = std::uint64_t{*any.gpus_per_rank} * any.ranks;
    if (wanted > gpus) {
      return fail(
          Code::bad_value,
          fmt::format("{} ranks on this node with {} GPUs each are {} GPUs, but the job has "
                      "{} here",
                      any.ranks, *any.gpus_per_rank, wanted, gpus),
          "ask for more GPUs a node, start fewer ranks, or leave --gpus-per-rank out to "
          "share them");
    }
    bind = request::GpuBind{};
    bind->kind = request::GpuBindKind::per_task;
    bind->count = *any.gpus_per_rank;
    bind->text = fmt::format("gres/gpu:per_task:{}", bind->count);
  }
  const auto cpus = bind_cpus(local.node, local.share.cores, any.ranks, any.cpus_per_rank, {});
  const bool bound = cpus && cpus->bound && cpus->masks.size() == any.ranks;
  const std::vector<Bits> masks =
      bound ? cpus->masks : std::vector<Bits>(any.ranks, Bits::first_n(local.node.cpus()));
  std::vector<LocalChoice> out(any.ranks);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].cpus = masks[i];
    out[i].bound = bound;
  }
  if (gpus == 0 || any.gpus_per_rank == 0U) return out;
  const std::vector<TaskGpus> own = bind_gpus(local.node, local.share, masks, bind, false);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].gpus = own[i].gpus;
    out[i].shares_gpu = bind && bind->kind == request::GpuBindKind::single && bind->count > 1;
  }
  return out;
}

Result<LocalChoice> choose_for_rank(const LocalShare& local, const LocalRank& rank) {
  if (rank.rank >= rank.ranks) {
    return fail(Code::bad_value,
                fmt::format("local rank {} of {} ranks on this node", rank.rank, rank.ranks));
  }
  auto all = choose_for_ranks(local, rank);
  if (!all) return pass(all.error());
  return std::move((*all)[rank.rank]);
}

}  // namespace berth::place
