#include "request/effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "request/table.h"
#include "text/words.h"

namespace berth::request {
namespace {

struct NoEffect {
  Opt opt;
  std::string_view why;
  bool ignored = false;  // by Slurm as well: it is as if it had not been given
};

constexpr NoEffect kNoEffect[] = {
    {Opt::cpu_freq, "berth leaves the frequency of CPUs to the system"},
    {Opt::acctg_freq,
     "GPUs are looked at once a second, all else when somebody asks (sstat) and when a task ends"},
    {Opt::slurmd_debug, "a step is told errors of its node, not more and not less"},
    {Opt::core_spec,
     "jobs cannot change how many cores are left to the system (as in Slurm without "
     "AllowSpecResourcesUsage)",
     true},
    {Opt::thread_spec,
     "jobs cannot change how many threads are left to the system (as in Slurm without "
     "AllowSpecResourcesUsage)",
     true},
};

std::string given_as(Opt opt, const Given& given) {
  return given.text.empty() ? dashed(opt) : fmt::format("{}={}", dashed(opt), given.text);
}

void tell(Opt opt, const Given& given, std::string_view why, std::vector<Message>& warnings) {
  warnings.push_back(
      {Severity::bare, fmt::format("berth: {} has no effect: {}", given_as(opt, given), why)});
}

bool is(const Given* given, std::string_view word) {
  return given != nullptr && text::equal_ignoring_case(given->text, word);
}

/// Without --bcast nothing is copied, and these do nothing in Slurm either.
Result<void> copies(const OptionSet& options, std::vector<Message>& warnings) {
  if (!options.has(Opt::bcast)) return {};
  if (const Given* compress = options.find(Opt::compress); compress != nullptr) {
    if (!is(compress, "none"))
      tell(Opt::compress, *compress, "pieces are sent as they are", warnings);
  }
  const Given* libraries = options.find(Opt::send_libs);
  if (libraries == nullptr || is(libraries, "no")) return {};
  return fail(Code::unsupported, "--send-libs is not supported by berth",
              "--bcast copies the program alone: copy its libraries with sbcast, and set "
              "LD_LIBRARY_PATH");
}

}  // namespace

Result<void> check_effects(bool step, OptionSet& options, std::vector<Message>& warnings) {
  for (const NoEffect& one : kNoEffect) {
    const Given* given = options.find(one.opt);
    if (given == nullptr) continue;
    const bool inherited = step && given->level == Level::environment;
    if (!inherited) tell(one.opt, *given, one.why, warnings);
    if (one.ignored) options.erase(one.opt);
  }
  return copies(options, warnings);
}

}  // namespace berth::request
