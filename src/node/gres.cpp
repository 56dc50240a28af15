#include "node/gres.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/natural.h"
#include "node/missing_gpus.h"
#include "text/hostlist.h"
#include "text/tres.h"
#include "text/words.h"

namespace berth::node {
namespace {

using conf::GresLine;
using device::Gpu;

bool for_node(const GresLine& line, const std::string& node) {
  return !line.nodes || std::ranges::find(*line.nodes, node) != line.nodes->end();
}

std::vector<const GresLine*> lines_for(const std::optional<conf::GresConf>& gres,
                                       const std::string& node) {
  std::vector<const GresLine*> out;
  if (!gres) return out;
  for (const GresLine& line : gres->lines) {
    if (for_node(line, node)) out.push_back(&line);
  }
  return out;
}

bool exists(const std::string& file) {
  std::error_code failed;
  return std::filesystem::exists(file, failed);
}

class Resolver {
 public:
  Resolver(const device::Machine& machine, const conf::Config& config, const std::string& node)
      : machine_(machine), lines_(lines_for(config.gres, node)) {
    for (const conf::NodeLine& line : config.slurm.nodes) {
      if (std::ranges::find(line.names, node) != line.names.end() && line.gres) {
        counted_ = &*line.gres;
      }
    }
    const auto* method = conf::autodetect_of(lines_);
    looked_ = method == nullptr || method->value != "off";
    out_.strict = method != nullptr && looked_;
  }

  Gres resolve(const std::vector<KnownGpu>& known) {
    gpus();
    const std::uint64_t there = counted_gpus();
    if (counted_ != nullptr) {
      place_missing_gpus(machine_, counted_->value, shown(counted_->at), known, out_);
    }
    for (GresItem& item : out_.items) {
      if (item.links.empty() && item.gpu != nullptr) item.links = links_of(*item.gpu);
    }
    against_slurm_conf();
    // Too few GPUs are no fault of a node on which each that is missing has its place.
    const bool placed = counted_gpus() > there || absent_ > 0;
    if (!placed && out_.fault.empty() && !too_few_.empty()) out_.fault = too_few_.front();
    others();
    return std::move(out_);
  }

 private:
  void differ(const conf::Location& at, std::string_view what, bool too_few = false) {
    out_.differences.push_back(fmt::format("{}: {}", shown(at), what));
    if (too_few) {
      too_few_.push_back(out_.differences.back());
    } else if (out_.fault.empty()) {
      out_.fault = out_.differences.back();
    }
  }

  [[nodiscard]] std::uint64_t counted_gpus() const {
    std::uint64_t count = 0;
    for (const GresItem& item : out_.items) count += item.count;
    return count;
  }

  void gpus() {
    bool described = false;
    for (const GresLine* line : lines_) {
      if (line->name != "gpu") continue;
      described = true;
      if (line->files.empty()) {
        by_count(*line);
      } else if (line->one_device) {
        by_files(*line, line->files);
      } else {
        for (const std::string& file : line->files) by_files(*line, {file});
      }
    }
    if (!described || out_.strict) {
      for (std::size_t i = 0; i < machine_.gpus.size(); ++i) {
        if (!used_.test(i)) add(machine_.gpus[i], nullptr);
      }
      in_order_of_the_machine();
    }
    keep_absent();
  }

  /// Those that lines name and that are not there stand where their files would.
  void in_order_of_the_machine() {
    const auto missing = std::ranges::stable_partition(
        out_.items, [](const GresItem& item) { return item.missing.empty(); });
    std::vector<GresItem> absent(missing.begin(), missing.end());
    out_.items.erase(missing.begin(), missing.end());
    std::ranges::stable_sort(out_.items, {}, [](const GresItem& item) { return item.gpu; });
    for (GresItem& item : absent) {
      const auto later = std::ranges::find_if(out_.items, [&](const GresItem& other) {
        return natural_less(item.files.front(), other.files.front());
      });
      out_.items.insert(later, std::move(item));
    }
  }

