// From scontrol's records to allocations. Nothing that contradicts the cluster or another job gets
// through: it is cut down to what fits, and said.
#include "site/busy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "conf/complaints.h"
#include "site/busy_text.h"
#include "text/cpumask.h"
#include "text/hostlist.h"
#include "text/number.h"
#include "text/size.h"
#include "text/words.h"

namespace berth::site {
namespace {

constexpr std::size_t kMaxProblems = 100;
constexpr std::size_t kMaxNames = std::size_t{1} << 22;  // of all Nodes= together

constexpr std::array<std::string_view, 10> kHolding = {
    "RUNNING",   "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING",
    "SIGNALING", "STAGE_OUT", "STOPPED",    "EXPEDITING",  "UPDATE_DB"};
constexpr std::array<std::string_view, 17> kNotHolding = {
    "PENDING",      "COMPLETED",   "CANCELLED",    "FAILED",        "TIMEOUT",      "NODE_FAIL",
    "PREEMPTED",    "BOOT_FAIL",   "DEADLINE",     "OUT_OF_MEMORY", "REVOKED",      "REQUEUED",
    "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "LAUNCH_FAILED"};
constexpr std::array<std::string_view, 12> kUnusable = {
    "DOWN",   "DRAIN",          "DRAINED",     "DRAINING", "FAIL",  "FAILING",
    "FUTURE", "NOT_RESPONDING", "INVALID_REG", "INVAL",    "MAINT", "RESERVED"};

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// What jobs read so far hold on one node.
struct Held {
  Bits cores;
  std::uint64_t memory_mb = 0;
  std::uint64_t cpus = 0;
  std::vector<std::vector<std::uint64_t>> gres;  // as in NodeUsage
};

/// A job while its lines come in.
struct Job {
  std::string id;
  std::size_t line = 0;
  std::string state;
  std::string partition;
  bool has_exclusive_key = false;
  bool exclusive = false;
  bool not_shared = false;  // OverSubscribe=NO
  std::string nodes_field;  // NodeList=
  struct Detail {
    std::size_t line = 0;
    std::string_view nodes, cpu_ids, memory, gres;
  };
  std::vector<Detail> details;
};

class BusyReader {
 public:
  explicit BusyReader(const cluster::Cluster& cluster) : cluster_(cluster) {
    held_.resize(cluster.nodes.size());
  }

  Result<Busy> read(std::span<const BusyText> texts) {
    for (const BusyText& one : texts) {
      starts_.push_back({lines_, one.name});
      read_text(one.text);
      finish_job();
      finish_node();
      record_ = Record::none;
    }
    if (!any_record_) return nothing_found(texts);
    check_against_nodes();
    if (left_out_ > 0) {
      out_.problems.push_back(fmt::format("{} more lines like these", left_out_));
    }
    return std::move(out_);
  }

 private:
  enum class Record { none, job, node };

  /// Where a text begins among all lines.
  struct Start {
    std::size_t lines_before = 0;
    std::string name;
  };

  void read_text(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++lines_;
      if (!text::trim(line).empty()) take_line(line, lines_);
    }
  }

  static std::unexpected<Error> nothing_found(std::span<const BusyText> texts) {
    std::vector<std::string> names;
    for (const BusyText& one : texts) {
      if (!one.name.empty()) names.push_back(one.name);
    }
    return fail(Code::bad_value,
                fmt::format("{} {} neither a job nor a node",
                            names.empty() ? "the text" : fmt::format("{}", fmt::join(names, ", ")),
                            names.size() > 1 ? "name" : "names"),
                "it is made by: (scontrol -d show node; scontrol -d show job) > FILE");
  }

  /// `line` is counted over all texts.
  void problem(std::size_t line, std::string_view text) {
    if (out_.problems.size() >= kMaxProblems) {
      ++left_out_;
      return;
    }
    const auto after = std::ranges::lower_bound(starts_, line, {}, &Start::lines_before);
    const Start& in = *std::prev(after);
    out_.problems.push_back(fmt::format("{}{}line {}: {}", in.name, in.name.empty() ? "" : ": ",
                                        line - in.lines_before, text));
  }

  void take_line(std::string_view line, std::size_t number) {
    const std::string_view trimmed = text::trim(line);
    if (trimmed.starts_with("No jobs in the system")) {
      any_record_ = true;
      return;
    }
    const std::vector<Field> fields = fields_of(line);
    const std::string_view first = fields.front().key;
    if (first == "JobId" || first == "NodeName") {
      finish_job();
      finish_node();
      any_record_ = true;
      record_ = first == "JobId" ? Record::job : Record::node;
    }
    const bool known = (record_ == Record::job && known_job_key(first)) ||
                       (record_ == Record::node && known_node_key(first));
    if (!known) {
      problem(number, fmt::format("not understood: \"{}\"", conf::shown(trimmed)));
      return;
    }
    if (record_ == Record::job) job_line(fields, number);
    if (record_ == Record::node) node_line(fields, number);
  }

  void job_line(const std::vector<Field>& fields, std::size_t number) {
    if (!job_) job_.emplace();
    Job::Detail* detail = nullptr;
    for (const Field& field : fields) {
      if (field.key == "JobId") {
        job_->id = field.value;
        job_->line = number;
      } else if (field.key == "JobState") {
        job_->state = field.value;
      } else if (field.key == "Partition") {
        job_->partition = field.value;
      } else if (field.key == "Exclusive") {
        job_->has_exclusive_key = true;
        job_->exclusive = field.value == "NODE" || field.value == "YES";
      } else if (field.key == "OverSubscribe") {
        job_->not_shared = field.value == "NO";
      } else if (field.key == "NodeList") {
        job_->nodes_field = field.value;
      } else if (field.key == "Nodes") {
        if (job_->details.size() >= cluster_.nodes.size()) {
          problem(number, "the job has more parts than the cluster has nodes");
          return;
        }
        detail = &job_->details.emplace_back();
        detail->line = number;
        detail->nodes = field.value;
      } else if (detail != nullptr && field.key == "CPU_IDs") {
        detail->cpu_ids = field.value;
      } else if (detail != nullptr && field.key == "Mem") {
        detail->memory = field.value;
      } else if (detail != nullptr && field.key == "GRES") {
        detail->gres = field.value;
      }
    }
  }

  void finish_job() {
    if (!job_) return;
    const Job job = std::move(*job_);
    job_.reset();
    if (is_in(kNotHolding, job.state)) return;
    if (!is_in(kHolding, job.state)) {
      problem(job.line, fmt::format("job {} has no state that is known (\"{}\")",
                                    conf::shown(job.id), conf::shown(job.state)));
      return;
    }
    if (job.details.empty()) {
      problem(job.line, fmt::format("job {} runs, but its CPUs are not listed: print it with "
                                    "scontrol -d show job",
                                    conf::shown(job.id)));
      return;
    }
    cluster::Allocation allocation;
    // Where there is no Exclusive=, an older Slurm prints OverSubscribe=NO for exclusive jobs.
    allocation.whole_nodes = job.has_exclusive_key ? job.exclusive : job.not_shared;
    std::map<cluster::NodeIndex, cluster::NodeShare> shares;
    for (const Job::Detail& detail : job.details) add_detail(detail, shares);
    for (auto& [node, share] : shares) allocation.nodes.push_back(std::move(share));
    cluster::bind_to(cluster_, job.partition, allocation);
    if (!allocation.nodes.empty()) out_.jobs.push_back(std::move(allocation));
  }

  void add_detail(const Job::Detail& detail,
                  std::map<cluster::NodeIndex, cluster::NodeShare>& shares) {
    if (names_ > kMaxNames) return;
    const auto names = text::expand_hostlist(detail.nodes);
    if (!names) return problem(detail.line, names.error().what());
    names_ += names->size();
    if (names_ > kMaxNames)
      return problem(detail.line, "too many nodes in all; the rest is left out");
    const auto ids =
        detail.cpu_ids.empty() ? std::optional<Bits>(Bits()) : text::parse_id_set(detail.cpu_ids);
    if (!ids) {
      return problem(detail.line,
                     fmt::format("CPU_IDs={} is not a list of CPUs", conf::shown(detail.cpu_ids)));
    }
    const auto memory = detail.memory.empty() ? 0 : text::parse_size_mb(detail.memory);
    if (!memory) {
      return problem(detail.line, fmt::format("Mem={} is not a size", conf::shown(detail.memory)));
    }
    for (const std::string& name : *names) {
      const auto index = cluster_.find_node(name);
      if (!index) {
        problem(detail.line, fmt::format("node {} is not in the configuration", conf::shown(name)));
        continue;
      }
      if (shares.contains(*index)) {
        problem(detail.line, fmt::format("node {} is listed twice for this job", name));
        continue;
      }
      shares.emplace(*index, share_of(*index, *ids, *memory, detail));
    }
  }

  cluster::NodeShare share_of(cluster::NodeIndex index, const Bits& ids, std::uint64_t memory,
                              const Job::Detail& detail) {
    const cluster::Node& node = cluster_.nodes[index];
    Held& held = held_[index];
    cluster::NodeShare share;
    share.node = index;
    Bits beyond = ids - Bits::first_n(node.cpus());
    if (beyond.any()) {
      problem(detail.line, fmt::format("CPU_IDs={}, but {} has CPUs 0-{}", ids.ranges(), node.name,
                                       node.cpus() - 1));
    }
    (ids - beyond).each([&](std::size_t id) { share.cores.set(id / node.threads_per_core); });
    if (share.cores.intersects(held.cores)) {
      problem(detail.line,
              fmt::format("CPUs of {} are in use by two jobs; counted once", node.name));
      share.cores -= held.cores;
    }
    held.cores |= share.cores;
    share.cpus = static_cast<std::uint32_t>(share.cores.count()) * node.threads_per_core;
    share.usable_cpus = share.cpus;
    held.cpus += share.cpus;
    const std::uint64_t left = node.memory_mb - std::min(node.memory_mb, held.memory_mb);
    if (memory > left) {
      problem(detail.line, fmt::format("Mem={}, but only {} of {} is left by the other jobs",
                                       memory, text::format_mb(left), node.name));
    }
    share.memory_mb = std::min(memory, left);
    held.memory_mb += share.memory_mb;
    for (const GresText& item : gres_items(detail.gres)) {
      if (item.name == "(null)") continue;
      add_gres(item, node, held, detail.line, share);
    }
    return share;
  }

  void add_gres(const GresText& item, const cluster::Node& node, Held& held, std::size_t line,
                cluster::NodeShare& share) {
    const cluster::Gres* gres = node.find_gres(item.name);
    const auto count = text::parse_number(item.count);
    if (gres == nullptr || !count) {
      problem(line, gres == nullptr ? fmt::format("{} has no {} in the configuration", node.name,
                                                  conf::shown(item.name))
                                    : fmt::format("\"{}\" is not a count of {}",
                                                  conf::shown(item.count), gres->name));
      return;
    }
    if (*count == 0) return;
    const auto units = units_of(item, *count, *gres);
    if (!units) {
      problem(line, fmt::format("which {} of {} are in use is not understood: \"{}\"", gres->name,
                                node.name, conf::shown(item.inside)));
      return;
    }
    if (held.gres.empty()) held.gres.resize(node.gres.size());
    const auto position = static_cast<std::size_t>(gres - node.gres.data());
    held.gres[position].resize(gres->devices.size());
    auto found = std::ranges::find(share.gres, gres->name, &cluster::GresShare::name);
    if (found == share.gres.end()) {
      share.gres.push_back({gres->name, std::vector<std::uint64_t>(gres->devices.size())});
      found = std::prev(share.gres.end());
    }
    for (std::size_t i = 0; i < units->size(); ++i) {
      std::uint64_t& taken = held.gres[position][i];
      std::uint64_t wanted = (*units)[i];
      const std::uint64_t free = gres->devices[i].units - taken;
      if (wanted > free || (wanted > 0 && rival_holds(node, held, position, i))) {
        problem(line, fmt::format("{} {} of {} is in use by two jobs; counted once", gres->name, i,
                                  node.name));
        wanted = rival_holds(node, held, position, i) ? 0 : free;
      }
      taken += wanted;
      found->units[i] += wanted;
    }
    if (found->total() == 0) share.gres.erase(found);
  }

  /// A GPU held whole cannot be shared, and the other way round.
  static bool rival_holds(const cluster::Node& node, const Held& held, std::size_t position,
                          std::size_t device) {
    const cluster::Gres& gres = node.gres[position];
    if (gres.name != "gpu" && !gres.shares_gpu) return false;
    for (std::size_t other = 0; other < node.gres.size(); ++other) {
      const bool on_gpu = node.gres[other].name == "gpu" || node.gres[other].shares_gpu;
      if (other == position || !on_gpu || device >= held.gres[other].size()) continue;
      if (held.gres[other][device] > 0) return true;
    }
    return false;
  }

  /// Units of each device: "IDX:0-1" (one each, or all of `count` on a single shared device),
  /// "2/4,0/4" (taken/total of each device), or nothing (a pool that is only counted).
  static std::optional<std::vector<std::uint64_t>> units_of(const GresText& item,
                                                            std::uint64_t count,
                                                            const cluster::Gres& gres) {
    std::vector<std::uint64_t> units(gres.devices.size());
    if (units.empty()) return std::nullopt;
    if (item.inside.starts_with("IDX:")) {
      const auto ids = text::parse_id_set(item.inside.substr(4));
      if (!ids || ids->last() >= units.size()) return std::nullopt;
      const std::uint64_t devices = ids->count();
      if (!gres.shares_gpu && devices != count) return std::nullopt;
      if (gres.shares_gpu && devices != 1 && devices != count) return std::nullopt;
      ids->each([&](std::size_t i) { units[i] = count / devices; });
      return units;
    }
    if (item.inside.find('/') != std::string_view::npos) {
      const auto parts = text::split(item.inside, ',');
      if (parts.size() != units.size()) return std::nullopt;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string_view taken = parts[i].substr(0, parts[i].find('/'));
        const auto number = taken == "-" ? 0 : text::parse_number(taken);
        if (!number) return std::nullopt;
        units[i] = *number;
      }
      return units;
    }
    if (!gres.counted) return std::nullopt;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (gres.devices[i].type == item.type) units[i] = count;
    }
    return units;
  }

