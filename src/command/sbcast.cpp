// sbcast: a file to the nodes of a job.
#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "command/commands.h"
#include "command/messages.h"
#include "command/option_words.h"
#include "command/sbcast_send.h"
#include "command/submit_asked.h"
#include "command/version.h"
#include "text/number.h"

namespace berth::command {
namespace {

constexpr std::string_view kSbcastName = "sbcast";

constexpr std::array kSbcastOptions = {
    OptionRow{"compress", 'C', Takes::attached},     OptionRow{"exclude", 0, Takes::value},
    OptionRow{"force", 'f', Takes::nothing},         OptionRow{"fanout", 'F', Takes::value},
    OptionRow{"jobid", 'j', Takes::value},           OptionRow{"send-libs", 0, Takes::attached},
    OptionRow{"no-allocation", 'Z', Takes::nothing}, OptionRow{"nodelist", 'w', Takes::value},
    OptionRow{"preserve", 'p', Takes::nothing},      OptionRow{"size", 's', Takes::value},
    OptionRow{"timeout", 't', Takes::value},         OptionRow{"treewidth", 0, Takes::value},
    OptionRow{"verbose", 'v', Takes::nothing},       OptionRow{"version", 'V', Takes::nothing},
    OptionRow{"help", 'h', Takes::nothing},          OptionRow{"usage", 0, Takes::nothing},
};

constexpr std::string_view kSbcastHelp = R"(Usage: sbcast [OPTIONS…] SOURCE DESTINATION

Copies a file to all nodes of the job it is called in.

Options:
  -f, --force            replace a file that is there
  -p, --preserve         keep mode and times
  -j, --jobid=JOB[.STEP] the nodes of this job or step
  -s, --size=BYTES       size of a piece (k and m are understood)
  -t, --timeout=SECONDS  give up on a node that is silent for so long
  -C, --compress[=TYPE]  (no effect: pieces are sent as they are, and sbcast says so)
  -F, --fanout=N         (no effect: all nodes are served at once)
  -v, --verbose          more messages
  -h, --help             this text
  -V, --version          print the version
)";

std::unexpected<Error> wrong_sbcast(std::string text) {
  return fail(Code::option_syntax, std::move(text), "`sbcast --help` shows how it is used");
}

Result<std::uint64_t> size_of(const std::string& text) {
  std::uint64_t factor = 1;
  std::string_view number = text;
  if (number.ends_with('k') || number.ends_with('K')) factor = 1024;
  if (number.ends_with('m') || number.ends_with('M')) factor = 1024 * 1024;
  if (factor > 1) number.remove_suffix(1);
  const auto value = text::parse_number(number, 1U << 30);
  if (!value || *value == 0 || *value * factor > (std::uint64_t{32} << 20)) {
    return wrong_sbcast(fmt::format("--size={} is no size from 1 to 32m", text));
  }
  return *value * factor;
}

Result<void> read_job(const std::string& name, FileCopy& copy) {
  const std::size_t dot = name.find('.');
  const auto job = text::parse_number(std::string_view(name).substr(0, dot), UINT32_MAX);
  if (!job) return wrong_sbcast(fmt::format("Invalid job id: {}", name));
  copy.job_id = static_cast<std::uint32_t>(*job);
  if (dot == std::string::npos) return {};
  const auto step = text::parse_number(std::string_view(name).substr(dot + 1), UINT32_MAX);
  if (!step) return wrong_sbcast(fmt::format("Invalid step: {}", name));
  copy.step_id = static_cast<std::uint32_t>(*step);
  return {};
}

Result<void> read_option(const GivenOption& option, FileCopy& copy) {
  const std::string_view name = option.row->name;
  const std::string value = option.value.value_or("");
  if (name == "force") copy.force = true;
  if (name == "preserve") copy.preserve = true;
  if (name == "jobid") return read_job(value, copy);
  if (name == "size") {
    const auto size = size_of(value);
    if (!size) return pass(size.error());
    copy.block = *size;
  }
  if (name == "timeout") {
    const auto limit = text::parse_number(value, 1U << 20);
    if (!limit) return wrong_sbcast(fmt::format("--timeout={} is no number of seconds", value));
    if (*limit > 0) copy.patience = std::chrono::seconds(*limit);
  }
  if (name == "compress" && value != "none") {
    print_hint("sbcast does not compress: the pieces are sent as they are");
  }
  if (name == "send-libs" || name == "exclude") {
    return fail(Code::unsupported, fmt::format("--{} is not supported", name),
                "copy the libraries with calls of their own, and set LD_LIBRARY_PATH");
  }
  if (name == "no-allocation" || name == "nodelist") {
    return fail(Code::unsupported, fmt::format("--{} is not supported", name),
                "files go to the nodes of a job: call it in the job, or name one with --jobid");
  }
  return {};
}

}  // namespace

int run_sbcast(std::span<const std::string> words, const request::Environment& environment) {
  const auto read = read_options(kSbcastName, kSbcastOptions, words);
  if (!read) return print_error(read.error(), kSbcastName);
  FileCopy copy;
  copy.force = environment.contains("SBCAST_FORCE");
  copy.preserve = environment.contains("SBCAST_PRESERVE");
  bool verbose = false;
  for (const GivenOption& option : read->options) {
    if (option.row->name == "help" || option.row->name == "usage") {
      fmt::print("{}", kSbcastHelp);
      return 0;
    }
    if (option.row->name == "version") {
      fmt::print("{}\n", kSlurmVersion);
      return 0;
    }
    verbose = verbose || option.row->name == "verbose";
    if (auto taken = read_option(option, copy); !taken)
      return print_error(taken.error(), kSbcastName);
  }
  if (read->operands.size() != 2) {
    return print_error(
        fail(Code::option_syntax,
             fmt::format("Need two file names, have {} names", read->operands.size()),
             "sbcast SOURCE DESTINATION")
            .error(),
        kSbcastName);
  }
  copy.source = read->operands[0];
  copy.destination = read->operands[1];
  if (!copy.destination.starts_with('/')) {
    copy.destination = fmt::format("{}/{}", current_directory(), copy.destination);
  }
  if (copy.destination.ends_with('/')) {
    copy.destination += copy.source.substr(copy.source.rfind('/') + 1);
  }
  if (copy.job_id == 0) {
    const auto job = number_in(environment, "SLURM_JOB_ID");
    if (!job) {
      return print_error(fail(Code::bad_value, "Command only valid from within Slurm job",
                              "name a job with --jobid")
                             .error(),
                         kSbcastName);
    }
    copy.job_id = *job;
  }
  if (verbose)
    print_info(fmt::format("{} to {} of job {}", copy.source, copy.destination, copy.job_id),
               kSbcastName);
  if (auto sent = send_file(copy, environment, kSbcastName); !sent)
    return print_error(sent.error(), kSbcastName);
  return 0;
}

}  // namespace berth::command
