#include "command/sstat_options.h"

#include <fmt/format.h>

#include "command/option_words.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command {
namespace {

constexpr OptionRow kSstatOptions[] = {
    {"allsteps", 'a'},
    {"fields", 0, Takes::value},
    {"format", 'o', Takes::value},
    {"help", 'h'},
    {"helpformat", 'e'},
    {"jobs", 'j', Takes::value},
    {"noconvert", 0},
    {"noheader", 'n'},
    {"parsable", 'p'},
    {"parsable2", 'P'},
    {"pidformat", 'i'},
    {"usage", 0},
    {"verbose", 'v'},
    {"version", 'V'},
};

constexpr std::string_view kSstatDefaults =
    "JobID,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,"
    "MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,"
    "AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ConsumedEnergy,MaxDiskRead,"
    "MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,"
    "AveDiskWrite,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,"
    "TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,"
    "TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutMin,TRESUsageOutMinNode,"
    "TRESUsageOutMinTask,TRESUsageOutTot";
constexpr std::string_view kSstatPidFields = "JobID,Nodelist,Pids";

/// Several -o add up, and -i to them.
void add_fields(SstatOptions& to, std::string_view more) {
  if (!to.fields.empty()) to.fields += ',';
  to.fields += more;
}

Result<void> add_steps(SstatOptions& to, std::string_view list) {
  for (const std::string_view part : wire::split_job_list(list)) {
    const std::string_view word = text::trim(part);
    if (word.empty()) continue;
    std::optional<wire::JobName> name = wire::parse_job_name(word);
    if (name && name->array_set().empty()) {
      to.steps.push_back(std::move(*name));
      continue;
    }
    const std::string_view job = word.substr(0, word.find('.'));
    if (!name && job.size() < word.size() && wire::parse_job_name(job)) {
      return fail_fatal(Code::bad_value, fmt::format("Bad step specified: {}", job),
                        "a step is a number, batch, interactive or extern");
    }
    return fail_fatal(Code::bad_value, fmt::format("Bad job/step specified: {}", word));
  }
  return {};
}

Result<void> set(SstatOptions& to, const GivenOption& given) {
  const std::string_view name = given.row->name;
  const std::string value = given.value.value_or("");
  if (name == "allsteps") to.all_steps = true;
  if (name == "fields" || name == "format") add_fields(to, value);
  if (name == "help") to.help = true;
  if (name == "helpformat") to.help_format = true;
  if (name == "noconvert") to.convert = false;
  if (name == "noheader") to.style.header = false;
  if (name == "parsable") to.style.kind = TableStyle::Kind::parsable;
  if (name == "parsable2") to.style.kind = TableStyle::Kind::parsable2;
  if (name == "usage") to.usage = true;
  if (name == "verbose") to.verbose = true;
  if (name == "version") to.version = true;
  if (name == "pidformat") {
    to.pid_format = true;
    add_fields(to, kSstatPidFields);
  }
  if (name == "jobs") return add_steps(to, value);
  return {};
}

}  // namespace

Result<SstatOptions> parse_sstat(std::span<const std::string> words) {
  const Result<ReadWords> read = read_options("sstat", kSstatOptions, words);
  if (!read) return pass(read.error());
  SstatOptions options;
  for (const GivenOption& given : read->options) {
    if (Result<void> done = set(options, given); !done) return pass(std::move(done.error()));
  }
  for (const std::string& word : read->operands) {
    if (Result<void> done = add_steps(options, word); !done) return pass(std::move(done.error()));
  }
  if (options.fields.empty()) options.fields = kSstatDefaults;
  const bool asks = !options.help && !options.usage && !options.version && !options.help_format;
  if (asks && options.steps.empty()) {
    return fail(Code::bad_value, "You didn't give me any jobs to stat.",
                "sstat -j JOB shows the lowest numbered step that runs, -j JOB.batch the script, "
                "-a -j JOB all");
  }
  return options;
}

std::string_view sstat_usage() {
  return "Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help\n";
}

std::string_view sstat_help() {
  return R"(Usage: sstat [OPTIONS] -j JOB[.STEP][,...]
  -a, --allsteps       all steps that run of jobs named without one
  -e, --helpformat     list of fields for --format
  -h, --help           this text
  -i, --pidformat      JobID, Nodelist and Pids, a line for each node
  -j, --jobs=list      jobs and steps; of a job without a step: its lowest
                       numbered one. JOB.batch is the script
  -n, --noheader       no header
      --noconvert      sizes in bytes
  -o, --format=list    fields to show, as name or name%width
  -P, --parsable2      separated by '|'
  -p, --parsable       separated by '|', with one at the end
      --usage          a short usage line
  -v, --verbose        say where the steps run
  -V, --version        print the version
)";
}

}  // namespace berth::command