  void node_line(const std::vector<Field>& fields, std::size_t number) {
    for (const Field& field : fields) {
      if (field.key == "NodeName") {
        node_name_ = field.value;
        node_at_ = number;
      }
      if (field.key == "State") node_state_ = field.value;
      if (field.key == "Reason") node_reason_ = field.value;
      if (field.key == "CPUAlloc") node_alloc_ = text::parse_number(field.value);
    }
  }

  void finish_node() {
    if (node_name_.empty()) return;
    const std::string name = std::move(node_name_);
    const std::string state = std::move(node_state_);
    const std::string reason = std::move(node_reason_);
    const auto alloc = node_alloc_;
    node_name_.clear();
    node_state_.clear();
    node_reason_.clear();
    node_alloc_.reset();
    const auto index = cluster_.find_node(name);
    if (!index) {
      problem(node_at_, fmt::format("node {} is not in the configuration", conf::shown(name)));
      return;
    }
    if (alloc) allocated_[*index] = {*alloc, node_at_};
    for (std::string_view word : text::split(state, '+')) {
      // "DOWN*": does not respond. The other signs tell of power states.
      const bool silent = word.ends_with('*');
      while (!word.empty() && (word.back() < 'A' || word.back() > 'Z')) word.remove_suffix(1);
      if (!is_in(kUnusable, word) && !silent) continue;
      out_.unusable.push_back(
          {*index, name, reason.empty() ? state : fmt::format("{} ({})", state, reason)});
      return;
    }
  }

