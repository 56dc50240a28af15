// A whole list: the order and the bounds of its lines.
#include "survey/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/words.h"

namespace berth::survey {
namespace {

class ListReader {
 public:
  explicit ListReader(Survey& out) : out_(out) {}

  /// Takes a line; what is wrong with it, or "".
  std::string take(const Line& line) {
    if (!begun_ && !std::holds_alternative<Header>(line)) {
      return "the first line must be \"berth-nvml version=1\"";
    }
    if (ended_) return "a line after \"end\"";
    return std::visit([this](const auto& one) { return add(one); }, line);
  }

  [[nodiscard]] bool ended() const { return ended_; }

 private:
  std::string add(const Header& header) {
    if (begun_) return "a second first line";
    begun_ = true;
    if (header.version == kVersion) return {};
    return fmt::format("format {} is not known here, only {}: berth-nvml and berth belong together",
                       header.version, kVersion);
  }
  std::string add(const Cpus& cpus) {
    if (out_.cpus) return "a second \"cpus\" line";
    const std::uint64_t all = std::uint64_t{cpus.sockets} * cpus.cores;
    constexpr std::uint64_t kMost = 16384;
    if (cpus.sockets == 0 || cpus.cores == 0 || cpus.threads == 0 || all > kMost ||
        all * cpus.threads > kMost) {
      return fmt::format("a machine of 1 to {} CPUs is expected", kMost);
    }
    out_.cpus = cpus;
    return {};
  }
  std::string add(const Driver& driver) {
    out_.driver = driver.version;
    return {};
  }
  std::string add(const FoundGpu& gpu) {
    if (auto wrong = check(gpu.index); !wrong.empty()) return wrong;
    const bool in_order = out_.gpus.empty() || out_.gpus.back().index < gpu.index;
    if (!in_order) return "GPUs must come in the order of their indices";
    out_.gpus.push_back(gpu);
    known_.set(gpu.index);
    return {};
  }
  std::string add(const FoundInstance& instance) {
    if (auto wrong = check_known(instance.gpu); !wrong.empty()) return wrong;
    const auto of_gpu = std::ranges::count(out_.instances, instance.gpu, &FoundInstance::gpu);
    if (static_cast<std::size_t>(of_gpu) >= kMostInstances) return "too many parts of one GPU";
    out_.instances.push_back(instance);
    return {};
  }
  std::string add(const FoundLinks& links) {
    for (const std::uint32_t gpu : {links.from, links.to.value_or(links.from)}) {
      if (auto wrong = check_known(gpu); !wrong.empty()) return wrong;
    }
    if (links.to == links.from) return "a GPU linked to itself";
    constexpr std::uint32_t kMostLinks = 1024;
    if (links.count > kMostLinks) return "too many links";
    const std::uint64_t other = links.to ? *links.to : kMostGpus;
    if (!linked_.emplace(links.from, other).second) return "the same two are linked twice";
    out_.links.push_back(links);
    return {};
  }
  std::string add(const FoundWay& way) {
    for (const std::uint32_t gpu : {way.from, way.to}) {
      if (auto wrong = check_known(gpu); !wrong.empty()) return wrong;
    }
    if (way.from >= way.to) return "from= must be less than to=";
    if (!ways_.emplace(way.from, way.to).second) return "the same two twice";
    out_.ways.push_back(way);
    return {};
  }
  std::string add(const Lost& lost) {
    if (auto wrong = check(lost.index); !wrong.empty()) return wrong;
    if (out_.lost.size() >= kMostGpus) return "too many GPUs";
    out_.lost.push_back(lost);
    return {};
  }
  std::string add(const End&) {
    ended_ = true;
    return {};
  }
  template <class Other>
  std::string add(const Other&) {
    return "such a line is no part of a list";
  }

  static std::string check(std::uint32_t index) {
    if (index < kMostGpus) return {};
    return fmt::format("GPU {}: at most {} GPUs are expected", index, kMostGpus);
  }
  [[nodiscard]] std::string check_known(std::uint32_t index) const {
    if (known_.test(index)) return {};
    return fmt::format("GPU {} has no line before this one", index);
  }

  Survey& out_;
  Bits known_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> linked_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> ways_;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace

Result<Survey> read_survey(std::string_view text) {
  if (text.size() > kMostBytes) {
    return fail(Code::limit, fmt::format("{} bytes; at most {}", text.size(), kMostBytes));
  }
  Survey out;
  ListReader reader(out);
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (text::trim(line).empty() || line.starts_with('#')) continue;
    auto read = read_line(line);
    std::string wrong = read ? reader.take(*read) : std::string(read.error().what());
    if (!wrong.empty()) return fail(Code::bad_value, fmt::format("line {}: {}", number, wrong));
  }
  if (!reader.ended())
    return fail(Code::bad_value, "the last line must be \"end\": it was cut off");
  return out;
}

std::string write_survey(const Survey& survey) {
  std::string out = write_line(Header{});
  if (survey.cpus) out += write_line(*survey.cpus);
  if (!survey.driver.empty()) out += write_line(Driver{survey.driver});
  for (const FoundGpu& gpu : survey.gpus) out += write_line(gpu);
  for (const Lost& lost : survey.lost) out += write_line(lost);
  for (const FoundInstance& instance : survey.instances) out += write_line(instance);
  for (const FoundLinks& links : survey.links) out += write_line(links);
  for (const FoundWay& way : survey.ways) out += write_line(way);
  return out + write_line(End{});
}

}  // namespace berth::survey
