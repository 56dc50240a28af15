// From what the user typed to a Submission, shared by all who typed the same.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "job/memory.h"
#include "request/environment.h"
#include "request/parse.h"
#include "request/signals.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::job {
namespace {

using request::Opt;

class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    step(0xff);
  }
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) step((number >> (8 * i)) & 0xffU);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void step(std::uint64_t byte) { value_ = (value_ ^ byte) * 1099511628211ULL; }
  std::uint64_t value_ = 14695981039346656037ULL;
};

/// Options that do not change where a job can run.
bool bookkeeping(Opt option) {
  constexpr std::array kThese = {
      Opt::wrap,       Opt::job_name,  Opt::output,     Opt::error,       Opt::input,
      Opt::open_mode,  Opt::chdir,     Opt::export_env, Opt::export_file, Opt::get_user_env,
      Opt::array,      Opt::propagate, Opt::comment,    Opt::extra,       Opt::wckey,
      Opt::mail_type,  Opt::mail_user, Opt::nice,       Opt::priority,    Opt::hold,
      Opt::dependency, Opt::signal,    Opt::begin,      Opt::deadline,    Opt::requeue,
      Opt::no_requeue, Opt::wait_job,  Opt::parsable,   Opt::ignore_pbs,  Opt::kill_on_invalid_dep,
  };
  return std::ranges::find(kThese, option) != kThese.end();
}

std::uint64_t shape_of(const request::Request& request) {
  Hash hash;
  hash.add(static_cast<std::uint64_t>(request.command));
  for (const auto& [option, given] : request.given.all()) {
    if (bookkeeping(option)) continue;
    hash.add(static_cast<std::uint64_t>(option));
    hash.add(given.text);
  }
  for (const std::string& name : request.nodelist) hash.add(name);
  for (const std::string& name : request.exclude) hash.add(name);
  return hash.value();
}

/// [R:|B:]signal[@seconds]
void read_signal(std::string_view text, Submission& out) {
  if (const auto colon = text.find(':'); colon != text.npos) {
    out.warn_batch_only = text.substr(0, colon).find_first_of("Bb") != text.npos;
    text = text.substr(colon + 1);
  }
  const auto at = text.find('@');
  out.warn_signal = request::parse_signal(text.substr(0, at)).value_or(0);
  if (at == text.npos) return;
  if (const auto seconds = text::parse_number(text.substr(at + 1), UINT32_MAX)) {
    out.warn_seconds = static_cast<std::uint32_t>(*seconds);
  }
}

std::int32_t read_nice(std::string_view text) {
  if (text.empty()) return 100;
  const bool negative = text.front() == '-';
  const auto value = text::parse_number(negative ? text.substr(1) : text, 2147483645);
  const auto number = static_cast<std::int32_t>(value.value_or(0));
  return negative ? -number : number;
}

void read_options(Submission& out, bool privileged) {
  const auto& given = out.request.given;
  out.account = out.text(Opt::account);
  out.qos = out.text(Opt::qos);
  out.reservation = out.text(Opt::reservation);
  out.licenses = out.text(Opt::licenses);
  out.wckey = out.text(Opt::wckey);
  out.comment = out.text(Opt::comment);
  out.extra = out.text(Opt::extra);
  out.hold = given.has(Opt::hold);
  out.no_kill = given.has(Opt::no_kill) && out.text(Opt::no_kill) != "off";
  out.kill_on_invalid_dependency = out.text(Opt::kill_on_invalid_dep) == "yes";
  if (given.has(Opt::requeue)) out.requeue = true;
  if (given.has(Opt::no_requeue)) out.requeue = false;
  if (given.has(Opt::nice)) out.nice = read_nice(out.text(Opt::nice));
  if (out.nice < 0 && !privileged) {
    out.nice = 0;
    out.nice_ignored = true;
  }
  if (const auto value = text::parse_number(out.text(Opt::priority), UINT32_MAX)) {
    out.priority = static_cast<std::uint32_t>(*value);
  }
  if (given.has(Opt::signal)) read_signal(out.text(Opt::signal), out);
  if (given.has(Opt::immediate)) {
    const auto value = text::parse_number(out.text(Opt::immediate), UINT32_MAX);
    out.immediate_seconds = static_cast<std::uint32_t>(value.value_or(1));
  }
}

