#include "schedule/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "schedule/reserved_words.h"
#include "text/duration.h"
#include "text/hostlist.h"

namespace berth::schedule {
namespace {

using job::Job;
using job::State;
using request::GresAsk;
using request::Request;

class Search {
 public:
  Search(State& state, Knowledge& knowledge, const Job& job, Time now)
      : state_(state),
        calendar_(knowledge.calendar),
        job_(job),
        earliest_(state, knowledge.calendar, now) {
    const place::Prepared& prepared = knowledge.shapes.of(state, job).prepared;
    seconds_ = seconds_of(job, prepared);
  }

  std::vector<Change> run() {
    shorter();
    fewer_gpus();
    less_memory();
    fewer_cpus();
    fewer_nodes();
    without_demands();
    other_partitions();
    in_reservations();
    return std::move(found_);
  }

 private:
  /// Where it would start now with this request, or "".
  std::string starts(const Request& request, Time seconds) {
    const place::Prepared prepared(state_.cluster(), request);
    if (!prepared.runnable()) return {};
    const auto plan = earliest_.now(prepared, seconds, work_, request.switches.has_value());
    if (!plan) return {};
    std::vector<std::string> names;
    for (const cluster::NodeShare& share : plan->allocation.nodes) {
      names.push_back(state_.cluster().nodes[share.node].name);
    }
    return text::compress_hostlist(names);
  }
  bool keep(const Request& request, std::string option) {
    std::string nodes = starts(request, seconds_);
    if (nodes.empty()) return false;
    found_.push_back({std::move(option), std::move(nodes)});
    return true;
  }
  /// The largest value in [least, most] that `starts` accepts; 0 = not even the least.
  static std::uint64_t largest(std::uint64_t least, std::uint64_t most,
                               const std::function<bool(std::uint64_t)>& accepts) {
    if (most < least || !accepts(least)) return 0;
    while (least < most) {
      const std::uint64_t middle = least + (most - least + 1) / 2;
      if (accepts(middle)) {
        least = middle;
      } else {
        most = middle - 1;
      }
    }
    return least;
  }

  void shorter() {
    Request request = job_.what->request;
    const auto minutes = static_cast<std::uint64_t>(seconds_ / 60);
    if (minutes < 2) return;
    const std::uint64_t best = largest(1, minutes - 1, [&](std::uint64_t m) {
      return !starts(request, static_cast<Time>(m) * 60).empty();
    });
    if (best == 0) return;
    found_.push_back(
        {fmt::format("--time={}", text::format_minutes(static_cast<std::uint32_t>(best))),
         starts(request, static_cast<Time>(best) * 60)});
  }

  void fewer_gpus() {
    using Field = std::vector<GresAsk> Request::*;
    constexpr std::pair<Field, std::string_view> kFields[] = {
        {&Request::gres_per_job, "--gpus"},
        {&Request::gres_per_node, "--gpus-per-node"},
        {&Request::gres_per_task, "--gpus-per-task"},
    };
    for (const auto& [field, option] : kFields) {
      for (std::size_t i = 0; i < (job_.what->request.*field).size(); ++i) {
        const GresAsk& asked = (job_.what->request.*field)[i];
        if (asked.name != "gpu" || asked.count < 2) continue;
        Request request = job_.what->request;
        for (std::uint64_t count = asked.count - 1; count > 0; --count) {
          (request.*field)[i].count = count;
          const std::string type = asked.type.empty() ? "" : asked.type + ":";
          if (keep(request, fmt::format("{}={}{}", option, type, count))) return;
        }
      }
    }
  }

  void less_memory() {
    const auto& memory = job_.what->request.memory;
    if (!memory || memory->mb < 2) return;
    Request request = job_.what->request;
    const std::uint64_t best = largest(1, memory->mb - 1, [&](std::uint64_t mb) {
      request.memory->mb = mb;
      return !starts(request, seconds_).empty();
    });
    if (best == 0) return;
    request.memory->mb = best;
    const std::string_view option = memory->per == request::MemoryPer::cpu   ? "--mem-per-cpu"
                                    : memory->per == request::MemoryPer::gpu ? "--mem-per-gpu"
                                                                             : "--mem";
    keep(request, fmt::format("{}={}M", option, best));
  }

