// Generic resources: --gres, --gpus…, --tres-per-task, and which of them a task is bound to.
#include <algorithm>

#include <fmt/format.h>

#include "request/counts.h"
#include "request/values.h"
#include "text/cpumask.h"
#include "text/number.h"
#include "text/size.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::request {
namespace {

/// A negative count can never be met, as Slurm has it: it stands for more than there can be.
GresAsk ask_of(const text::TresItem& item) {
  return {item.name, item.type, item.negative ? kMostDevices : item.count};
}

std::unexpected<Error> invalid_tres(const Value& value, std::string_view form,
                                    std::string_view detail) {
  return fail(
      Code::invalid_tres, std::string(slurm_text(Code::invalid_tres)),
      fmt::format("{}={}: {}", dashed(value.opt), value.text, detail.empty() ? form : detail));
}

constexpr std::string_view kUseGpuMem = "memory of a GPU is asked for with --gpu-mem=10G";

Applied gres(const Value& value, Request& request) {
  if (value.text == "help") {
    return answer({"Valid gres options are:", "name[[:type]:count]", "none"});
  }
  if (!value.building) return {};
  constexpr std::string_view kForm = "write name:count or name:type:count, e.g. gpu:a100:2";
  const Given* given = request.given.find(Opt::gres);
  const bool step_gres = given != nullptr && given->variable == "SLURM_STEP_GRES";
  if (step_gres && value.text != "none" && !value.text.starts_with("gres/")) {
    return invalid_tres(value, "SLURM_STEP_GRES is written gres/gpu:1", "");
  }
  bool none = false;
  Result<std::vector<text::TresItem>> items = text::parse_gres(value.text, none);
  if (!items) return invalid_tres(value, kForm, items.error().hint);
  request.gres_none = none;
  for (const text::TresItem& item : *items) {
    if (item.name == text::kGpuMemory) return invalid_tres(value, kForm, kUseGpuMem);
    request.gres_per_node.push_back(ask_of(item));
  }
  return {};
}

template <auto Field>
Applied gpus(const Value& value, Request& request) {
  if (!value.building) return {};
  Result<std::vector<text::TresItem>> items = text::parse_gpus(value.text);
  if (!items) {
    return invalid_tres(value, "write count or type:count, e.g. 2 or a100:2", items.error().hint);
  }
  for (const text::TresItem& item : *items) (request.*Field).push_back(ask_of(item));
  return {};
}

/// What one GPU of each node is to have free. It is one more resource of the node, counted in MiB.
Applied gpu_mem(const Value& value, Request& request) {
  if (!value.building) return {};
  const std::optional<std::uint64_t> mb = text::parse_size_mb(value.text);
  if (!mb || *mb == 0) {
    return invalid_value(value, "a whole number above 0 with K, M, G or T; M when none is given");
  }
  request.gres_per_node.push_back({std::string(text::kGpuMemory), "", std::min(*mb, kMostDevices)});
  return {};
}

/// The controller reports these, so the text has the submission's words before it.
std::unexpected<Error> bad_tres_per_task(const Value& value, std::string_view detail) {
  const std::string hint = fmt::format("{}={}: {}", dashed(value.opt), value.text, detail);
  const std::string text(slurm_text(Code::invalid_tres));
  if (!value.step) return submission_failed(value.command, Code::invalid_tres, text, hint);
  const auto job = value.around->environment.find("SLURM_JOB_ID");
  return fail(Code::invalid_tres,
              fmt::format("Unable to create step for job {}: {}",
                          job == value.around->environment.end() ? "" : job->second, text),
              hint);
}

/// -c and --gpus-per-task, when given as well, have been found to agree or to come first.
Applied tres_per_task(const Value& value, Request& request) {
  if (!value.building) return {};
  Result<std::vector<text::TresItem>> items = text::parse_tres_per_task(value.text);
  if (!items) {
    return bad_tres_per_task(value, items.error().hint.empty()
                                        ? "write cpu=n, gres/gpu=n, gres/gpu:a100=n or license/x=n"
                                        : items.error().hint);
  }
  for (const text::TresItem& item : *items) {
    if (item.negative) return bad_tres_per_task(value, "a count cannot be negative");
    if (item.kind == "cpu") {
      if (item.count == 0 || item.count > INT32_MAX) {
        return bad_tres_per_task(value, "a task has from 1 CPU");
      }
      if (!request.given.has(Opt::cpus_per_task)) {
        request.cpus_per_task = static_cast<std::uint32_t>(item.count);
      }
    } else if (item.kind == "gres") {
      if (item.name == text::kGpuMemory) return bad_tres_per_task(value, kUseGpuMem);
      if (item.name == "gpu" && request.given.has(Opt::gpus_per_task)) continue;
      request.gres_per_task.push_back(ask_of(item));
    } else if (item.kind != "license") {
      return bad_tres_per_task(value, fmt::format("{} cannot be asked for per task", item.kind));
    }
  }
  return {};
}

struct Flag {
  std::string_view name;
  bool GresFlags::* field;
};

constexpr Flag kFlags[] = {
    {"enforce-binding", &GresFlags::enforce_binding},
    {"disable-binding", &GresFlags::disable_binding},
    {"allow-task-sharing", &GresFlags::allow_task_sharing},
    {"no-task-sharing", &GresFlags::no_task_sharing},
    {"one-task-per-sharing", &GresFlags::one_task_per_sharing},
    {"multiple-tasks-per-sharing", &GresFlags::multiple_tasks_per_sharing},
};

Applied gres_flags(const Value& value, Request& request) {
  GresFlags flags;
  for (const std::string_view word : text::split(value.text, ',')) {
    const auto* flag = std::ranges::find_if(
        kFlags, [&](const Flag& known) { return text::equal_ignoring_case(known.name, word); });
    const bool of_steps =
        flag != std::end(kFlags) && (flag->field == &GresFlags::allow_task_sharing ||
                                     flag->field == &GresFlags::no_task_sharing);
    if (flag == std::end(kFlags) || (of_steps && value.command != Command::srun)) {
      return invalid_value(value,
                           "enforce-binding, disable-binding, one-task-per-sharing, "
                           "multiple-tasks-per-sharing or (srun) allow-task-sharing, "
                           "no-task-sharing");
    }
    flags.*(flag->field) = true;
  }
  if (flags.allow_task_sharing && flags.no_task_sharing) {
    return invalid_value(value, "allow-task-sharing or no-task-sharing, not both");
  }
  const bool sharing = flags.one_task_per_sharing || flags.multiple_tasks_per_sharing;
  if (sharing && !value.around->multiple_sharing_gres) {
    return fail(Code::bad_value,
                fmt::format("In order to use --gres-flags={} you must also have "
                            "SelectTypeParameters=MULTIPLE_SHARING_GRES_PJ in your slurm.conf",
                            flags.one_task_per_sharing ? "one-task-per-sharing"
                                                       : "multiple-tasks-per-sharing"),
                "without it a job's shards all come from one GPU, so there is nothing to spread",
                255);
  }
  request.gres_flags = flags;
  return {};
}

constexpr std::string_view kBindForms =
    "[verbose,] and one of none, closest, single:tasks, per_task:gpus, map:ids, mask:masks";

struct BindError {
  std::string before;  // line that comes first; "" = none
};

std::expected<GpuBind, BindError> read_bind(std::string_view written, std::string_view gres) {
  GpuBind bind;
  bind.gres = std::string(gres);
  std::string_view rest = written;
  if (text::to_lower(rest.substr(0, 8)) == "verbose,") {
    bind.verbose = true;
    rest.remove_prefix(8);
  }
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  std::string kind = text::to_lower(rest.substr(0, colon));
  const std::string_view argument =
      colon == rest.size() ? std::string_view() : rest.substr(colon + 1);
  std::string shown = kind;
  if (kind == "none" || kind == "none,verbose" || kind == "closest") {
    if (colon != rest.size()) return std::unexpected(BindError{});
    bind.kind = kind == "closest" ? GpuBindKind::closest : GpuBindKind::none;
    shown = kind == "closest" ? "closest" : "none";
  } else if (kind == "single" || kind == "per_task") {
    const std::optional<std::uint64_t> count = text::parse_number(argument, INT32_MAX);
    if (!count || *count == 0) return std::unexpected(BindError{});
    bind.kind = kind == "single" ? GpuBindKind::single : GpuBindKind::per_task;
    bind.count = static_cast<std::uint32_t>(*count);
    shown += fmt::format(":{}", *count);
  } else if (kind == "map" || kind == "map_gpu" || kind == "mask" || kind == "mask_gpu") {
    const bool masks = kind.starts_with("mask");
    if (const std::optional<std::string> why = list_complaint(argument, masks)) {
      return std::unexpected(BindError{*why});
    }
    auto list = masks ? text::parse_mask_list(argument) : text::parse_id_map(argument);
    if (!list) return std::unexpected(BindError{});
    bind.kind = masks ? GpuBindKind::mask : GpuBindKind::map;
    bind.list = std::move(*list);
    shown = fmt::format("{}:{}", masks ? "mask" : "map", argument);
  } else {
    return std::unexpected(BindError{});
  }
  bind.text = fmt::format("gres/{}:{}{}", gres, bind.verbose ? "verbose," : "", shown);
  return bind;
}

std::unexpected<Error> bind_error(const Value& value, const BindError& why) {
  Error error = invalid_argument(value, std::string(kBindForms)).error();
  if (!why.before.empty()) {
    error.messages.insert(error.messages.begin(), {Severity::error, why.before});
  }
  return std::unexpected(std::move(error));
}

Applied gpu_bind(const Value& value, Request& request) {
  std::expected<GpuBind, BindError> bind = read_bind(value.text, "gpu");
  if (!bind) return bind_error(value, bind.error());
  request.gpu_bind = std::move(*bind);
  return {};
}

/// gres/gpu:closest+gres/shard:none; a request binds one of the two.
Applied tres_bind(const Value& value, Request& request) {
  std::optional<GpuBind> found;
  for (const std::string_view part : text::split(value.text, '+')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos || !part.starts_with("gres/")) {
      return bind_error(value, {});
    }
    const std::string_view name = part.substr(5, colon - 5);
    if (name.empty()) return bind_error(value, {});
    std::expected<GpuBind, BindError> bind = read_bind(part.substr(colon + 1), name);
    if (!bind) return bind_error(value, bind.error());
    if (name != "gpu" && name != "shard") {
      return fail(Code::unsupported,
                  fmt::format("--tres-bind of gres/{} is not supported by berth", name),
                  "only gres/gpu and gres/shard have devices that tasks can be bound to");
    }
    if (!found || name == "gpu") found = std::move(*bind);
  }
  const Given* other = request.given.find(Opt::gpu_bind);
  const Given* mine = request.given.find(Opt::tres_bind);
  if (other == nullptr || (mine != nullptr && mine->level > other->level)) {
    request.gpu_bind = std::move(found);
  }
  return {};
}