std::uint64_t identity_of(const Submission& s) {
  Hash hash;
  hash.add(s.shape);
  for (const auto& [option, given] : s.request.given.all()) {
    hash.add(static_cast<std::uint64_t>(option));
    hash.add(given.text);
  }
  for (const std::string& word : s.request.argv) hash.add(word);
  hash.add(s.submit_line);
  hash.add(s.directory);
  hash.add(s.host);
  hash.add(s.session);
  hash.add(s.component);
  hash.add(s.components);
  hash.add(static_cast<std::uint64_t>(s.nice));
  return hash.value();
}

std::optional<request::Command> command_of(std::string_view name) {
  if (name == "sbatch") return request::Command::sbatch;
  if (name == "srun") return request::Command::srun;
  if (name == "salloc") return request::Command::salloc;
  return std::nullopt;
}

}  // namespace

request::Surroundings surroundings_of(const wire::Asked& asked, const State::Memory& memory,
                                      const Caller& caller, bool inside_job) {
  request::Surroundings around;
  for (const wire::Variable& variable : asked.environment()) {
    if (request::is_input_variable(variable.name())) {
      around.environment.insert_or_assign(variable.name(), variable.value());
    }
  }
  for (const wire::NamedFile& file : asked.files()) around.files[file.name()] = file.content();
  around.inside_job = inside_job;
  around.is_root = caller.privileged;
  around.max_script = memory.policy.max_script;
  around.multiple_sharing_gres = memory.cluster.settings.multiple_sharing_gres;
  around.cluster_name = memory.policy.cluster_name;
  around.mpi_types = memory.policy.mpi_types;
  return around;
}

std::shared_ptr<const Submission> State::Memory::intern(Submission submission) {
  const std::uint64_t key = identity_of(submission);
  auto& known = interned[key];
  if (auto shared = known.lock()) {
    const bool same = shared->submit_line == submission.submit_line &&
                      shared->directory == submission.directory &&
                      shared->request.argv == submission.request.argv &&
                      shared->shape == submission.shape && shared->nice == submission.nice;
    if (same) return shared;
    return std::make_shared<const Submission>(std::move(submission));
  }
  auto made = std::make_shared<const Submission>(std::move(submission));
  known = made;
  // Entries of submissions that are gone are swept now and then, in one go.
  if (interned.size() > 1024 && interned.size() > 4 * jobs.size()) {
    std::erase_if(interned, [](const auto& entry) { return entry.second.expired(); });
  }
  return made;
}

Result<std::vector<std::shared_ptr<const Submission>>> State::Memory::read(
    const wire::Asked& asked, const std::vector<std::string>& overrides, const Caller& caller,
    std::vector<Message>& warnings, bool stored) {
  const auto command = command_of(asked.command());
  if (!command) return fail(Code::bad_value, fmt::format("unknown command {}", asked.command()));
  std::vector<std::string> words(asked.words().begin(), asked.words().end());
  const std::size_t program = request::first_argument(*command, words);
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(program), overrides.begin(),
               overrides.end());
  request::Surroundings around = surroundings_of(asked, *this, caller, false);
  around.stored = stored;
  auto parsed = request::parse(*command, words, asked.script(), around);
  if (!parsed) return pass(std::move(parsed.error()));
  warnings = std::move(parsed->warnings);
  std::vector<std::shared_ptr<const Submission>> out;
  for (request::Request& request : parsed->components) {
    Submission one;
    one.request = std::move(request);
    one.job_name = request::job_name_of(one.request);
    // Components of a batch job run one script and are called after it.
    if (!one.request.job_name && one.request.argv.empty() && !out.empty() &&
        *command == request::Command::sbatch) {
      request::Request script = out.front()->request;
      script.job_name.reset();
      one.job_name = request::job_name_of(script);
    }
    one.directory =
        text::absolute(one.request.chdir.value_or(asked.directory()), asked.directory());
    one.submit_line = asked.submit_line();
    one.host = asked.host();
    one.session = asked.session();
    one.component = static_cast<std::uint32_t>(out.size());
    one.components = static_cast<std::uint32_t>(parsed->components.size());
    if (!one.request.argv.empty() && !one.request.wrap) {
      const std::string& program_name = one.request.argv.front();
      one.command_path = *command == request::Command::sbatch
                             ? text::absolute(program_name, asked.directory())
                             : program_name;
    }
    one.shape = shape_of(one.request);
    read_options(one, caller.privileged);
    out.push_back(intern(std::move(one)));
  }
  return out;
}

}  // namespace berth::job
