// How much: nodes, tasks, CPUs, sockets, memory, sharing.
#include <array>

#include <fmt/format.h>

#include "request/values.h"
#include "text/node_count.h"
#include "text/number.h"
#include "text/size.h"
#include "text/words.h"

namespace berth::request {
namespace {

template <auto Field, std::uint32_t Least = 1>
Applied count(const Value& value, Request& request) {
  const Result<std::uint32_t> number = number_value(value, Least);
  if (!number) return pass(number.error());
  request.*Field = *number;
  return {};
}

/// What is wrong with a node count that cannot be read.
std::string node_count_complaint(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto min = text::parse_number(text.substr(0, dash), UINT32_MAX);
    const auto max = text::parse_number(text.substr(dash + 1), UINT32_MAX);
    if (min && max && *max < *min) {
      return fmt::format("Invalid node count range: at most {} is below at least {}", *max, *min);
    }
  }
  return fmt::format("\"{}\" is not a valid node count", text);
}

Applied nodes(const Value& value, Request& request) {
  constexpr std::string_view kAllowed = "a count from 1, min-max, a,b,c or a-b:step";
  if (text::parse_number(value.text) == 0u) {
    return fail(Code::invalid_node_count, "invalid number of nodes (-N 0-0)",
                fmt::format("--nodes={}: {}", value.text, kAllowed));
  }
  const std::optional<text::NodeCountText> parsed = text::parse_node_count(value.text);
  if (!parsed) {
    Error error = invalid_value(value, std::string(kAllowed)).error();
    error.messages.insert(error.messages.begin(),
                          {Severity::error, node_count_complaint(value.text)});
    return std::unexpected(std::move(error));
  }
  request.nodes = NodeCount{parsed->min, parsed->max, parsed->range, parsed->sizes};
  return {};
}

template <MemoryPer Per>
Applied memory(const Value& value, Request& request) {
  const std::optional<std::uint64_t> mb = text::parse_size_mb(value.text);
  if (!mb) return invalid_value(value, "a whole number with K, M, G or T; M when none is given");
  request.memory = Memory{Per, *mb};
  return {};
}

Applied tmp(const Value& value, Request& request) {
  const std::optional<std::uint64_t> mb = text::parse_size_mb(value.text);
  if (!mb) return invalid_value(value, "a whole number with K, M, G or T; M when none is given");
  request.tmp_mb = *mb;
  return {};
}

Applied gpu_mem_min(const Value& value, Request& request) {
  const std::optional<std::uint64_t> mb = text::parse_size_mb(value.text);
  if (!mb) return invalid_value(value, "a whole number with K, M, G or T; M when none is given");
  request.gpu_mem_min_mb = *mb;
  return {};
}

/// -B sockets[:cores[:threads]], each a number or *.
Applied extra_node_info(const Value& value, Request& request) {
  const std::vector<std::string_view> parts = text::split(value.text, ':');
  if (parts.size() > 3) return invalid_value(value, "sockets[:cores[:threads]]");
  std::array<std::optional<std::uint32_t>, 3> numbers;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "*") continue;
    const std::optional<std::uint64_t> number = text::parse_number(parts[i], UINT16_MAX);
    if (!number || *number == 0) {
      return invalid_value(value, "sockets[:cores[:threads]], each a number or *");
    }
    numbers[i] = static_cast<std::uint32_t>(*number);
  }
  if (numbers[0]) request.sockets_per_node = numbers[0];
  if (numbers[1]) request.cores_per_socket = numbers[1];
  if (numbers[2]) request.threads_per_core = numbers[2];
  return {};
}

Applied hint(const Value& value, Request& request) {
  const std::string word = text::to_lower(value.text);
  if (word == "help") {
    return answer({"Application hint options:", "    --hint=            Bind tasks by kind of work",
                   "        compute_bound   use all cores, one thread each",
                   "        memory_bound    use one core of each socket first",
                   "        [no]multithread use [or not] the extra threads of a core",
                   "        help            show this"});
  }
  if (word == "compute_bound") {
    request.hint = Hint::compute_bound;
  } else if (word == "memory_bound") {
    request.hint = Hint::memory_bound;
  } else if (word == "multithread") {
    request.hint = Hint::multithread;
  } else if (word == "nomultithread") {
    request.hint = Hint::nomultithread;
    request.threads_per_core = 1;
  } else {
    return fail(Code::bad_value,
                fmt::format("unrecognized --hint argument \"{}\", see --hint=help", value.text),
                "one of compute_bound, memory_bound, multithread, nomultithread");
  }
  return {};
}

Applied exclusive(const Value& value, Request& request) {
  const std::string word = text::to_lower(value.text);
  if (word.empty()) {
    request.exclusive = Exclusive::node;
    request.exact = value.command == Command::srun;  // of the step, whole nodes of the job
  } else if (word == "user") {
    request.exclusive = Exclusive::user;
  } else if (word == "mcs") {
    request.exclusive = Exclusive::mcs;
  } else if (word == "topo") {
    request.exclusive = Exclusive::topo;
  } else if (word == "allocation" && value.command == Command::srun) {
    request.exclusive = Exclusive::allocation;
  } else {
    return invalid_value(value, value.command == Command::srun
                                    ? "alone, or one of user, mcs, topo, allocation"
                                    : "alone, or one of user, mcs, topo");
  }
  return {};
}

Applied overcommit(const Value&, Request& request) {
  request.overcommit = true;
  return {};
}

Applied oversubscribe(const Value&, Request& request) {
  request.oversubscribe = true;
  return {};
}

}  // namespace

Apply size_value(Opt opt) {
  switch (opt) {
    case Opt::nodes:
      return nodes;
    case Opt::ntasks:
      return count<&Request::ntasks>;
    case Opt::ntasks_per_node:
      return count<&Request::ntasks_per_node>;
    case Opt::ntasks_per_core:
      return count<&Request::ntasks_per_core>;
    case Opt::ntasks_per_socket:
      return count<&Request::ntasks_per_socket>;
    case Opt::ntasks_per_gpu:
    case Opt::ntasks_per_tres:
      return count<&Request::ntasks_per_gpu>;
    case Opt::cpus_per_task:
      return count<&Request::cpus_per_task>;
    case Opt::mincpus:
      return count<&Request::mincpus>;
    case Opt::cpus_per_gpu:
      return count<&Request::cpus_per_gpu>;
    case Opt::extra_node_info:
      return extra_node_info;
    case Opt::sockets_per_node:
      return count<&Request::sockets_per_node>;
    case Opt::cores_per_socket:
      return count<&Request::cores_per_socket>;
    case Opt::threads_per_core:
      return count<&Request::threads_per_core>;
    case Opt::relative:
      return count<&Request::relative, 0>;
    case Opt::hint:
      return hint;
    case Opt::mem:
      return memory<MemoryPer::node>;
    case Opt::mem_per_cpu:
      return memory<MemoryPer::cpu>;
    case Opt::mem_per_gpu:
      return memory<MemoryPer::gpu>;
    case Opt::gpu_mem_min:
      return gpu_mem_min;
    case Opt::tmp:
      return tmp;
    case Opt::exclusive:
      return exclusive;
    case Opt::overcommit:
      return overcommit;
    case Opt::oversubscribe:
      return oversubscribe;
    default:
      return nullptr;
  }
}

}  // namespace berth::request