  /// More CPUs in use than the jobs account for: jobs are missing from the text.
  void check_against_nodes() {
    for (const auto& [index, alloc] : allocated_) {
      const auto& [cpus, line] = alloc;
      if (cpus <= held_[index].cpus) continue;
      problem(line, fmt::format("{} has {} CPUs in use, the jobs listed hold {}; is the output of "
                                "scontrol -d show job complete?",
                                cluster_.nodes[index].name, cpus, held_[index].cpus));
    }
  }

  const cluster::Cluster& cluster_;
  Busy out_;
  Record record_ = Record::none;
  bool any_record_ = false;
  std::size_t lines_ = 0;  // read so far, in all texts
  std::vector<Start> starts_;
  std::optional<Job> job_;
  std::string node_name_, node_state_, node_reason_;
  std::optional<std::uint64_t> node_alloc_;
  std::size_t node_at_ = 0;
  std::map<cluster::NodeIndex, std::pair<std::uint64_t, std::size_t>> allocated_;
  std::vector<Held> held_;
  std::size_t names_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace

Result<Busy> parse_busy(std::span<const BusyText> texts, const cluster::Cluster& cluster) {
  std::size_t bytes = 0;
  for (const BusyText& one : texts) bytes += one.text.size();
  if (bytes > kMaxBusyBytes) {
    return fail(Code::limit,
                fmt::format("the output of scontrol is larger than {} MiB", kMaxBusyBytes >> 20));
  }
  return BusyReader(cluster).read(texts);
}

Result<Busy> parse_busy(std::string_view text, const cluster::Cluster& cluster) {
  const BusyText only{"", std::string(text)};
  return parse_busy(std::span(&only, 1), cluster);
}

}  // namespace berth::site
