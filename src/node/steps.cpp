// Starting supervisors and talking to them.
#include "node/steps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "step/container.h"
#include "step/launch_failure.h"
#include "step/peer.h"
#include "text/cpumask.h"
#include "wire/refusal.h"
#include "wire/step_ids.h"

namespace berth::node {

using step::launch_failure;
using step::LaunchPart;

namespace {

std::string text_of(const NodeStep& at) {
  return fmt::format("{}.{} on {}", at.key.job, step::step_name(at.key.step), at.node);
}

std::unexpected<Error> trouble(const std::string& what) {
  return fail(Code::io, fmt::format("{}: {}", what, std::strerror(errno)));
}

void refuse_client(net::Loop& loop, net::Connection::Released client, const Error& error) {
  if (!client.fd) return;
  auto connection = net::Connection::take_up(loop, std::move(client));
  if (!connection) return;
  wire::LaunchReply reply;
  *reply.mutable_refusal() = wire::to_refusal(error);
  (*connection)->start({});
  (*connection)->send(reply);
  (*connection)->close();
}

}  // namespace

/// The supervisor needs nothing of the agent's environment but these; its messages go nowhere, so
/// a sanitizer has to know of a file for its report.
std::vector<std::string> supervisor_environment() {
  std::vector<std::string> variables;
  for (const char* name :
       {"BERTH_CRASH_AT", "TZ", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name))
      variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

std::string job_record_name(std::uint32_t job, std::uint32_t attempt) {
  return fmt::format("job.{}.{}", job, attempt);
}

Steps::Step* Steps::find(const NodeStep& at) {
  const auto found = steps_.find(at);
  return found == steps_.end() ? nullptr : &found->second;
}

Steps::Step& Steps::add(const NodeStep& at, std::string spec) {
  Step& step = steps_[at];
  step.at = at;
  step.spec = std::move(spec);
  step.record = fmt::format("{}/{}/{}", here_.spool, at.node, step::record_name(at.key));
  step.cgroup =
      here_.cgroups.usable() ? here_.cgroups.path_of(here_.cgroups.name_of(at.node, at.key)) : "";
  step.mark = fmt::format("{}:{}.{}.{}:{}", at.node, at.key.job, at.key.attempt, at.key.step,
                          here_.spool_key);
  return step;
}

bool Steps::used(const NodeStep& at) const {
  return steps_.contains(at) || refused_.contains(at);
}

const Error* Steps::unfit_for(const NodeStep& at) const {
  const auto found = died_unstarted_.find(at);
  return found == died_unstarted_.end() || !found->second ? nullptr : &*found->second;
}

/// The step's record with its spec. The descriptor holds the lock.
Result<Fd> Steps::prepare(Step& step) {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC;
  Fd lock(::open(step.record.c_str(), kFlags, 0600));
  if (!lock && errno == ENOENT) {
    const std::string parent = here_.spool + '/' + step.at.node;
    if (::mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) {
      return launch_failure(LaunchPart::spool, parent, errno);
    }
    lock.reset(::open(step.record.c_str(), kFlags, 0600));
  }
  wire::Supervised first;
  first.set_spec(step.spec);
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 ||
      !step::write_all(lock.get(), wire::framed(first))) {
    return launch_failure(LaunchPart::spool, step.record, errno);
  }
  if (here_.cgroups.usable()) {
    const std::string name = here_.cgroups.name_of(step.at.node, step.at.key);
    step.cgroup = here_.cgroups.make(name);
    if (step.cgroup.empty()) {
      return launch_failure(LaunchPart::fence, here_.cgroups.path_of(name), errno);
    }
  }
  return lock;
}

wire::Supervise Steps::order_for(const Step& step) const {
  wire::Supervise order;
  order.set_spec(step.spec);
  order.set_step_directory(step.record);
  order.set_cgroup(step.cgroup);
  order.set_emulated(here_.emulated);
  order.set_has_names(here_.names.mounts() >= 0);
  order.set_has_users(here_.names.users() >= 0);
  order.set_task_prolog(here_.config.task_prolog());
  order.set_task_epilog(here_.config.task_epilog());
  order.set_kill_wait_seconds(here_.config.kill_wait_seconds());
  order.set_unkillable_seconds(here_.config.unkillable_seconds());
  order.set_gathers_bytes(here_.config.gathers_bytes());
  order.set_propagate_niceness(here_.config.propagate_niceness());
  order.set_mark(step.mark);
  order.set_open_files(here_.open_files);
  order.set_conf_path(here_.config.conf_path());
  order.set_pmix_helper(here_.pmix_helper);
  const auto spec = wire::decode<wire::StepSpec>(step.spec);
  if (!here_.emulated && here_.machine != nullptr && spec) {
    for (const wire::TaskSpec& task : spec->tasks()) {
      const auto cpus = text::parse_id_set(task.cpus());
      order.add_os_cpus(cpus ? here_.machine->os_cpus(*cpus).ranges() : "");
    }
  }
  return order;
}

Result<void> Steps::fence_in(const Step& step, wire::Supervise& order) {
  if (!here_.fencing.active()) return {};
  const auto spec = wire::decode<wire::StepSpec>(step.spec);
  if (!spec) return fail(Code::no_credential, "Invalid job credential");
  auto fence = here_.fencing.put_up(*spec, step.cgroup);
  if (!fence) return launch_failure(LaunchPart::fence, std::string(fence.error().what()));
  if (*fence) *order.mutable_fence() = std::move(**fence);
  return {};
}

GroupsOf Steps::groups_of(const Step& step) const {
  GroupsOf groups{.cgroup = step.cgroup,
                  .job = step.at.key.job,
                  .name = here_.fencing.name_of(step.at.node, step::step_name(step.at.key.step))};
  if (!here_.fencing.active()) return groups;
  if (const auto spec = wire::decode<wire::StepSpec>(step.spec)) groups.uid = spec->uid();
  return groups;
}

bool Steps::drop_groups(const Step& step) {
  return node::drop_groups(here_, groups_of(step));
}

bool Steps::uses(const std::string& cgroup) const {
  return std::ranges::any_of(steps_,
                             [&](const auto& entry) { return entry.second.cgroup == cgroup; });
}

bool Steps::knows(std::uint32_t job) const {
  return std::ranges::any_of(steps_, [&](const auto& entry) { return entry.first.key.job == job; });
}

bool Steps::knows(std::uint32_t job, const std::string& name) const {
  return std::ranges::any_of(steps_, [&](const auto& entry) {
    const auto& [node, key] = entry.first;
    return key.job == job && here_.fencing.name_of(node, step::step_name(key.step)) == name;
  });
}

void Steps::start(const NodeStep& at, const std::string& spec, wire::Program program,
                  std::optional<net::Connection::Released> client, Started done) {
  Step& step = add(at, spec);
  step.launching = std::make_unique<Launching>(Launching{
      .program = std::move(program), .client = std::move(client), .done = std::move(done)});
  if (!died_unstarted_.contains(at)) return try_start(at);
  step.launching->failed = true;
  step.launching->timer = here_.loop.after(step::kTryAgainAfter, [this, at] { try_start(at); });
}

void Steps::try_start(const NodeStep& at) {
  Step& step = steps_.at(at);
  step.launching->timer = net::TimerId::none;
  if (auto done = spawn(step); !done) launch_failed(at, done.error());
}

Result<void> Steps::spawn(Step& step) {
  const NodeStep at = step.at;
  Launching& launching = *step.launching;
  auto& client = launching.client;
  Result<Fd> lock = prepare(step);
  if (!lock) return pass(std::move(lock.error()));
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return launch_failure(LaunchPart::descriptor, "socketpair", errno);
  }
  Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  here_.crash.reached("node.before_spawn");
  auto pid =
      here_.children.start({.program = here_.supervisor,
                            .argv = {},
                            .environment = supervisor_environment(),
                            .descriptors = {theirs.get(), client ? client->fd.get() : -1,
                                            lock->get(), here_.names.mounts(), here_.names.users()},
                            .spared = true},
                           {});
  if (!pid) return launch_failure(LaunchPart::supervisor, std::string(pid.error().what()));
  here_.crash.reached("node.after_spawn");
  step.spawned = true;
  // While the supervisor starts up. It does nothing before it has its order, and goes without one.
  wire::Supervise order = order_for(step);
  if (auto fenced = fence_in(step, order); !fenced) return fenced;
  // Of a step that srun launches the attempt is stored already, with its job: after a crash of the
  // machine the job takes no launches any more, and until then the record in the spool does.
  if (at.key.step != wire::kBatchStep) {
    order.mutable_program()->Swap(&launching.program);
    if (client) {
      order.set_has_client(true);
      order.set_unread(std::move(client->unread));
      order.set_unsent(std::move(client->unsent));
      order.set_session_key(std::move(client->key));
      client.reset();
    }
    watch(step, std::move(ours));
    give_order(at, order, {});
    return {};
  }
  *order.mutable_program() = launching.program;
  watch(step, std::move(ours));
  // The supervisor starts up while the start is stored; it does nothing before it has its order.
  here_.fence.begin(
      {.node = at.node, .job = at.key.job, .attempt = at.key.attempt, .step = at.key.step},
      [this, &loop = here_.loop, at, order = std::move(order)](const std::string& why_not) mutable {
        loop.post(
            [this, at, order = std::move(order), why_not] { give_order(at, order, why_not); });
      });
  return {};
}