  /// As many as slurm.conf counts; lines beyond that name what the node does not have to have.
  void keep_absent() {
    std::uint64_t wanted = counted("gpu");
    while (counted_gpus() > wanted) {
      const auto last =
          std::ranges::find_if(out_.items.rbegin(), out_.items.rend(),
                               [](const GresItem& item) { return !item.missing.empty(); });
      if (last == out_.items.rend()) break;
      out_.items.erase(std::next(last).base());
      if (out_.fault.empty() && !too_few_.empty()) out_.fault = too_few_.front();
    }
    absent_ = static_cast<std::uint64_t>(std::ranges::count_if(
        out_.items, [](const GresItem& item) { return !item.missing.empty(); }));
  }

  /// The machine counts links to all GPUs it has; jobs may be given only some, in another order.
  [[nodiscard]] std::vector<int> links_of(const Gpu& gpu) const {
    std::vector<int> links;
    for (const GresItem& other : out_.items) {
      if (gpu.links.empty()) return {};
      if (!other.missing.empty()) {
        links.push_back(0);
        continue;
      }
      if (other.gpu == nullptr) return {};
      links.push_back(gpu.links[static_cast<std::size_t>(other.gpu - machine_.gpus.data())]);
    }
    return links;
  }

  void by_count(const GresLine& line) {
    if (!looked_) {
      believe(line, {});
      return;
    }
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < machine_.gpus.size() && found < line.amount(); ++i) {
      const Gpu& gpu = machine_.gpus[i];
      if (used_.test(i) || (!line.type.empty() && !gpu.is_called(line.type))) continue;
      used_.set(i);
      add(gpu, &line);
      ++found;
    }
    if (found == line.amount()) return;
    differ(line.at,
           fmt::format("{} GPUs{} are described, the machine has {}", line.amount(),
                       line.type.empty() ? "" : " of type " + line.type, found),
           true);
  }

  /// The GPU with these files; of parts of one, which share a file, the one that is called so.
  [[nodiscard]] std::optional<std::size_t> find(const GresLine& line,
                                                const std::vector<std::string>& files) const {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < machine_.gpus.size(); ++i) {
      const Gpu& gpu = machine_.gpus[i];
      if (used_.test(i) || gpu.file != files.front()) continue;
      std::vector<std::string> all = {gpu.file};
      all.insert(all.end(), gpu.more_files.begin(), gpu.more_files.end());
      if (line.one_device && !std::ranges::is_permutation(all, files)) continue;
      if (gpu.is_called(line.type)) return i;
      if (!first) first = i;
    }
    return first;
  }

  /// The files of one device.
  void by_files(const GresLine& line, const std::vector<std::string>& files) {
    if (const auto i = find(line, files)) {
      used_.set(*i);
      check(line, machine_.gpus[*i]);
      add(machine_.gpus[*i], &line);
      return;
    }
    // Without AutoDetect the line is believed: there may be devices that nobody here knows.
    if (!out_.strict && std::ranges::all_of(files, exists)) {
      believe(line, files);
      return;
    }
    const std::string named =
        fmt::format("{}={}", line.one_device ? "MultipleFiles" : "File", fmt::join(files, ","));
    differ(line.at,
           fmt::format("{} is not a GPU of this machine, which has {}", named, all_files()), true);
    believe(line, files);
    out_.items.back().missing = fmt::format("{} ({}) is not there", named, shown(line.at));
  }

  void believe(const GresLine& line, const std::vector<std::string>& files) {
    GresItem item;
    item.name = "gpu";
    item.type = line.type;
    item.files = files;
    item.count = files.empty() ? line.amount() : 1;
    if (line.cores) item.cores = line.cores->value;
    if (line.links) item.links = line.links->value;
    out_.items.push_back(std::move(item));
  }

  [[nodiscard]] std::string all_files() const {
    std::vector<std::string> files;
    for (const Gpu& gpu : machine_.gpus) {
      if (files.empty() || files.back() != gpu.file) files.push_back(gpu.file);
    }
    return files.empty() ? "none" : text::compress_hostlist(files);
  }

  [[nodiscard]] Bits cores_of(const Bits& sockets) const {
    Bits cores;
    const std::size_t in_socket = machine_.cores_per_socket;
    sockets.each(
        [&](std::size_t s) { cores |= Bits::range(s * in_socket, (s + 1) * in_socket - 1); });
    return cores;
  }

