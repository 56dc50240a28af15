#include "openb/workload.h"

#include <fmt/format.h>

#include <map>

#include "openb/table.h"

namespace berth::openb {
namespace {

constexpr std::uint64_t kMostAmount = 1'000'000'000'000;
constexpr std::uint64_t kMostGpus = 64;
/// Bit 63 stands for every model that no node has.
constexpr std::size_t kMostModels = 63;

class Models {
 public:
  /// The bit of a model that a node has.
  std::optional<std::uint64_t> add(std::string_view name) {
    const auto known = bits_.find(name);
    if (known != bits_.end()) return known->second;
    if (bits_.size() >= kMostModels) return std::nullopt;
    return bits_.emplace(std::string(name), std::uint64_t{1} << bits_.size()).first->second;
  }
  /// The bits of "A|B"; 0 = any.
  [[nodiscard]] std::uint64_t wanted(std::string_view list) const {
    std::uint64_t out = 0;
    while (!list.empty()) {
      const std::size_t bar = list.find('|');
      const std::string_view name = list.substr(0, bar);
      list.remove_prefix(bar == std::string_view::npos ? list.size() : bar + 1);
      if (name.empty()) continue;
      const auto known = bits_.find(name);
      out |= known == bits_.end() ? std::uint64_t{1} << kMostModels : known->second;
    }
    return out;
  }

 private:
  std::map<std::string, std::uint64_t, std::less<>> bits_;
};

Result<place::Bin> read_node(const Table& table, std::size_t row, Models& models) {
  place::Bin bin;
  const auto cpu = table.number(row, "cpu_milli", kMostAmount);
  if (!cpu) return std::unexpected(cpu.error());
  const auto memory = table.number(row, "memory_mib", kMostAmount);
  if (!memory) return std::unexpected(memory.error());
  const auto gpus = table.number(row, "gpu", kMostGpus);
  if (!gpus) return std::unexpected(gpus.error());
  bin.cpu_milli = *cpu;
  bin.memory_mb = *memory;
  bin.gpus.assign(*gpus, place::kWholeGpu);
  bin.shares_gpus = *gpus > 0;
  const std::string_view model = table.text(row, "model");
  if (*gpus > 0 && !model.empty()) {
    const auto bit = models.add(model);
    if (!bit) return table.refuse(row, fmt::format("more than {} GPU models", kMostModels));
    bin.model = *bit;
  }
  return bin;
}

Result<cluster::Demand> read_demand(const Table& table, std::size_t row, const Models& models) {
  cluster::Demand demand;
  const auto cpu = table.number(row, "cpu_milli", kMostAmount);
  if (!cpu) return std::unexpected(cpu.error());
  const auto memory = table.number(row, "memory_mib", kMostAmount);
  if (!memory) return std::unexpected(memory.error());
  const auto gpus = table.number(row, "num_gpu", kMostGpus);
  if (!gpus) return std::unexpected(gpus.error());
  demand.cpu_milli = *cpu;
  demand.memory_mb = *memory;
  if (*gpus == 0) return demand;
  const auto milli = table.number(row, "gpu_milli", place::kWholeGpu);
  if (!milli) return std::unexpected(milli.error());
  if (*gpus == 1 && *milli > 0 && *milli < place::kWholeGpu) {
    demand.share_milli = static_cast<std::uint32_t>(*milli);
  } else {
    demand.gpus = static_cast<std::uint32_t>(*gpus);
  }
  demand.models = models.wanted(table.text(row, "gpu_spec"));
  return demand;
}

}  // namespace

Result<Workload> read_workload(std::string_view nodes_csv, std::string_view pods_csv,
                               const std::string& nodes_name, const std::string& pods_name) {
  Workload out;
  Models models;
  const auto nodes = Table::read(nodes_csv, nodes_name, {"cpu_milli", "memory_mib", "gpu"});
  if (!nodes) return std::unexpected(nodes.error());
  for (std::size_t row = 0; row < nodes->rows(); ++row) {
    auto bin = read_node(*nodes, row, models);
    if (!bin) return std::unexpected(bin.error());
    out.gpu_milli += bin->free_milli();
    out.nodes.push_back(std::move(*bin));
  }
  const auto pods =
      Table::read(pods_csv, pods_name, {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"});
  if (!pods) return std::unexpected(pods.error());
  bool any_gpu = false;
  for (std::size_t row = 0; row < pods->rows(); ++row) {
    const auto demand = read_demand(*pods, row, models);
    if (!demand) return std::unexpected(demand.error());
    any_gpu = any_gpu || demand->wants_gpu();
    out.demands.push_back(*demand);
  }
  if (out.gpu_milli == 0) return fail(Code::bad_value, nodes_name + ": no node has a GPU");
  if (!any_gpu) return fail(Code::bad_value, pods_name + ": no request asks for a GPU");
  return out;
}

}  // namespace berth::openb