void Steps::launch_failed(const NodeStep& at, const Error& why) {
  Step& step = steps_.at(at);
  if (step.link) std::exchange(step.link, nullptr)->abort();
  step.ordered = false;
  step::remove_step(step.record);
  drop_groups(step);
  if (why.code != Code::node_unfit || step.ending || std::exchange(step.launching->failed, true)) {
    return give_up(at, why);
  }
  here_.log.error("step {} cannot start, and is tried once more: {}", text_of(at), why.what());
  step.launching->timer = here_.loop.after(step::kTryAgainAfter, [this, at] { try_start(at); });
}

void Steps::give_up(const NodeStep& at, const Error& why) {
  Step& step = steps_.at(at);
  const std::unique_ptr<Launching> launching = std::move(step.launching);
  here_.loop.cancel(launching->timer);
  here_.loop.cancel(step.watch);
  const Error error = step::failed_twice(why);
  const std::uint32_t uid =
      wire::decode<wire::StepSpec>(step.spec).value_or(wire::StepSpec()).uid();
  here_.log.of_user(uid).error("step {} cannot start: {}", text_of(at), error.what());
  if (launching->client) refuse_client(here_.loop, std::move(*launching->client), error);
  // It was said to have begun.
  if (!launching->done) {
    wire::StepEnded ended = failed(step);
    ended.set_node_unfit(error.code == Code::node_unfit);
    ended.set_trouble(std::string(error.what()));
    step::append_record(step.record, wire::framed(ended), true);
    return take_result(at, std::move(ended));
  }
  const bool told = at.key.step == wire::kBatchStep || error.code != Code::node_unfit;
  steps_.erase(at);
  if (!told && events_.unfit) events_.unfit(at, std::string(error.what()));
  launching->done(pass(error));
}

