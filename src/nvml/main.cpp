// berth-nvml: tells in lines of text what NVIDIA's library knows, for programs that cannot load it
// themselves. docs/hardware.md has the format.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/version.h"
#include "nvml/gpus.h"
#include "nvml/watch.h"
#include "text/number.h"

namespace {

constexpr std::string_view kUsage =
    "Usage: berth-nvml list\n"
    "       berth-nvml watch [--every TIME]\n"
    "Tells what NVIDIA's management library knows about the GPUs of this machine.\n"
    "  list          the GPUs, their parts and links, once\n"
    "  watch         how they fare, again and again; Xid errors as they come\n"
    "  --every TIME  between two rounds: 500ms, 1s (the default), up to 3600s\n"
    "BERTH_NVML_LIBRARY names another library than libnvidia-ml.so.1.\n";

int refuse(std::string_view what) {
  fmt::print(stderr, "berth-nvml: {}\n", what);
  return 1;
}

/// "1s", "500ms", "2" (seconds); 10 ms to an hour.
std::optional<std::chrono::milliseconds> time_of(std::string_view text) {
  std::uint64_t unit = 1000;
  if (text.ends_with("ms")) {
    unit = 1;
    text.remove_suffix(2);
  } else if (text.ends_with('s')) {
    text.remove_suffix(1);
  }
  const auto number = berth::text::parse_number(text, 3600000 / unit);
  if (!number || *number * unit < 10) return std::nullopt;
  return std::chrono::milliseconds(*number * unit);
}

/// False when nobody reads any more.
bool say(const std::string& lines) {
  for (std::size_t at = 0; at < lines.size();) {
    const ssize_t n = ::write(STDOUT_FILENO, lines.data() + at, lines.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  pollfd reader{STDOUT_FILENO, 0, 0};
  return ::poll(&reader, 1, 0) >= 0 && (reader.revents & (POLLERR | POLLHUP)) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && (words[0] == "-h" || words[0] == "--help")) {
    fmt::print("{}", kUsage);
    return 0;
  }
  if (words.size() == 1 && (words[0] == "-V" || words[0] == "--version")) {
    fmt::print("{}\n", berth::kBerthVersion);
    return 0;
  }
  const bool list = words.size() == 1 && words[0] == "list";
  std::optional<std::chrono::milliseconds> every = std::chrono::seconds(1);
  const bool timed = words.size() == 3 && words[1] == "--every";
  if (timed) every = time_of(words[2]);
  if (!every) return refuse(fmt::format("--every {}: 10ms to 3600s is expected", words[2]));
  if (!list && (words.empty() || words[0] != "watch" || (words.size() != 1 && !timed))) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  const char* given = ::getenv("BERTH_NVML_LIBRARY");
  const auto library =
      berth::nvml::Library::open(given == nullptr || *given == '\0' ? "libnvidia-ml.so.1" : given);
  if (!library) return refuse(library.error().what());
  const berth::nvml::Functions& nvml = library->functions();
  if (!list) {
    const auto done = berth::nvml::watch(nvml, *every, say);
    return done ? 0 : refuse(done.error().what());
  }
  const auto survey = berth::nvml::take_survey(nvml);
  if (!survey) return refuse(survey.error().what());
  return say(berth::survey::write_survey(*survey)) ? 0 : 1;
}
