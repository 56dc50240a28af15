// A server under two tasks that send anything: bytes, cut where the input says, and answers of a
// tree and a root that are sometimes wrong.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "pmi/server.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  pmi::Step step;
  step.id = "12.0";
  step.size = 3;
  step.ranks = {0, 2};
  step.mapping = "(vector,(0,1,3))";
  pmi::Server server(step);
  std::uint64_t contributed = 0;
  while (!input.empty()) {
    // A byte says who speaks and how much of what follows.
    const auto head = static_cast<std::uint8_t>(input[0]);
    const std::string_view part = input.substr(1, head >> 2);
    input.remove_prefix(1 + part.size());
    if ((head & 3) < 2) {
      server.received((head & 1) * 2, part);
    } else if ((head & 3) == 2) {
      if (server.fenced(contributed, part)) continue;
    } else {
      server.closed(part.size() % 3);
    }
    for (const pmi::Event& event : server.take()) {
      if (const auto* answer = std::get_if<pmi::Answer>(&event)) {
        if (answer->bytes.empty() || answer->rank == 1) std::abort();
      } else if (const auto* contribution = std::get_if<pmi::Contribution>(&event)) {
        if (contribution->number != contributed + 1) std::abort();
        contributed = contribution->number;
        if (!pmi::decode(contribution->bytes)) std::abort();
        if (contributed % 2 == 1 && !server.fenced(contributed, contribution->bytes)) std::abort();
      } else if (const auto* lookup = std::get_if<pmi::Lookup>(&event)) {
        server.named(lookup->ticket, lookup->name);
      } else if (const auto* spawn = std::get_if<pmi::SpawnRequest>(&event)) {
        if (spawn->commands.empty()) std::abort();
        for (const auto& command : spawn->commands) {
          if (command.argv.empty() || command.argv[0].empty() || command.tasks == 0) std::abort();
        }
        server.spawned(spawn->ticket, "12.1");
      }
    }
  }
  return 0;
}