void Steps::give_order(const NodeStep& at, const wire::Supervise& order,
                       const std::string& why_not) {
  Step* begun = find(at);
  // It was given up meanwhile, or is tried again.
  if (begun == nullptr || !begun->link || begun->ordered) return;
  if (!why_not.empty()) {
    return launch_failed(
        at, launch_failure(LaunchPart::spool,
                           fmt::format("the node cannot store the start of a step: {}", why_not))
                .error());
  }
  here_.crash.reached("node.before_order");
  begun->ordered = true;
  begun->link->send(order);
  for (const std::string& frame : std::exchange(begun->waiting, {})) {
    begun->link->send_bytes(frame);
  }
  watch_limit(*begun);
  here_.crash.reached("node.after_order");
  events_.started(at, begun->spec);
  Started done = std::exchange(begun->launching->done, {});
  if (at.key.step != wire::kBatchStep) begun->launching.reset();
  if (done) done({});
}

Steps::~Steps() {
  for (auto& [at, step] : steps_) {
    here_.loop.cancel(step.watch);
    if (step.launching) here_.loop.cancel(step.launching->timer);
    if (step.link) step.link->abort();
  }
}

void Steps::watch(Step& step, Fd fd) {
  step.link_fd = fd.get();
  step.link = net::Connection::adopt(here_.loop, std::move(fd));
  step.link->limit_frames(wire::kMostBytes);
  step.link->start(
      {.on_frame =
           [this, at = step.at](net::Connection&, const wire::Frame& frame) {
             Step* known = find(at);
             if (known == nullptr) return;
             known->heard = net::Clock::now();
             if (frame.kind == wire::Kind::StepStarted) known->launching.reset();
             if (frame.kind == wire::Kind::TasksMeasured) {
               const auto m = wire::decode<wire::TasksMeasured>(frame.payload);
               if (m) answer_questions(*known, &*m);
             }
             if (frame.kind != wire::Kind::StepEnded) return;
             auto m = wire::decode<wire::StepEnded>(frame.payload);
             if (!m) return;
             if (m->stuck_pids().empty()) return take_result(at, std::move(*m));
             take_stuck(*known, {m->stuck_pids().begin(), m->stuck_pids().end()});
           },
       .on_closed = [this, at = step.at](net::Connection&, std::string_view) { link_lost(at); },
       .on_drained = {}});
}

