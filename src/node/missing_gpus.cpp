#include "node/missing_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "text/words.h"

namespace berth::node {
namespace {

class Places {
 public:
  Places(const device::Machine& machine, const std::vector<text::TresItem>& counted, Gres& gres)
      : machine_(machine), items_(gres.items) {
    for (const GresItem& item : items_) {
      if (item.name != "gpu") continue;
      ++here_;
      ++of_type_[item.type];
      simple_ = simple_ && item.count == 1;
      if (common_type_.empty()) common_type_ = item.type;
    }
    std::uint64_t short_of_types = 0;
    for (const text::TresItem& item : counted) {
      if (item.name != "gpu") continue;
      wanted_ += item.count;
      const std::uint64_t found = item.type.empty() ? here_ : of_type_[item.type];
      if (found >= item.count) continue;
      short_of_types += item.count - found;
      open_.emplace_back(item.type, item.count - found);
    }
    if (!simple_ || here_ >= wanted_ || short_of_types != wanted_ - here_) open_.clear();
    for (const auto& [type, count] : open_) left_ += count;
  }

  [[nodiscard]] std::uint64_t left() const { return left_; }
  [[nodiscard]] std::uint64_t wanted() const { return wanted_; }

  GresItem& put(std::size_t place, const std::string& type, std::string why) {
    GresItem item;
    item.name = "gpu";
    item.type = take_type(type);
    item.missing = std::move(why);
    --left_;
    const auto at = static_cast<std::ptrdiff_t>(std::min(place, gpus()));
    return *items_.insert(items_.begin() + at, std::move(item));
  }

  /// A GPU that a line of gres.conf names stands where its file would; where it is known better,
  /// there.
  void move(const GresItem* item, std::size_t place) {
    const auto from = item - items_.data();
    GresItem taken = std::move(items_[static_cast<std::size_t>(from)]);
    items_.erase(items_.begin() + from);
    const auto at = static_cast<std::ptrdiff_t>(std::min(place, gpus()));
    items_.insert(items_.begin() + at, std::move(taken));
  }

  /// GPUs are the first of the items.
  [[nodiscard]] std::size_t gpus() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(items_, [](const GresItem& item) { return item.name == "gpu"; }));
  }

  /// Where the GPU of this number belongs.
  [[nodiscard]] std::size_t place_of(std::uint32_t number, std::string_view but = {}) const {
    std::size_t place = 0;
    for (const GresItem& item : items_) {
      if (item.name != "gpu") break;
      if (!but.empty() && item.missing == but) continue;
      std::optional<std::uint32_t> its = item.number;
      if (item.gpu != nullptr && machine_.told) {
        if (const auto found = number_in(*machine_.told, *item.gpu)) its = found->gpu;
      }
      if (!its || *its > number) break;
      ++place;
    }
    return place;
  }

 private:
  std::string take_type(const std::string& likely) {
    auto at = std::ranges::find(open_, likely, &std::pair<std::string, std::uint64_t>::first);
    if (at == open_.end() || at->second == 0) {
      at = std::ranges::find_if(open_, [](const auto& one) { return one.second > 0; });
    }
    --at->second;
    return at->first.empty() ? common_type_ : at->first;
  }

  const device::Machine& machine_;
  std::vector<GresItem>& items_;
  std::map<std::string, std::uint64_t> of_type_;
  std::vector<std::pair<std::string, std::uint64_t>> open_;  // how many of each type are missing
  std::string common_type_;
  std::uint64_t here_ = 0;
  std::uint64_t wanted_ = 0;
  std::uint64_t left_ = 0;
  bool simple_ = true;
};

/// Those that the node had and has no more, by their places. Empty when what is here is not what is
/// left of that.
std::vector<std::size_t> gone(const std::vector<KnownGpu>& known, const Gres& gres) {
  std::vector<std::size_t> out;
  std::size_t at = 0;
  for (const GresItem& item : gres.items) {
    if (item.name != "gpu") break;
    if (item.gpu == nullptr) return {};
    while (at < known.size() && known[at].uuid != item.gpu->uuid) out.push_back(at++);
    if (at == known.size()) return {};
    ++at;
  }
  while (at < known.size()) out.push_back(at++);
  return out;
}

/// By the numbers of the library, which has told those of the missing ones.
void put_in_order(Places& places, Gres& gres) {
  for (std::size_t i = 0; i < gres.items.size(); ++i) {
    GresItem& item = gres.items[i];
    if (item.missing.empty() || !item.number) continue;
    const std::uint32_t number = *std::exchange(item.number, std::nullopt);
    const std::string why = item.missing;
    places.move(&item, places.place_of(number, why));
    std::ranges::find(gres.items, why, &GresItem::missing)->number = number;
  }
}

