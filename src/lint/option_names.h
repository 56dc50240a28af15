// The names of the options, for rules that must find an option in text which the parser refused.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "request/request.h"

namespace berth::lint {

/// One option as written somewhere: "--gres=gpu:4", "-N 2".
struct RawOption {
  request::Opt opt;
  std::string value;
};

struct RawOptions {
  std::vector<RawOption> options;
  std::vector<std::string> unknown;        // words that begin with - and name no option
  std::optional<std::size_t> first_plain;  // the first word that is no option and no value
};

/// Reads words as getopt_long does, but goes on after an unknown option and after a plain word,
/// because messages want to know everything that stands on a line.
RawOptions read_options(std::span<const std::string> words, request::Command command);

/// "gpus-per-task" for Opt::gpus_per_task.
std::string_view long_name(request::Opt opt);
/// The known long name most like `name` (given without dashes), or "".
std::string nearest_name(std::string_view name);

}  // namespace berth::lint
