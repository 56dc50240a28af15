// What key_exchange.h promises: the tasks' connections, PMI, and what is asked of srun.
#include "step/key_exchange.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "launch/errands.h"
#include "launch/exchanges.h"
#include "pmi/mapping.h"
#include "step/needs_pmix.h"
#include "wire/step_ids.h"

namespace berth::step {
namespace {

constexpr const char* kPmiChannel = "pmi";
constexpr const char* kPmixChannel = "pmix";

template <class... F>
struct Cases : F... {
  using F::operator()...;
};

/// A step of srun whose tasks are ranks: not a script, a shell, or the daemons of an mpirun.
bool has_ranks(const wire::Supervise& order, const wire::StepSpec& spec) {
  return order.has_client() && !spec.launcher() && spec.step_id() < wire::kInteractiveStep;
}

std::string step_text(const wire::StepSpec& spec) {
  return fmt::format("{}.{}", spec.job_id(), spec.step_id());
}

}  // namespace

KeyExchange::KeyExchange(const wire::Supervise& order, const wire::StepSpec& spec, Outside outside)
    : order_(order), spec_(spec), outside_(std::move(outside)) {
  if (!has_ranks(order, spec)) return;
  const std::string& asked = order.program().mpi();
  serves_pmi_ = asked.empty() || asked == "pmi2";
  serves_pmix_ = (asked.empty() && !order.pmix_helper().empty()) || asked.starts_with(kPmixChannel);
}

Result<void> KeyExchange::prepare(const std::string& program) {
  if (!serves_pmix_) return {};
  if (order_.pmix_helper().empty()) {
    return fail(Code::unsupported, "--mpi=pmix: PMIx is not installed on this node",
                "berth-pmix belongs beside berthd, and needs libpmix");
  }
  door_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  if (!door_ || ::bind(door_.get(), address, size) != 0 || ::listen(door_.get(), SOMAXCONN) != 0 ||
      ::getsockname(door_.get(), address, &size) != 0) {
    const int why = errno;
    door_.reset();
    serves_pmix_ = false;
    if (order_.program().mpi().empty()) return {};
    return fail(Code::io, fmt::format("--mpi=pmix: no socket: {}", std::strerror(why)));
  }
  port_ = ntohs(here.sin_port);
  ready_first_ = order_.program().mpi().starts_with(kPmixChannel) || needs_pmix(program);
  if (ready_first_) {
    helper_wanted_ = true;
    ask_layout();
  }
  return {};
}

Fd KeyExchange::connect(std::uint32_t rank) {
  int ends[2] = {-1, -1};
  if (!serves_pmi_ || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  lines_[rank].fd.reset(ends[0]);
  return Fd(ends[1]);
}

void KeyExchange::put_common(Environment& environment) const {
  // Those of an outer step; what a user says about PMIx (PMIX_MCA_…) stays.
  for (const char* name : {"PMI_FD",
                           "PMI_JOBID",
                           "PMI_RANK",
                           "PMI_SIZE",
                           "PMI_PORT",
                           "PMI_ID",
                           "PMI_SPAWNED",
                           "PMIX_NAMESPACE",
                           "PMIX_RANK",
                           "PMIX_SERVER_URI41",
                           "PMIX_SERVER_URI4",
                           "PMIX_SERVER_URI3",
                           "PMIX_SERVER_URI21",
                           "PMIX_SERVER_URI2",
                           "PMIX_SECURITY_MODE",
                           "PMIX_BFROP_BUFFER_TYPE",
                           "PMIX_GDS_MODULE",
                           "PMIX_HOSTNAME",
                           "PMIX_VERSION",
                           "PMIX_SERVER_TMPDIR",
                           "PMIX_SYSTEM_TMPDIR",
                           "PMIX_DSTORE_21_BASE_PATH",
                           "PMIX_DSTORE_ESH_BASE_PATH"}) {
    environment.erase(name);
  }
  if (port_ == 0) return;
  const std::string where = fmt::format("berth.{};tcp4://127.0.0.1:{}", spec_.node_id(), port_);
  // One for each version of the library that a program may bring along.
  for (const char* version : {"41", "4", "3", "21", "2"}) {
    environment.insert_or_assign(fmt::format("PMIX_SERVER_URI{}", version), where);
  }
  environment.insert_or_assign("PMIX_NAMESPACE", name_space());
  environment.insert_or_assign("PMIX_SECURITY_MODE", "native");
  environment.insert_or_assign("PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC");
  environment.insert_or_assign("PMIX_HOSTNAME", spec_.node());
  // A client looks for shared memory before it dials: a helper that comes later has none for it.
  const std::string directory = ready_first_ ? helper_directory() : "/tmp";
  environment.insert_or_assign("PMIX_GDS_MODULE", ready_first_ ? "ds21,hash" : "hash");
  if (ready_first_) environment.insert_or_assign("PMIX_DSTORE_21_BASE_PATH", directory + "/ds21");
  environment.insert_or_assign("PMIX_SERVER_TMPDIR", directory);
  environment.insert_or_assign("PMIX_SYSTEM_TMPDIR", directory);
}

void KeyExchange::put_variables(std::uint32_t rank, TaskEnvironment& environment) const {
  if (lines_.contains(rank)) {
    for (auto& [name, value] : pmi::task_variables(step_text(spec_), kPmiDescriptor, rank,
                                                   spec_.ntasks(), order_.program().spawned())) {
      environment.set(name, value);
    }
  }
  if (port_ != 0) environment.set("PMIX_RANK", std::to_string(rank));
}

std::string KeyExchange::name_space() const {
  return "slurm.pmix." + step_text(spec_);
}

void KeyExchange::add_polled(const Add& add, bool full) {
  // Before it is known who is where, the first who speaks makes it asked for.
  for (auto& [rank, line] : lines_) {
    if (!line.fd || (layout_asked_ && !server_)) continue;
    const short events = line.waits() ? POLLOUT : full ? 0 : POLLIN;
    add(line.fd.get(), events, [this, rank = rank](short ready) {
      if (!server_) return first_word(rank);
      if ((ready & POLLOUT) != 0) {
        write_task(rank);
        return act();  // it may have hung up
      }
      read_task(rank);
    });
  }
  if (door_ && !helper_wanted_) {
    add(door_.get(), POLLIN, [this](short) {
      helper_wanted_ = true;
      ask_layout();
    });
  }
  if (helper_ && helper_->open()) {
    add(helper_->fd(),
        static_cast<short>((full ? 0 : POLLIN) | (helper_->wants_write() ? POLLOUT : 0)),
        [this](short) { read_helper(); });
  }
}

/// A task has spoken, or gone without a word, as those do that know no PMI.
void KeyExchange::first_word(std::uint32_t rank) {
  char byte = 0;
  const ssize_t n = ::recv(lines_[rank].fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n > 0) return ask_layout();
  if (n == 0 || (errno != EAGAIN && errno != EINTR)) hang_up(rank);
}

void KeyExchange::ask_layout() {
  if (layout_) {
    if (helper_wanted_ && !helper_) start_helper();
    return;
  }
  if (std::exchange(layout_asked_, true)) return;
  outside_.up(wire::framed(wire::AskLayout()));
}

void KeyExchange::take_layout(wire::StepLayout layout) {
  if (layout_) return;
  layout_ = std::move(layout);
  layout_asked_ = true;
  start_server();
  if (helper_wanted_) start_helper();
}

void KeyExchange::start_server() {
  if (!serves_pmi_) return;
  pmi::Step step;
  step.id = step_text(spec_);
  step.size = spec_.ntasks();
  step.universe_size = layout_->universe();
  std::vector<std::vector<std::uint32_t>> ranks_of_node;
  for (const wire::NodeRanks& node : layout_->nodes()) {
    ranks_of_node.emplace_back(node.ranks().begin(), node.ranks().end());
  }
  for (const wire::TaskSpec& task : spec_.tasks()) step.ranks.push_back(task.rank());
  for (const wire::ProgramOf& own : order_.program().multi_prog()) {
    if (own.appnum() > 0) step.appnums.emplace(own.rank(), own.appnum());
  }
  for (const wire::Variable& pair : layout_->given()) step.given[pair.name()] = pair.value();
  step.spawner = layout_->spawner();
  step.mapping = pmi::process_mapping(ranks_of_node);
  server_.emplace(std::move(step));
  for (const wire::TaskSpec& task : spec_.tasks()) {
    const auto line = lines_.find(task.rank());
    if (line == lines_.end() || !line->second.fd) server_->closed(task.rank());
  }
  act();
}

void KeyExchange::read_task(std::uint32_t rank) {
  std::array<char, 4096> buffer;  // one question may have an answer of 64 KiB
  const ssize_t n = ::recv(lines_[rank].fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) {
    server_->received(rank, {buffer.data(), static_cast<std::size_t>(n)});
  } else {
    hang_up(rank);
  }
  act();
}

void KeyExchange::write_task(std::uint32_t rank) {
  Line& line = lines_[rank];
  while (line.fd && line.waits()) {
    const ssize_t n = ::send(line.fd.get(), line.out.data() + line.taken,
                             line.out.size() - line.taken, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return hang_up(rank);
    line.taken += static_cast<std::size_t>(n);
  }
  line.out.clear();
  line.taken = 0;
}

void KeyExchange::hang_up(std::uint32_t rank) {
  Line& line = lines_[rank];
  line.fd.reset();
  line.out.clear();
  line.taken = 0;
  if (server_) server_->closed(rank);
}

void KeyExchange::act() {
  // Answers may bring more, e.g. when a task cannot be written to.
  for (auto events = server_->take(); !events.empty(); events = server_->take()) {
    for (const pmi::Event& event : events) act(event);
  }
}

void KeyExchange::act(const pmi::Event& event) {
  using Ask = launch::NameQuestion::Kind;
  std::visit(
      Cases{
          [this](const pmi::Answer& answer) {
            Line& line = lines_[answer.rank];
            if (!line.fd) return;
            line.out += answer.bytes;
            write_task(answer.rank);
          },
          [this](const pmi::Contribution& part) {
            if (layout_->nodes_size() == 1) return fenced(part.number, part.bytes);
            wire::Exchange exchange;
            exchange.set_channel(kPmiChannel);
            exchange.set_number(part.number);
            exchange.set_nodes(1);
            exchange.set_data(part.bytes);
            outside_.up(wire::framed(exchange));
          },
          [this](const pmi::Abort& abort) {
            wire::AbortStep message;
            message.set_rank(abort.rank);
            message.set_code(abort.code);
            message.set_text(abort.message);
            abort_step(message);
          },
          [this](const pmi::Publish& ask) {
            ask_name(ask.ticket, {Ask::publish, ask.name, ask.port});
          },
          [this](const pmi::Unpublish& ask) { ask_name(ask.ticket, {Ask::forget, ask.name}); },
          [this](const pmi::Lookup& ask) { ask_name(ask.ticket, {Ask::find, ask.name}); },
          [this](const pmi::SpawnRequest& ask) { ask_spawn(ask); },
          [this](const pmi::Misuse& misuse) {
            outside_.say(
                fmt::format("task {} broke the PMI protocol: {}", misuse.rank, misuse.what));
            lines_[misuse.rank].fd.reset();
          },
          [](const pmi::Departed&) {},
      },
      event);
}

void KeyExchange::fenced(std::uint64_t number, std::string_view data) {
  if (auto done = server_->fenced(number, data); !done) {
    outside_.say(fmt::format("PMI: {}", done.error().what()));
  }
}

void KeyExchange::abort_step(const wire::AbortStep& abort) {
  const bool here = std::ranges::any_of(
      spec_.tasks(), [&](const wire::TaskSpec& task) { return task.rank() == abort.rank(); });
  if (!here || !aborted_.emplace(abort.rank(), abort.code()).second) return;
  outside_.up(wire::framed(abort));
}

std::optional<int> KeyExchange::abort_code(std::uint32_t rank) const {
  const auto at = aborted_.find(rank);
  if (at == aborted_.end()) return std::nullopt;
  return (at->second & 0xff) == 0 ? 1 : at->second & 0xff;
}

void KeyExchange::ask_name(std::uint64_t ticket, const launch::NameQuestion& question) {
  ask_root(launch::kNameChannel, ticket, launch::question_text(question));
}

void KeyExchange::ask_spawn(const pmi::SpawnRequest& request) {
  wire::SpawnTasks tasks;
  tasks.set_rank(request.rank);
  tasks.set_spawner(step_text(spec_));
  const auto put = [](wire::Variable* pair, const std::string& name, const std::string& value) {
    pair->set_name(name);
    pair->set_value(value);
  };
  for (const pmi::SpawnCommand& command : request.commands) {
    wire::SpawnProgram& program = *tasks.add_programs();
    for (const std::string& word : command.argv) program.add_argv(word);
    program.set_tasks(command.tasks);
    for (const auto& [key, value] : command.info) put(program.add_info(), key, value);
  }
  for (const auto& [key, value] : request.given) put(tasks.add_given(), key, value);
  ask_root(launch::kSpawnChannel, request.ticket, tasks.SerializeAsString());
}

void KeyExchange::ask_root(const char* channel, std::uint64_t ticket, std::string data) {
  wire::Errand errand;
  errand.set_from(spec_.node());
  errand.set_channel(channel);
  errand.set_number(ticket);
  errand.set_data(std::move(data));
  outside_.up(wire::framed(errand));
}

bool KeyExchange::take(const wire::Frame& frame) {
  switch (frame.kind) {
    case wire::Kind::StepLayout:
      if (auto layout = wire::decode<wire::StepLayout>(frame.payload)) {
        take_layout(std::move(*layout));
      }
      return true;
    case wire::Kind::Exchange: {
      const auto exchange = wire::decode<wire::Exchange>(frame.payload);
      if (exchange && exchange->channel() == kPmiChannel && server_) {
        fenced(exchange->number(), exchange->data());
        act();
      } else if (exchange && exchange->channel() == kPmixChannel && helper_) {
        helper_->send(*exchange);
        helper_->flush();
      }
      return true;
    }
    case wire::Kind::Errand:
      if (const auto errand = wire::decode<wire::Errand>(frame.payload)) take_errand(*errand);
      return true;
    default:
      return false;
  }
}

void KeyExchange::take_errand(const wire::Errand& errand) {
  if (errand.channel() == kPmixChannel) {
    // Another node asks for what a task here has put: it will have, even if none has spoken yet.
    helper_wanted_ = true;
    ask_layout();
    if (helper_ && helper_->open()) {
      helper_->send(errand);
      helper_->flush();
    } else if (!errand.answer()) {
      outside_.up(wire::framed(launch::unanswered(errand)));
    }
    return;
  }
  if (!errand.answer() || !server_) return;
  if (errand.channel() == launch::kNameChannel) {
    server_->named(errand.number(), launch::read_answer(errand.data()));
  } else if (errand.channel() == launch::kSpawnChannel) {
    server_->spawned(errand.number(), launch::read_answer(errand.data()));
  }
  act();
}

}  // namespace berth::step
