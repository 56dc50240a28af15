// The agent's part of GPUs that are missing when it starts: it remembers which there were, and
// takes those that come back into service.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "node/agent.h"
#include "node/missing_gpus.h"
#include "step/spool.h"

namespace berth::node {
namespace {

/// How often the library is made to count anew, and files are looked for, while a GPU is missing.
constexpr auto kSeekEvery = std::chrono::seconds(60);

}  // namespace

void Agent::remember_gpus() const {
  if (place_.emulated) return;
  const std::string text = write_known_gpus(inventory_.gres);
  const std::string file = known_gpus_file(place_.spool);
  if (text.empty() || step::read_file(file) == text) return;
  if (!step::write_file(file, text, 0644, true)) log_.error("{}: {}", file, std::strerror(errno));
}

void Agent::await_missing_gpus() {
  loop_.cancel(missing_timer_);
  if (place_.emulated || !misses_gpus(inventory_.gres)) return;
  missing_timer_ = loop_.after(kSeekEvery, [this] { seek_missing_gpus(false); });
}

/// Where the library is asked it is made to count anew, and the next round tells; to ask it here
/// would hold up everything for as long as a driver in trouble takes to answer.
void Agent::seek_missing_gpus(bool thoroughly) {
  if (place_.emulated || !misses_gpus(inventory_.gres)) return;
  // Where it is guessed which are missing, the numbers of those that jobs have could change.
  const bool guessed = std::ranges::any_of(inventory_.gres.items, &GresItem::guessed);
  if (!guessed || jobs_.with_gpus().empty()) gpu_watch_.count_again();
  const bool look = may_be_back(inventory_.gres, inventory_.machine.told, {}) ||
                    (thoroughly && !inventory_.machine.told);
  if (look && look_for_missing_gpus()) uplink_.send(registration());
  await_missing_gpus();
}

/// True when one was found: the controller has to hear of it.
bool Agent::look_for_missing_gpus() {
  if (!place_.look_at_machine || !misses_gpus(inventory_.gres)) return false;
  auto fresh = place_.look_at_machine();
  if (!fresh) {
    log_.error("the GPUs that are missing cannot be looked for: {}", fresh.error().what());
    return false;
  }
  std::size_t was_missing = 0;
  std::size_t is_missing = 0;
  for (const GresItem& item : inventory_.gres.items) was_missing += item.missing.empty() ? 0 : 1;
  for (const GresItem& item : fresh->gres.items) is_missing += item.missing.empty() ? 0 : 1;
  if (is_missing >= was_missing) return false;
  // Jobs that have GPUs have them by their places.
  const bool moved = !same_places(inventory_.gres, fresh->gres) ||
                     fresh->gres.items.size() != inventory_.gres.items.size();
  gpus_wait_for_jobs_ = moved && !jobs_.with_gpus().empty();
  if (gpus_wait_for_jobs_) {
    log_.info(
        "a GPU that was missing is there; as others are then counted in another order, it is "
        "taken in when no job has GPUs");
    return false;
  }
  inventory_.machine = std::move(fresh->machine);
  inventory_.gres = std::move(fresh->gres);
  inventory_.nodes = std::move(fresh->nodes);
  inventory_.fences = std::move(fresh->fences);
  const std::vector<MeteredGpu> gpus = metered_gpus(inventory_);
  meter_.found(gpus);
  idle_.found(gpus);
  gpu_memory_.found(gpus);
  health_.found(gpus);
  set_up_fences();
  remember_gpus();
  watch_gpus();
  tell_health();
  return true;
}

}  // namespace berth::node