void Steps::take_result(const NodeStep& at, wire::StepEnded ended) {
  Step* step = find(at);
  if (step == nullptr || step->result) return;
  const std::unique_ptr<Launching> launching = std::move(step->launching);
  if (events_.ending) events_.ending(at, ended);
  step->result = ended;
  here_.loop.cancel(step->watch);
  if (!step->stuck.empty()) here_.log.info("step {}: its processes are gone now", text_of(at));
  answer_questions(*step, nullptr);
  tidy_groups(here_, groups_of(*step));
  here_.crash.reached("node.step_ended");
  events_.ended(at, ended);
  if (launching && launching->done) {
    launching->done(fail(Code::job_completed, "the step was ended before it began"));
  }
}

void Steps::measure(const NodeStep& at, const Question& question) {
  // One supervisor that does not answer must not gather questions without end.
  constexpr std::size_t kMostQuestions = 64;
  Step* step = find(at);
  if (step == nullptr || (!step->ordered && !step->result)) {
    return events_.measured(at, question, {});
  }
  if (step->result) return events_.measured(at, question, {.ended = &*step->result});
  if (!step->link || step->questions.size() >= kMostQuestions) {
    return events_.measured(at, question, {.unable = true});
  }
  const bool first = step->questions.empty();
  step->questions.push_back(question);
  if (first) send(*step, wire::framed(wire::SuperviseMeasure()));
}

void Steps::answer_questions(Step& step, const wire::TasksMeasured* measured) {
  const NodeStep at = step.at;
  Answer answer{.tasks = measured};
  if (measured == nullptr && step.result) answer.ended = &*step.result;
  answer.unable = measured == nullptr && !step.result;
  for (const Question& question : std::exchange(step.questions, {})) {
    events_.measured(at, question, answer);
  }
}

/// Frames for a supervisor wait until it has its order, or is connected again.
void Steps::send(Step& step, const std::string& frame) {
  if (step.result) return;
  if (step.ordered && step.link) {
    step.link->send_bytes(frame);
  } else {
    step.waiting.push_back(frame);
  }
}

void Steps::end(const NodeStep& at, const std::string& cause, bool now) {
  Step* step = find(at);
  if (step == nullptr) return;
  step->ending = true;
  if (step->launching && step->launching->timer != net::TimerId::none) {
    return give_up(at, fail(Code::job_completed, "the step was ended before it began").error());
  }
  wire::SuperviseEnd message;
  message.set_cause(cause);
  message.set_now(now);
  send(*step, wire::framed(message));
  watch_end(*step, now ? std::chrono::seconds(0) : kill_wait());
}

void Steps::signal(const NodeStep& at, int number, bool tasks_only) {
  Step* step = find(at);
  if (step == nullptr) return;
  wire::SuperviseSignal message;
  message.set_signal(number);
  message.set_tasks_only(tasks_only);
  send(*step, wire::framed(message));
}