  void fewer_cpus() {
    const auto& cpus = job_.what->request.cpus_per_task;
    if (!cpus || *cpus < 2) return;
    Request request = job_.what->request;
    const std::uint64_t best = largest(1, *cpus - 1, [&](std::uint64_t count) {
      request.cpus_per_task = static_cast<std::uint32_t>(count);
      return !starts(request, seconds_).empty();
    });
    if (best == 0) return;
    request.cpus_per_task = static_cast<std::uint32_t>(best);
    keep(request, fmt::format("--cpus-per-task={}", best));
  }

  void fewer_nodes() {
    const auto& nodes = job_.what->request.nodes;
    if (!nodes || nodes->min < 2 || !nodes->sizes.empty()) return;
    Request request = job_.what->request;
    for (std::uint32_t count = nodes->min - 1; count > 0; count /= 2) {
      request.nodes->min = count;
      request.nodes->max = count;
      if (keep(request, fmt::format("--nodes={}", count))) return;
    }
  }

  void without_demands() {
    const Request& asked = job_.what->request;
    if (asked.exclusive == request::Exclusive::node) {
      Request request = asked;
      request.exclusive = request::Exclusive::no;
      keep(request, "no --exclusive");
    }
    if (asked.switches) {
      Request request = asked;
      request.switches.reset();
      keep(request, "no --switches");
    }
    if (asked.constraint) {
      Request request = asked;
      request.constraint.reset();
      keep(request, "no --constraint");
    }
    if (!asked.nodelist.empty()) {
      Request request = asked;
      request.nodelist.clear();
      keep(request, "no --nodelist");
    }
  }

  void other_partitions() {
    for (const cluster::Partition& partition : state_.cluster().partitions) {
      if (std::ranges::find(job_.what->request.partitions, partition.name) !=
          job_.what->request.partitions.end()) {
        continue;
      }
      if (!open_to_all(partition.name)) continue;
      Request request = job_.what->request;
      request.partitions = {partition.name};
      if (keep(request, fmt::format("--partition={}", partition.name))) return;
    }
  }

  /// One that its user may use and it did not ask for; or none instead of the one it asked for.
  void in_reservations() {
    if (state_.reservations().empty()) return;
    if (!job_.asked_reservation().empty()) {
      const Calendar::Inside look(calendar_, nullptr);
      keep(job_.what->request, "no --reservation");
      return;
    }
    const reservation::User user{job_.uid, job_.gid, job_.what->account, job_.what->qos};
    for (const auto& [name, one] : state_.reservations()) {
      if (!reservation::may_use(one, user)) continue;
      const Calendar::Inside look(calendar_, &one);
      if (keep(job_.what->request, fmt::format("--reservation={}", name))) return;
    }
  }

  /// Whether a guarded partition would take it, only a submission can tell.
  [[nodiscard]] bool open_to_all(const std::string& name) const {
    const auto at = state_.policy().partitions.find(name);
    if (at == state_.policy().partitions.end()) return true;
    const job::PartitionPolicy& rules = at->second;
    return !rules.root_only && !rules.members && !rules.require_reservation &&
           rules.allow_accounts.empty() && rules.allow_qos.empty() && rules.deny_accounts.empty() &&
           rules.deny_qos.empty() && rules.alloc_nodes.empty();
  }

  State& state_;
  Calendar& calendar_;
  const Job& job_;
  Earliest earliest_;
  Time seconds_ = 0;
  Work work_;
  std::vector<Change> found_;
};

}  // namespace

std::vector<Change> changes_that_start(State& state, Knowledge& knowledge, const Job& job,
                                       Time now) {
  if (job.het) return {};  // components are changed together
  // What is planned for it is not in its own way.
  std::vector<Planned> own = knowledge.calendar.take(job.id);
  const Calendar::Inside look(knowledge.calendar, first_place(state, job));
  std::vector<Change> found = Search(state, knowledge, job, now).run();
  for (Planned& planned : own) knowledge.calendar.add(std::move(planned));
  return found;
}

}  // namespace berth::schedule
