#include "fakenvml/state.h"

#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace berth::fakenvml {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostGpus = 64;
constexpr std::size_t kMostCpus = 4096;
constexpr off_t kMostBytes = off_t{4} << 20;

template <class T>
std::optional<T> maybe(const Json& json, const char* key) {
  const auto at = json.find(key);
  if (at == json.end() || at->is_null()) return std::nullopt;
  return at->get<T>();
}

/// "0-31,64-95" as a bit for each.
std::vector<unsigned long> cpus_of(const std::string& list) {
  std::vector<unsigned long> out(kMostCpus / 64, 0);
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, ',');) {
    const std::size_t dash = part.find('-');
    const std::size_t first = std::stoul(part);
    const std::size_t last = dash == std::string::npos ? first : std::stoul(part.substr(dash + 1));
    for (std::size_t i = first; i <= last && i < kMostCpus; ++i) out[i / 64] |= 1UL << (i % 64);
  }
  return out;
}

/// The words of berth's survey as NVML's numbers.
int way_of(const std::string& word) {
  constexpr std::array<const char*, 6> kWords = {"board",       "pcie_switch", "pcie_switches",
                                                 "host_bridge", "numa_node",   "system"};
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (word == kWords[i]) return static_cast<int>(i) * 10;
  }
  return -1;
}

Instance instance_of(const Json& json) {
  Instance out;
  out.uuid = json.value("uuid", "");
  out.gpu_instance = json.value("gpu_instance", 0U);
  out.compute_instance = json.value("compute_instance", 0U);
  out.profile = json.value("profile", "");
  out.slices = static_cast<unsigned int>(std::strtoul(out.profile.c_str(), nullptr, 10));
  out.memory_mb = json.value("memory_mb", std::uint64_t{0});
  return out;
}

Process process_of(const Json& json) {
  Process out;
  out.pid = json.value("pid", 0U);
  out.memory_mb = maybe<std::uint64_t>(json, "memory_mb");
  out.gpu_instance = maybe<unsigned int>(json, "gpu_instance");
  out.draws = json.value("draws", false);
  return out;
}

Gpu gpu_of(const Json& json) {
  Gpu out;
  out.uuid = json.value("uuid", "");
  out.minor = json.value("minor", 0U);
  out.model = json.value("model", "");
  out.bus = json.value("bus", "");
  out.memory_mb = json.value("memory_mb", std::uint64_t{0});
  if (const auto cpus = maybe<std::string>(json, "cpus")) out.cpus = cpus_of(*cpus);
  out.numa = maybe<unsigned int>(json, "numa");
  for (const Json& end : json.value("nvlinks", Json::array())) {
    out.links.push_back(end.is_string() ? -1 : end.get<int>());
  }
  for (const Json& way : json.value("ways", Json::array())) {
    out.ways.push_back(way.is_string() ? way_of(way.get<std::string>()) : -1);
  }
  for (const Json& one : json.value("mig", Json::array())) {
    out.instances.push_back(instance_of(one));
  }
  out.mig = json.contains("mig");
  for (const Json& one : json.value("processes", Json::array())) {
    out.processes.push_back(process_of(one));
  }
  out.busy_percent = maybe<unsigned int>(json, "busy_percent");
  out.memory_used_mb = json.value("memory_used_mb", std::uint64_t{0});
  out.power_mw = maybe<unsigned int>(json, "power_mw");
  out.celsius = maybe<unsigned int>(json, "celsius");
  out.ecc_corrected = maybe<std::uint64_t>(json, "ecc_corrected");
  out.ecc_uncorrected = maybe<std::uint64_t>(json, "ecc_uncorrected");
  out.rows_remapped = maybe<unsigned int>(json, "rows_remapped");
  out.rows_pending = json.value("rows_pending", false);
  out.rows_failed = json.value("rows_failed", false);
  out.missing = json.value("missing", false);
  return out;
}

/// What tells one content of a file from another.
struct Stamp {
  ino_t file = 0;
  off_t size = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

std::optional<Stamp> stamp_of(const std::string& path) {
  struct stat file{};
  if (path.empty() || ::stat(path.c_str(), &file) != 0 || file.st_size > kMostBytes) {
    return std::nullopt;
  }
  return Stamp{file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
}

}  // namespace

std::optional<State> parse_state(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    State out;
    out.driver = json.value("driver", "");
    for (const Json& gpu : json.at("gpus")) out.gpus.push_back(gpu_of(gpu));
    for (const Json& one : json.value("xids", Json::array())) {
      out.xids.push_back({one.at("number").get<std::uint64_t>(), one.at("gpu").get<unsigned int>(),
                          one.at("code").get<std::uint64_t>()});
    }
    for (const Json& one : json.value("missing_functions", Json::array())) {
      out.missing_functions.insert(one.get<std::string>());
    }
    if (out.gpus.size() > kMostGpus) return std::nullopt;
    return out;
  } catch (const std::exception&) {  // of the JSON library, or of a number
    return std::nullopt;
  }
}

std::string state_path() {
  const char* path = std::getenv("BERTH_FAKE_NVML");
  return path == nullptr ? "" : path;
}

const State* current() {
  using Clock = std::chrono::steady_clock;
  // Calls come by the dozen; the file is looked at no more often than this.
  constexpr std::chrono::milliseconds kFresh(5);
  static std::optional<State> state;
  static std::optional<Stamp> seen;
  static Clock::time_point looked;
  const Clock::time_point now = Clock::now();
  if (state && now - looked < kFresh) return &*state;
  looked = now;
  const std::string path = state_path();
  const auto stamp = stamp_of(path);
  if (stamp && stamp != seen) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    if (auto read = parse_state(text.str())) {
      state = std::move(read);
      seen = stamp;
    }
  }
  return state ? &*state : nullptr;
}

}  // namespace berth::fakenvml
