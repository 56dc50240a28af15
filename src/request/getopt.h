// Words to options the way getopt_long reads them in "+" mode: parsing stops at the first word that
// is no option; long names may be cut short while they are unique; letters may be glued; an
// optional argument must be attached. Values are not looked at.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "request/options.h"
#include "request/request.h"

namespace berth::request {

/// One option as it was written.
struct Occurrence {
  Opt opt;
  std::string text;      // "" without an argument
  std::size_t word = 0;  // index of the word it began in
};

struct Scanned {
  std::vector<Occurrence> options;
  std::size_t rest = 0;  // index of the first word that is no option; size of the words if none
};

/// Reads from words[from] on. The error is getopt's own line and "Try … --help", exit code 255;
/// `failed_at` is then the index of the word it is about.
Result<Scanned> scan_words(Command command, std::span<const std::string> words,
                           std::size_t from = 0, std::size_t* failed_at = nullptr);

}  // namespace berth::request
