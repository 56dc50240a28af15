// Any text as a batch script on a small cluster, through everything: parsing, placement, steps in
// time, lint, rendering. The first byte chooses the command.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "explain/explain.h"
#include "explain/render.h"
#include "site/site.h"

namespace {

/// Words at blanks, for srun and salloc.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text.substr(0, 4096)) {
    if (c != ' ' && c != '\n') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto site = berth::site::from_emulate_spec(
      "gpu[1-3]:cpus=16:mem=64G:gpus=a100x4,cpu[1-2]:cpus=8:mem=16G");
  if (!site) std::abort();
  static const berth::cluster::Usage usage(site->cluster);
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  berth::explain::Input input;
  input.cluster = &site->cluster;
  input.usage = &usage;
  input.name = "fuzz";
  if (data[0] % 4 == 0) {
    input.command = berth::request::Command::srun;
    input.words = words_of(text);
  } else if (data[0] % 4 == 1) {
    input.command = berth::request::Command::salloc;
    input.words = words_of(text);
  } else {
    input.script = "#!/bin/bash\n" + std::string(text);
    input.words = {"fuzz.sh"};
  }
  const auto explanation = berth::explain::explain(input);
  if (!explanation.accepted && !explanation.error) std::abort();
  for (const auto& step : explanation.steps) {
    if (step.error && !step.tasks.empty()) std::abort();
    for (const auto& task : step.tasks) {
      if (!site->cluster.find_node(task.node)) std::abort();
    }
  }
  if (berth::explain::render_text(explanation, {}).empty()) std::abort();
  return 0;
}