void put_where_they_were(Places& places, const std::vector<KnownGpu>& known, Gres& gres) {
  for (std::size_t place = 0; place < known.size(); ++place) {
    const auto at = std::ranges::find_if(gres.items, [&](const GresItem& item) {
      return !item.missing.empty() && !item.files.empty() &&
             item.files.front() == known[place].file;
    });
    if (at != gres.items.end()) places.move(&*at, place);
  }
}

}  // namespace

void place_missing_gpus(const device::Machine& machine, const std::vector<text::TresItem>& counted,
                        const std::string& where, const std::vector<KnownGpu>& known, Gres& gres) {
  // Those that a line of gres.conf names are there already.
  std::vector<survey::Lost> lost;
  if (machine.told) lost = machine.told->lost;
  Places places(machine, counted, gres);
  if (known.size() == places.wanted() && places.left() > 0) {
    const std::vector<std::size_t> missing = gone(known, gres);
    if (missing.size() == places.left()) {
      for (const std::size_t index : missing) {
        const KnownGpu& was = known[index];
        places.put(index, was.type, fmt::format("{} ({}) is not there", was.uuid, was.file));
      }
    }
  }
  std::vector<GresItem*> unnumbered;
  for (GresItem& item : gres.items) {
    if (!item.missing.empty()) unnumbered.push_back(&item);
  }
  if (!unnumbered.empty() && unnumbered.size() == lost.size()) {
    for (std::size_t i = 0; i < lost.size(); ++i) {
      unnumbered[i]->number = lost[i].index;
      unnumbered[i]->missing += fmt::format(": it does not answer: {}", lost[i].why);
    }
    lost.clear();
    if (gres.strict) put_in_order(places, gres);
  } else if (gres.strict && known.size() == places.wanted()) {
    put_where_they_were(places, known, gres);
  }
  for (const survey::Lost& one : lost) {
    if (places.left() == 0) break;
    places.put(places.place_of(one.index), "", "it does not answer: " + one.why).number = one.index;
  }
  const std::uint64_t unknown = places.left();
  while (places.left() > 0) {
    GresItem& last = places.put(
        places.gpus(), "",
        fmt::format(
            "{} of the {} GPUs of {} {} missing, and nothing tells which: the last {} taken "
            "for {}",
            unknown, places.wanted(), where, unknown == 1 ? "is" : "are",
            unknown == 1 ? "is" : "ones are", unknown == 1 ? "it" : "them"));
    last.guessed = true;
  }
}

bool misses_gpus(const Gres& gres) {
  return std::ranges::any_of(gres.items,
                             [](const GresItem& item) { return !item.missing.empty(); });
}

bool may_be_back(const Gres& gres, const std::optional<survey::Survey>& told,
                 const std::map<std::uint32_t, survey::Sample>& samples) {
  for (const GresItem& item : gres.items) {
    if (item.missing.empty()) continue;
    if (item.number && samples.contains(*item.number)) return true;
    const auto there = [](const std::string& file) {
      std::error_code failed;
      return std::filesystem::exists(file, failed);
    };
    // Where the library is asked, a file alone is no GPU.
    if (!told && !item.files.empty() && std::ranges::all_of(item.files, there)) return true;
  }
  return told && samples.size() > told->gpus.size();
}

bool same_places(const Gres& before, const Gres& now) {
  for (std::size_t i = 0; i < before.items.size(); ++i) {
    const GresItem& was = before.items[i];
    if (was.name != "gpu") break;
    if (!was.missing.empty()) continue;
    if (i >= now.items.size() || now.items[i].files != was.files) return false;
    const std::string uuid = was.gpu == nullptr ? "" : was.gpu->uuid;
    const std::string its = now.items[i].gpu == nullptr ? "" : now.items[i].gpu->uuid;
    if (its != uuid) return false;
  }
  return true;
}

std::string write_known_gpus(const Gres& gres) {
  std::string out;
  for (const GresItem& item : gres.items) {
    if (item.name != "gpu") continue;
    if (item.gpu == nullptr || item.gpu->uuid.empty()) return {};
    out += fmt::format("{} {} {}\n", item.gpu->uuid, item.gpu->file, item.type);
  }
  return out;
}

std::vector<KnownGpu> read_known_gpus(std::string_view text) {
  std::vector<KnownGpu> out;
  for (const std::string_view line : text::split(text, '\n')) {
    const auto words = text::split(line, ' ');
    if (words.size() != 3 || words[0].empty() || words[1].empty()) continue;
    out.push_back({std::string(words[0]), std::string(words[1]), std::string(words[2])});
  }
  return out;
}

}  // namespace berth::node