  void check(const GresLine& line, const Gpu& gpu) {
    if (!line.type.empty() && !gpu.model.empty() && !gpu.is_called(line.type)) {
      differ(line.at, fmt::format("Type={}, but {} is an {} ({})", line.type, gpu.file, gpu.model,
                                  gpu.type));
    }
    if (line.cores && gpu.sockets.any()) {
      const Bits near = cores_of(gpu.sockets);
      if (!(near == line.cores->value)) {
        differ(line.cores->at, fmt::format("Cores={}, but {} is near cores {}",
                                           line.cores->value.ranges(), gpu.file, near.ranges()));
      }
    }
    if (line.links && !gpu.links.empty() && line.links->value != gpu.links) {
      differ(line.links->at,
             fmt::format("Links={}, but {} has {}", fmt::join(line.links->value, ","), gpu.file,
                         fmt::join(gpu.links, ",")));
    }
  }

  /// The GPU as the line, slurm.conf or its maker calls it.
  void add(const Gpu& gpu, const GresLine* line) {
    GresItem item;
    item.name = "gpu";
    item.gpu = &gpu;
    item.type = line != nullptr && !line->type.empty() ? line->type : type_in_slurm_conf(gpu);
    item.files = {gpu.file};
    item.files.insert(item.files.end(), gpu.more_files.begin(), gpu.more_files.end());
    item.cores = line != nullptr && line->cores ? line->cores->value : cores_of(gpu.sockets);
    if (line != nullptr && line->links) item.links = line->links->value;
    out_.items.push_back(std::move(item));
  }

  [[nodiscard]] std::string type_in_slurm_conf(const Gpu& gpu) const {
    std::string called;
    if (counted_ != nullptr) {
      for (const text::TresItem& item : counted_->value) {
        if (item.name != "gpu" || item.type.empty()) continue;
        if (item.type == gpu.type) return item.type;
        if (gpu.is_called(item.type)) called = item.type;
      }
    }
    return called.empty() ? gpu.type : called;
  }

  /// Gres= of the NodeName line counts what is here.
  void against_slurm_conf() {
    if (counted_ == nullptr) return;
    std::map<std::string, std::uint64_t> found;
    std::uint64_t all = 0;
    for (const GresItem& item : out_.items) {
      if (!item.missing.empty()) continue;
      found[item.type] += item.count;
      all += item.count;
    }
    std::uint64_t wanted = 0;
    for (const text::TresItem& item : counted_->value) {
      if (item.name != "gpu") continue;
      wanted += item.count;
      const std::uint64_t here = item.type.empty() ? all : found[item.type];
      if (here < item.count) {
        differ(counted_->at,
               fmt::format("Gres=gpu:{}{}{}, but the machine has {}", item.type,
                           item.type.empty() ? "" : ":", item.count, in_words(found)),
               true);
      }
    }
    if (all > wanted) {
      differ(counted_->at,
             fmt::format("Gres= has {} GPUs, but the machine has {}; to keep some from jobs, write "
                         "AutoDetect=off and a line for each of the others into gres.conf",
                         wanted, in_words(found)));
    }
  }

  static std::string in_words(const std::map<std::string, std::uint64_t>& found) {
    std::vector<std::string> out;
    for (const auto& [type, count] : found) {
      if (count > 0) out.push_back(fmt::format("gpu:{}{}{}", type, type.empty() ? "" : ":", count));
    }
    return out.empty() ? "no GPU" : fmt::format("{}", fmt::join(out, ","));
  }