void Steps::say(const NodeStep& at, const std::string& line, bool as_it_is) {
  Step* step = find(at);
  if (step == nullptr || step->result) return;
  wire::SuperviseSay message;
  message.set_line(line);
  message.set_as_it_is(as_it_is);
  send(*step, wire::framed(message));
}

Result<void> Steps::attach(const NodeStep& at, net::Connection::Released client, bool read_only) {
  const Step* step = find(at);
  if (step == nullptr || step->result) {
    return fail(Code::job_completed, "Job/step already completing or completed");
  }
  if (!step->link || !step->link->open() || !step->ordered || step->link->backlog() > 0) {
    return fail(Code::no_connection, "the step's supervisor is not ready");
  }
  wire::SuperviseAttach message;
  message.set_read_only(read_only);
  message.set_unread(client.unread);
  message.set_unsent(client.unsent);
  message.set_session_key(client.key);
  if (step::send_with_descriptor(step->link_fd, wire::framed(message), client.fd.get())) return {};
  return trouble("the step's supervisor");
}

void Steps::refuse(const NodeStep& at) {
  if (!refused_.add(at)) return;
  wire::Forget used;
  used.set_step_id(at.key.step);
  const std::string job =
      fmt::format("{}/{}/{}", here_.spool, at.node, job_record_name(at.key.job, at.key.attempt));
  // Where the job has no record it takes no launches anyway.
  step::append_record(job, wire::framed(used));
}

void Steps::forget(const NodeStep& at) {
  const Step* step = find(at);
  if (step == nullptr || !step->result) return;
  // The ticket of a batch step is its job's, which begins once.
  if (at.key.step != wire::kBatchStep) refuse(at);
  drop(at);
}

void Steps::drop(const NodeStep& at) {
  Step* step = find(at);
  if (step == nullptr || !step->result) return;
  step->confirmed = true;
  here_.loop.cancel(step->timer);
  if (step->link) step->link->close();
  step::remove_step(step->record);
  forget_begun(at);
  steps_.erase(at);
}

void Steps::forget_begun(const NodeStep& at) {
  if (at.key.step != wire::kBatchStep) return;
  here_.fence.forget(
      {.node = at.node, .job = at.key.job, .attempt = at.key.attempt, .step = at.key.step});
}

void Steps::forget_job(const std::string& node, std::uint32_t job, std::uint32_t attempt) {
  const NodeStep begin{node, {job, attempt, 0}};
  const auto belongs = [&](const NodeStep& at) {
    return at.node == node && at.key.job == job && at.key.attempt == attempt;
  };
  std::vector<NodeStep> all;
  for (auto it = steps_.lower_bound(begin); it != steps_.end() && belongs(it->first); ++it) {
    all.push_back(it->first);
  }
  for (const NodeStep& at : all) drop(at);
  refused_.forget({node, job, attempt});
  std::erase_if(died_unstarted_, [&](const auto& entry) { return belongs(entry.first); });
}

std::vector<NodeStep> Steps::running(const std::string& node, std::uint32_t job,
                                     std::uint32_t attempt) const {
  std::vector<NodeStep> found;
  for (auto it = steps_.lower_bound({node, {job, attempt, 0}}); it != steps_.end(); ++it) {
    const NodeStep& at = it->first;
    if (at.node != node || at.key.job != job || at.key.attempt != attempt) break;
    if (!it->second.result) found.push_back(at);
  }
  return found;
}

std::vector<std::string> Steps::specs(const std::string& node) const {
  std::vector<std::string> found;
  for (auto it = steps_.lower_bound({node, {}}); it != steps_.end() && it->first.node == node;
       ++it) {
    found.push_back(it->second.spec);
  }
  return found;
}

std::vector<wire::StepEnded> Steps::unconfirmed() const {
  std::vector<wire::StepEnded> found;
  for (const auto& [at, step] : steps_) {
    if (step.result) found.push_back(*step.result);
  }
  return found;
}

const wire::StepEnded* Steps::ended(const NodeStep& at) const {
  const auto found = steps_.find(at);
  return found == steps_.end() || !found->second.result ? nullptr : &*found->second.result;
}

}  // namespace berth::node
