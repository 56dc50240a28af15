// Records of the store as a berth of another version, or a disk, might have left them: the state is
// loaded or leaves the job out and says so, and what was loaded can be stored and loaded again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "job/record.h"
#include "job/state.h"
#include "place/corpus_cluster_test_fixture.h"
#include "wire/frame.h"

namespace {

using namespace berth;

wire::Asked asked() {
  wire::Asked out;
  out.set_command("sbatch");
  for (const char* word : {"-N1", "--gres=gpu:1", "job.sh"}) out.add_words(word);
  out.set_script("#!/bin/sh\n");
  out.set_directory("/tmp");
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Records one after the other, as frames would have them: a kind and two bytes of length.
  std::string_view input(reinterpret_cast<const char*>(data), size);
  job::Stored stored;
  while (input.size() >= 3) {
    const std::size_t length =
        std::min<std::size_t>(input.size() - 3, static_cast<std::uint8_t>(input[1]) |
                                                    static_cast<std::uint8_t>(input[2]) << 8);
    const int kind = static_cast<std::uint8_t>(input[0]) % 4;
    const std::string_view bytes = input.substr(3, length);
    input.remove_prefix(3 + length);
    if (kind == 0) {
      if (auto node = wire::decode<wire::NodeRecord>(bytes)) stored.nodes.push_back(*node);
    } else if (kind == 1) {
      if (auto one = wire::decode<wire::ReservationRecord>(bytes)) {
        stored.reservations.push_back(*one);
      }
    } else if (auto job = wire::decode<wire::JobRecord>(bytes)) {
      stored.jobs.push_back(*job);
    }
  }
  static const cluster::Cluster cluster = place::corpus::make();
  job::State state(cluster, {});
  state.load(stored, [](std::uint64_t) { return asked(); }, 1'000'000);
  state.tick(2'000'000);
  const auto dirty = state.take_dirty();
  job::Stored again;
  again.jobs = {dirty.jobs.begin(), dirty.jobs.end()};
  job::State second(cluster, {});
  second.load(again, [](std::uint64_t) { return asked(); }, 2'000'000);
  return 0;
}