/// Old form: g closest GPU, n closest network card, v verbose.
Applied accel_bind(const Value& value, Request& request) {
  const std::string_view letters = value.text;
  if (letters.empty() || letters.find_first_not_of("gnv") != std::string_view::npos) {
    return invalid_value(value, "letters of g (GPU), n (network card) and v (verbose)");
  }
  if (letters.find('g') != std::string_view::npos && !request.gpu_bind) {
    const bool verbose = letters.find('v') != std::string_view::npos;
    request.gpu_bind = *read_bind(verbose ? "verbose,closest" : "closest", "gpu");
  }
  return {};
}

/// [memory=]value,…[,verbose]; value is low, medium, high, highm1 or MHz.
Applied gpu_freq(const Value& value, Request&) {
  for (const std::string_view item : text::split(value.text, ',')) {
    std::string_view word = item;
    if (word == "verbose") continue;
    if (word.starts_with("memory=")) word.remove_prefix(7);
    const bool known = word == "low" || word == "medium" || word == "high" || word == "highm1";
    if (!known && !text::parse_number(word, UINT32_MAX)) {
      return invalid_argument(value, "[memory=]low, medium, high, highm1 or MHz, and verbose");
    }
  }
  return {};
}

}  // namespace

std::optional<std::string> list_complaint(std::string_view list, bool hexadecimal) {
  for (const std::string_view entry : text::split(list, ',')) {
    std::string_view rest = entry;
    bool hex = hexadecimal;
    if (rest.starts_with("0x") || rest.starts_with("0X")) {
      rest.remove_prefix(2);
      hex = true;
    }
    const std::string_view digits = hex ? "0123456789abcdefABCDEF" : "0123456789";
    const std::size_t end = std::min(rest.find_first_not_of(digits), rest.size());
    rest.remove_prefix(end);
    if (end > 0 && rest.starts_with('*')) {
      rest.remove_prefix(1);
      if (text::parse_number(rest, UINT32_MAX)) continue;
    }
    if (end == 0 || !rest.empty()) {
      return fmt::format("Failed to validate {}, offending character is {}", entry, rest);
    }
  }
  return std::nullopt;
}

bool names_gpu(std::string_view gres) {
  return std::ranges::any_of(text::split(gres, ','), [](std::string_view item) {
    if (item.starts_with("gres/")) item.remove_prefix(5);
    return item.starts_with("gpu") && (item.size() == 3 || item[3] == ':' || item[3] == '=');
  });
}

Apply resource_value(Opt opt) {
  switch (opt) {
    case Opt::gres:
      return gres;
    case Opt::gpus:
      return gpus<&Request::gres_per_job>;
    case Opt::gpu_mem:
      return gpu_mem;
    case Opt::gpus_per_node:
      return gpus<&Request::gres_per_node>;
    case Opt::gpus_per_socket:
      return gpus<&Request::gres_per_socket>;
    case Opt::gpus_per_task:
      return gpus<&Request::gres_per_task>;
    case Opt::tres_per_task:
      return tres_per_task;
    case Opt::gres_flags:
      return gres_flags;
    case Opt::gpu_bind:
      return gpu_bind;
    case Opt::tres_bind:
      return tres_bind;
    case Opt::accel_bind:
      return accel_bind;
    case Opt::gpu_freq:
      return gpu_freq;
    default:
      return nullptr;
  }
}

}  // namespace berth::request
