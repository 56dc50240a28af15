// Where: node lists and files, layout of tasks, CPU and memory binding.
#include <algorithm>

#include <fmt/format.h>

#include "request/values.h"
#include "text/cpumask.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::request {
namespace {

/// A list on the command line, or the content of a file: names apart by blanks, commas or lines.
Result<std::vector<std::string>> hosts_in(std::string_view content) {
  std::vector<std::string> out;
  for (std::string_view line : text::split(content, '\n')) {
    line = text::trim(line.substr(0, line.find('#')));
    while (!line.empty()) {
      const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
      Result<std::vector<std::string>> some = text::expand_hostlist(line.substr(0, end));
      if (!some) return some;
      if (out.size() + some->size() > text::kMaxHosts) {
        return fail(Code::limit, "too many hosts");
      }
      std::ranges::move(*some, std::back_inserter(out));
      line = text::trim(line.substr(end));
    }
  }
  return out;
}

Result<std::vector<std::string>> hosts(const Value& value, bool always_file) {
  std::string_view list = value.text;
  if (always_file || list.find('/') != std::string_view::npos) {
    const auto file = value.around->files.find(std::string(list));
    if (file == value.around->files.end()) {
      return invalid_value(value, "the file of node names cannot be read");
    }
    list = file->second;
  }
  Result<std::vector<std::string>> names = hosts_in(list);
  if (!names) {
    return invalid_value(
        value, fmt::format("a list of nodes such as gpu[1-4],cpu1 ({})", names.error().what()));
  }
  if (names->empty()) return invalid_value(value, "no node is named");
  return names;
}

Applied nodelist(const Value& value, Request& request) {
  Result<std::vector<std::string>> names = hosts(value, value.opt == Opt::nodefile);
  if (!names) return pass(std::move(names.error()));
  request.nodelist = std::move(*names);
  return {};
}

Applied exclude(const Value& value, Request& request) {
  Result<std::vector<std::string>> names = hosts(value, false);
  if (!names) return pass(std::move(names.error()));
  request.exclude = std::move(*names);
  return {};
}

Applied partition(const Value& value, Request& request) {
  request.partitions.clear();
  for (const std::string_view name : text::split(value.text, ',')) {
    if (!name.empty()) request.partitions.emplace_back(name);
  }
  return {};
}

Applied constraint(const Value& value, Request& request) {
  request.constraint = std::string(value.text);
  return {};
}

Applied prefer(const Value& value, Request& request) {
  request.prefer = std::string(value.text);
  return {};
}

std::optional<NodeDist> node_word(std::string_view word) {
  if (word == "block") return NodeDist::block;
  if (word == "cyclic") return NodeDist::cyclic;
  if (word == "plane") return NodeDist::plane;
  if (word == "arbitrary") return NodeDist::arbitrary;
  return std::nullopt;
}

std::optional<CoreDist> core_word(std::string_view word) {
  if (word == "block") return CoreDist::block;
  if (word == "cyclic") return CoreDist::cyclic;
  if (word == "fcyclic") return CoreDist::fcyclic;
  return std::nullopt;
}

std::optional<std::uint32_t> plane_variable(const Surroundings& around) {
  const auto at = around.environment.find("SLURM_DIST_PLANESIZE");
  if (at == around.environment.end()) return std::nullopt;
  const auto size = text::parse_number(at->second, INT32_MAX);
  return size && *size > 0 ? std::optional(static_cast<std::uint32_t>(*size)) : std::nullopt;
}

/// The levels between colons; false when they are not a distribution.
bool read_levels(std::string_view levels, const Surroundings& around, Distribution& dist) {
  const std::vector<std::string_view> parts = text::split(levels, ':');
  if (parts.size() > 3) return false;
  std::string_view first = parts[0];
  if (first.starts_with("plane=")) {
    const auto size = text::parse_number(first.substr(6), INT32_MAX);
    if (!size || *size == 0) return false;
    dist.plane_size = static_cast<std::uint32_t>(*size);
    first = "plane";
  } else if (first == "plane") {
    dist.plane_size = plane_variable(around);
    if (!dist.plane_size) return false;
  }
  if (first != "*") {
    dist.nodes = node_word(first);
    if (!dist.nodes) return false;
    if (parts.size() > 1 && *dist.nodes != NodeDist::block && *dist.nodes != NodeDist::cyclic) {
      return false;
    }
  }
  dist.text = first == "*" ? "block" : std::string(first);
  const auto level = [&](std::size_t i, std::optional<CoreDist>& to) {
    if (i >= parts.size()) return true;
    dist.text += fmt::format(":{}", parts[i] == "*" ? "cyclic" : parts[i]);
    if (parts[i] == "*") return true;
    to = core_word(parts[i]);
    return to.has_value();
  };
  return level(1, dist.sockets) && level(2, dist.cores);
}

bool read_pack(std::string_view word, Distribution& dist) {
  if (word != "pack" && word != "nopack") return false;
  dist.pack = word == "pack";
  return true;
}

Applied distribution(const Value& value, Request& request) {
  const std::string lower = text::to_lower(value.text);
  const std::vector<std::string_view> parts = text::split(lower, ',');
  Distribution dist;
  bool good = parts.size() <= 2;
  if (good && parts.size() == 1 && read_pack(parts[0], dist)) {
    dist.text = "block";
  } else {
    good = good && read_levels(parts[0], *value.around, dist);
    if (good && parts.size() == 2) good = read_pack(parts[1], dist);
  }
  if (!good) {
    return invalid_value(
        value,
        "block, cyclic, plane=size or arbitrary for nodes, then :block, :cyclic or "
        ":fcyclic for sockets and cores, then ,pack or ,nopack");
  }
  if (dist.pack) dist.text += *dist.pack ? ",pack" : ",nopack";
  request.distribution = std::move(dist);
  return {};
}

struct CpuBindWord {
  std::string_view name;
  CpuBindKind kind;
  enum class List : std::uint8_t { none, ids, masks } list;
};

constexpr CpuBindWord kCpuBindWords[] = {
    {"none", CpuBindKind::none, CpuBindWord::List::none},
    {"no", CpuBindKind::none, CpuBindWord::List::none},
    {"rank", CpuBindKind::rank, CpuBindWord::List::none},
    {"socket", CpuBindKind::sockets, CpuBindWord::List::none},
    {"sockets", CpuBindKind::sockets, CpuBindWord::List::none},
    {"core", CpuBindKind::cores, CpuBindWord::List::none},
    {"cores", CpuBindKind::cores, CpuBindWord::List::none},
    {"thread", CpuBindKind::threads, CpuBindWord::List::none},
    {"threads", CpuBindKind::threads, CpuBindWord::List::none},
    {"ldom", CpuBindKind::ldoms, CpuBindWord::List::none},
    {"ldoms", CpuBindKind::ldoms, CpuBindWord::List::none},
    {"rank_ldom", CpuBindKind::rank_ldom, CpuBindWord::List::none},
    {"map_cpu", CpuBindKind::map_cpu, CpuBindWord::List::ids},
    {"mask_cpu", CpuBindKind::mask_cpu, CpuBindWord::List::masks},
    {"map_ldom", CpuBindKind::map_ldom, CpuBindWord::List::ids},
    {"mask_ldom", CpuBindKind::mask_ldom, CpuBindWord::List::masks},
};

std::unexpected<Error> unrecognized(const Value& value, std::string_view word,
                                    std::string allowed) {
  Error error = invalid_value(value, std::move(allowed)).error();
  error.messages.insert(
      error.messages.begin(),
      {Severity::error, fmt::format("unrecognized {} argument \"{}\"", dashed(value.opt), word)});
  return std::unexpected(std::move(error));
}

/// The leading verbosity word, if there is one, is taken off.
void take_verbosity(std::string_view& rest, bool& verbose) {
  const std::size_t end = std::min(rest.find(','), rest.size());
  const std::string word = text::to_lower(rest.substr(0, end));
  if (word != "verbose" && word != "v" && word != "quiet" && word != "q") return;
  verbose = word[0] == 'v';
  rest.remove_prefix(std::min(end + 1, rest.size()));
}

Applied cpu_bind(const Value& value, Request& request) {
  constexpr std::string_view kForms =
      "[quiet,|verbose,] and one of none, sockets, cores, threads, ldoms, rank_ldom, map_cpu:ids, "
      "mask_cpu:masks, map_ldom:ids, mask_ldom:masks";
  std::string_view rest = value.text;
  if (rest == "help") return answer({"CPU bind options:", std::string(kForms)});
  CpuBind bind;
  take_verbosity(rest, bind.verbose);
  if (rest.empty() && !value.text.empty()) {  // only the verbosity
    request.cpu_bind = std::move(bind);
    return {};
  }
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const std::string name = text::to_lower(rest.substr(0, colon));
  const auto* word = std::ranges::find(kCpuBindWords, name, &CpuBindWord::name);
  const bool has_list = colon < rest.size();
  if (word == std::end(kCpuBindWords) || has_list != (word->list != CpuBindWord::List::none)) {
    return unrecognized(value, rest, std::string(kForms));
  }
  if (word->kind == CpuBindKind::rank) {
    if (value.building) {
      value.warnings->push_back(
          {Severity::plain, "Ignoring --cpu-bind=rank. Rank binding is obsolete."});
    }
    request.cpu_bind = std::move(bind);
    return {};
  }
  if (has_list) {
    bind.list_text = std::string(rest.substr(colon + 1));
    const bool masks = word->list == CpuBindWord::List::masks;
    auto list = masks ? text::parse_mask_list(bind.list_text) : text::parse_id_map(bind.list_text);
    if (!list) return unrecognized(value, rest, std::string(kForms));
    bind.list = std::move(*list);
  }
  bind.kind = word->kind;
  request.cpu_bind = std::move(bind);
  return {};
}

Applied mem_bind(const Value& value, Request&) {
  constexpr std::string_view kForms =
      "[quiet,|verbose,] and none, local, rank, prefer, sort, nosort, map_mem:ids, mask_mem:masks";
  const auto other = [&] {
    return fail(Code::unsupported,
                fmt::format("--mem-bind={} is not supported by berth", value.text),
                "none and local are; numactl in the command can do the rest, e.g. srun numactl "
                "--membind=0 ./program");
  };
  bool bound = false;
  std::string_view rest = value.text;
  if (rest == "help") return answer({"Memory bind options:", std::string(kForms)});
  bool verbose = false;
  take_verbosity(rest, verbose);
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  if (colon < rest.size()) {
    const std::size_t word = std::min(rest.rfind(',', colon) + 1, colon);
    const std::string_view kind = rest.substr(word, colon - word);
    const bool masks = kind == "mask_mem";
    const std::string_view list = rest.substr(colon + 1);
    const bool good = masks ? text::parse_mask_list(list).has_value()
                            : kind == "map_mem" && text::parse_id_map(list).has_value();
    if (!good) return unrecognized(value, rest, std::string(kForms));
    rest = word == 0 ? std::string_view() : rest.substr(0, word - 1);
    bound = true;
  }
  if (rest.empty()) return bound ? Applied(other()) : Applied();
  for (const std::string_view word : text::split(rest, ',')) {
    constexpr std::string_view kWords[] = {"none",   "no", "local", "rank",
                                           "prefer", "p",  "sort",  "nosort"};
    if (std::ranges::find(kWords, text::to_lower(word)) == std::end(kWords)) {
      return unrecognized(value, word, std::string(kForms));
    }
    const std::string kind = text::to_lower(word);
    bound = bound || (kind != "none" && kind != "no" && kind != "local");
  }
  return bound ? Applied(other()) : Applied();
}

}  // namespace

Apply place_value(Opt opt) {
  switch (opt) {
    case Opt::nodelist:
    case Opt::nodefile:
      return nodelist;
    case Opt::exclude:
      return exclude;
    case Opt::partition:
      return partition;
    case Opt::constraint:
      return constraint;
    case Opt::prefer:
      return prefer;
    case Opt::contiguous:
      return flag<&Request::contiguous>;
    case Opt::spread_job:
      return flag<&Request::spread_job>;
    case Opt::spread_segments:
      return flag<&Request::spread_segments>;
    case Opt::use_min_nodes:
      return flag<&Request::use_min_nodes>;
    case Opt::distribution:
      return distribution;
    case Opt::cpu_bind:
      return cpu_bind;
    case Opt::mem_bind:
      return mem_bind;
    default:
      return nullptr;
  }
}

}  // namespace berth::request