  /// What no program can find: it is as it is written, but for files that are not there.
  void others() {
    std::vector<std::string> described;
    for (const GresLine* line : lines_) {
      if (line->name.empty() || line->name == "gpu") continue;
      described.push_back(line->name);
      GresItem item;
      item.name = line->name;
      item.type = line->type;
      item.count = line->amount();
      if (line->cores) item.cores = line->cores->value;
      const bool shared = text::is_part_of_gpu(line->name);
      for (const std::string& file : line->files) {
        if (shared || exists(file)) {
          item.files.push_back(file);
        } else {
          differ(line->at, fmt::format("File={} is not there", file));
        }
      }
      if (shared) {
        item.count = line->count ? line->count->value : counted(line->name);
      } else if (!line->files.empty()) {
        const bool whole = item.files.size() == line->files.size();
        item.count = line->one_device ? (whole ? 1 : 0) : item.files.size();
      }
      out_.items.push_back(std::move(item));
    }
    if (counted_ == nullptr) return;
    for (const text::TresItem& wanted : counted_->value) {
      const bool known = std::ranges::find(described, wanted.name) != described.end();
      if (known || wanted.name == "gpu") continue;
      GresItem item;
      item.name = wanted.name;
      item.type = wanted.type;
      item.count = wanted.count;
      out_.items.push_back(std::move(item));
    }
  }

  [[nodiscard]] std::uint64_t counted(const std::string& name) const {
    std::uint64_t count = 0;
    if (counted_ == nullptr) return count;
    for (const text::TresItem& item : counted_->value) count += item.name == name ? item.count : 0;
    return count;
  }

  const device::Machine& machine_;
  std::vector<const GresLine*> lines_;
  const conf::Located<std::vector<text::TresItem>>* counted_ = nullptr;
  bool looked_ = true;                // not AutoDetect=off
  std::vector<std::string> too_few_;  // differences that missing GPUs explain
  std::uint64_t absent_ = 0;          // GPUs that lines name and that are not there
  Bits used_;
  Gres out_;
};

}  // namespace

Result<device::Detect> detect_of(const std::optional<conf::GresConf>& gres,
                                 const std::string& node) {
  const auto* method = conf::autodetect_of(lines_for(gres, node));
  if (method == nullptr || method->value == "full") return device::Detect::full;
  if (method->value == "nvml") return device::Detect::nvml;
  if (method->value == "nvidia") return device::Detect::nvidia;
  if (method->value == "rsmi") return device::Detect::rsmi;
  if (method->value == "oneapi") return device::Detect::oneapi;
  if (method->value == "off") return device::Detect::off;
  return fail(Code::unsupported,
              fmt::format("{}: AutoDetect={}: berth does not look for such devices",
                          shown(method->at), method->value),
              "write AutoDetect=off and a line with File= for them");
}

std::optional<LibraryNumber> number_in(const survey::Survey& told, const device::Gpu& gpu) {
  for (const survey::FoundInstance& part : told.instances) {
    if (part.uuid == gpu.uuid) return LibraryNumber{part.gpu, part.gpu_instance};
  }
  const auto at = std::ranges::find(told.gpus, gpu.uuid, &survey::FoundGpu::uuid);
  if (at == told.gpus.end() || gpu.uuid.empty()) return std::nullopt;
  return LibraryNumber{at->index, std::nullopt};
}

Gres resolve_gres(const device::Machine& machine, const conf::Config& config,
                  const std::string& node, const std::vector<KnownGpu>& known) {
  return Resolver(machine, config, node).resolve(known);
}

void Gres::tell(wire::NodeReport& report) const {
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
  for (const GresItem& item : items) {
    counts[{item.name, item.type}] += item.count;
    if (item.name != "gpu") continue;
    wire::GpuFound& found = *report.add_gpus();
    found.set_type(item.type);
    if (!item.files.empty()) found.set_file(item.files.front());
    if (item.gpu == nullptr) continue;
    item.gpu->sockets.each(
        [&](std::size_t socket) { found.add_sockets(static_cast<std::uint32_t>(socket)); });
    for (const int links : item.links) found.add_links(links);
    found.set_uuid(item.gpu->uuid);
    found.set_memory_mb(item.gpu->memory_mb);
    found.set_vendor(text::to_lower(device::name_of(item.gpu->vendor)));
  }
  for (const auto& [name, count] : counts) {
    wire::GresFound& found = *report.add_gres();
    found.set_name(name.first);
    found.set_type(name.second);
    found.set_count(count);
  }
  if (strict) report.set_gres_fault(fault);
}

}  // namespace berth::node
