// Options of berth bind, and where its program begins.
#include "place/bind_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "text/words.h"

namespace berth::place {
namespace {

/// "2 verbose | ./app -x", or what is wrong.
std::string shown_bind(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string_view word : text::split(line, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  const auto read = read_bind_words(words);
  if (!read) return std::string(read.error().what());
  std::string out = read->gpus_per_rank ? std::to_string(*read->gpus_per_rank) : "all";
  if (read->verbose) out += " verbose";
  if (read->help) out += " help";
  return fmt::format("{} | {}", out, fmt::join(read->argv, " "));
}

TEST(BindWords, Table) {
  struct Row {
    const char* line;
    const char* shown;
  };
  for (const Row& row : {
           Row{"./app -x", "all | ./app -x"},
           Row{"--gpus-per-rank 2 ./app --verbose", "2 | ./app --verbose"},
           Row{"--gpus-per-rank=2 -v -- -app", "2 verbose | -app"},
           Row{"--gpus-per-rank=0 ./app", "0 | ./app"},
           Row{"--help", "all help | "},
           Row{"", "no program is given"},
           Row{"--", "no program is given"},
           Row{"--gpus-per-rank", "--gpus-per-rank needs a number"},
           Row{"--gpus-per-rank two ./app", "--gpus-per-rank needs a number up to 1024"},
           Row{"--gpus-per-rank= ./app", "--gpus-per-rank needs a number up to 1024"},
           Row{"--gpus-per-ranks 2 ./app", "unknown option --gpus-per-ranks"},
           Row{"-np 4 ./app", "unknown option -np"},
       }) {
    EXPECT_EQ(shown_bind(row.line), row.shown) << row.line;
  }
}

}  // namespace
}  // namespace berth::place
