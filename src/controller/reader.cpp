#include "controller/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "controller/info_priority.h"
#include "text/number.h"
#include "text/words.h"
#include "wire/refusal.h"

namespace berth::controller {
namespace {

/// Header of a frame whose payload is written behind it.
class FrameWriter {
 public:
  explicit FrameWriter(wire::Kind kind) : kind_(kind) { bytes.append(wire::kHeaderBytes, '\0'); }
  std::string finish() {
    const std::size_t length = bytes.size() - 4;
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(length >> (8 * i) & 0xff);
    const auto number = static_cast<std::uint16_t>(kind_);
    bytes[4] = static_cast<char>(number & 0xff);
    bytes[5] = static_cast<char>(number >> 8);
    return std::move(bytes);
  }
  std::string bytes;

 private:
  wire::Kind kind_;
};

bool any_of(const google::protobuf::RepeatedPtrField<std::string>& words,
            const std::vector<std::string>& held) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return std::ranges::any_of(
        held, [&](const std::string& each) { return text::equal_ignoring_case(word, each); });
  });
}

bool named(const JobView& job, const wire::JobName& name) {
  if (name.has_array_task()) {
    if (job.array_id != name.id()) return false;
    if (job.array_task) return *job.array_task == name.array_task();
    return job.rest && job.rest->test(name.array_task());
  }
  return job.id == name.id() || job.array_id == name.id() || job.het_leader == name.id();
}

class Filter {
 public:
  Filter(const wire::ListJobs& ask, const Caller& caller, const std::vector<std::uint32_t>& uids,
         const Picture& picture)
      : ask_(ask), caller_(caller), uids_(uids), picture_(picture) {
    for (const std::string& state : ask.states()) {
      if (text::equal_ignoring_case(state, "all")) all_states_ = true;
    }
    names_users_ = ask.only_mine() || ask.users_size() > 0 || ask.user_names_size() > 0;
  }

  [[nodiscard]] bool passes(const JobView& job) const {
    if (!picture_.disclosure.shows_job(caller_, job.uid)) return false;
    if (names_users_ && std::ranges::find(uids_, job.uid) == uids_.end()) return false;
    if (ask_.ids_size() > 0 && std::ranges::none_of(ask_.ids(), [&](const wire::JobName& name) {
          return named(job, name);
        })) {
      return false;
    }
    if (!ask_.with_hidden() && ask_.ids_size() == 0 &&
        picture_.hidden_partitions.contains(job.partition)) {
      return false;
    }
    if (ask_.states_size() > 0 && !all_states_) return any_of(ask_.states(), job.states);
    return !job.over || ask_.with_ended() || all_states_;
  }

 private:
  const wire::ListJobs& ask_;
  const Caller& caller_;
  const std::vector<std::uint32_t>& uids_;
  const Picture& picture_;
  bool all_states_ = false;
  bool names_users_ = false;
};

/// `all`: also what is not for everybody.
std::string_view wanted_bytes(const JobView& job, const wire::ListJobs& ask, bool all) {
  const std::size_t wanted = ask.brief() ? job.brief_bytes
                             : all       ? std::string::npos
                                         : job.public_bytes;
  return std::string_view(*job.info).substr(0, wanted);
}

/// Of the pending rest of an array, the elements that are asked for.
std::shared_ptr<const Bits> asked_tasks(const JobView& job, const wire::ListJobs& ask) {
  Bits some;
  for (const wire::JobName& name : ask.ids()) {
    if (!named(job, name)) continue;
    if (!name.has_array_task()) return job.rest;
    some.set(name.array_task());
  }
  return some.any() ? std::make_shared<const Bits>(std::move(some)) : job.rest;
}

/// Of the pending rest of an array, what its elements have in common.
std::string common_bytes(const JobView& job, const wire::ListJobs& ask, bool all) {
  const std::string_view bytes = wanted_bytes(job, ask, all);
  wire::JobInfo info;
  if (!info.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  info.clear_array_tasks();
  info.set_priority(job.priority);
  return info.SerializeAsString();
}

void append_job(std::string& out, const JobView& job, const wire::ListJobs& ask, bool all) {
  const std::uint32_t priority = job.priority;
  const bool newer = priority != job.info_priority;
  const std::string_view info = wanted_bytes(job, ask, all);
  const bool with_detail = !ask.brief() && ask.with_detail() && job.detail;
  if (!newer && !with_detail) {
    return append_field(out, wire::JobsReply::kJobsFieldNumber, info);
  }
  // Parts of one message, one after the other, are that message; of a number the last one counts.
  std::string bytes(info);
  if (newer) {
    wire::JobInfo only;
    only.set_priority(priority);
    only.AppendToString(&bytes);
  }
  if (with_detail) bytes += *job.detail;
  append_field(out, wire::JobsReply::kJobsFieldNumber, bytes);
}

}  // namespace

std::vector<std::shared_ptr<const JobView>> chosen_jobs(const Picture& picture,
                                                        const wire::ListJobs& ask,
                                                        const Caller& caller,
                                                        const std::vector<std::uint32_t>& uids,
                                                        Walk walk) {
  std::vector<std::shared_ptr<const JobView>> chosen;
  const Filter filter(ask, caller, uids, picture);
  const auto take = [&](const std::shared_ptr<const JobView>& job) {
    if (filter.passes(*job)) chosen.push_back(job);
  };
  // One ordinary job asked for by its number is found without walking through all.
  if (ask.ids_size() == 1 && !ask.ids(0).has_array_task()) {
    const auto found = picture.jobs.find(ask.ids(0).id());
    if (found != picture.jobs.end() && found->second->array_id == found->first &&
        !found->second->rest && !found->second->array_task && found->second->het_leader == 0) {
      if (found->first > walk.after) take(found->second);
      return chosen;
    }
  }
  for (auto at = picture.jobs.upper_bound(walk.after);
       at != picture.jobs.end() && chosen.size() < walk.most; ++at) {
    take(at->second);
  }
  return chosen;
}

Pages::Page JobPages::next() {
  constexpr std::size_t kAtOnce = 64;
  FrameWriter frame(wire::Kind::JobsReply);
  wire::JobsReply head;
  head.set_now(clock_.seconds());
  bool more = true;
  Disclosure disclosure;
  if (elements_) append_elements(frame.bytes);
  while (more && frame.bytes.size() < page_bytes_) {
    // Only the choice is made under the lock, which the state thread needs to publish.
    const auto jobs = published_.read([&](const Picture& picture) {
      head.set_cluster_name(picture.cluster_name);
      head.set_last_backfill(picture.last_backfill);
      disclosure = picture.disclosure;
      return chosen_jobs(picture, ask_, caller_, uids_, {.after = after_, .most = kAtOnce});
    });
    more = jobs.size() == kAtOnce;
    for (const auto& job : jobs) {
      if (frame.bytes.size() >= page_bytes_) {
        more = true;
        break;
      }
      after_ = job->id;
      append(frame.bytes, job, disclosure.shows_command_line(caller_, job->uid));
    }
  }
  more = more || elements_;
  head.set_more(more);
  head.AppendToString(&frame.bytes);
  return {frame.finish(), more};
}

void JobPages::append(std::string& out, const std::shared_ptr<const JobView>& job, bool all) {
  for (const StepView& step : job->steps) {
    if (!ask_.with_steps()) break;
    const std::size_t wanted = all ? std::string::npos : step.public_bytes;
    append_field(out, wire::JobsReply::kStepsFieldNumber,
                 std::string_view(*step.info).substr(0, wanted));
  }
  if (!ask_.split_arrays() || !job->rest) return append_job(out, *job, ask_, all);
  auto tasks = asked_tasks(*job, ask_);
  elements_ = Elements{tasks, common_bytes(*job, ask_, all), tasks->next()};
  append_elements(out);
}

void JobPages::append_elements(std::string& out) {
  Elements& now = *elements_;
  std::string one = now.common;
  wire::JobInfo index;
  for (; now.next != Bits::npos && out.size() < page_bytes_;
       now.next = now.tasks->next(now.next + 1)) {
    index.set_array_task_id(static_cast<std::uint32_t>(now.next));
    index.AppendToString(&one);
    append_field(out, wire::JobsReply::kJobsFieldNumber, one);
    one.resize(now.common.size());
  }
  if (now.next == Bits::npos) elements_.reset();
}

Reader::Reader(const Clock& clock, Front& front, const Published& published, Users& users,
               RequestCounts& counts, Refresh refresh, std::string state_directory)
    : clock_(clock),
      front_(front),
      published_(published),
      users_(users),
      counts_(counts),
      refresh_(std::move(refresh)),
      state_directory_(std::move(state_directory)),
      thread_([this] { work(); }) {}

Reader::~Reader() {
  stop();
}

void Reader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Reader::put(Item item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  changed_.notify_one();
}

void Reader::ask(Request request) {
  put({.request = std::move(request)});
}

/// Behind all who have asked meanwhile: a long answer holds nobody up.
void Reader::page_taken(Peer peer) {
  put({.what = Item::What::next_page, .peer = peer});
}

void Reader::pages_unwanted(Peer peer) {
  put({.what = Item::What::no_more, .peer = peer});
}

void Reader::work() {
  for (;;) {
    std::deque<Item> items;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !items_.empty(); });
      if (stopping_) return;
      items.swap(items_);
    }
    const auto asks = [&](auto&& what) {
      return std::ranges::any_of(items, [&](const Item& item) {
        return item.what == Item::What::request && what(item.request.kind);
      });
    };
    // Once for all that came in the meantime.
    if (asks([](wire::Kind) { return true; })) {
      refresh_(asks([](wire::Kind kind) {
        return kind == wire::Kind::ListJobs || kind == wire::Kind::ListHistory ||
               kind == wire::Kind::ListPriorities;
      }));
    }
    for (const Item& item : items) {
      if (item.what != Item::What::request) {
        if (item.what == Item::What::no_more) pages_.erase(item.peer);
        send_page(item.peer);
        continue;
      }
      const Request& request = item.request;
      const auto start = std::chrono::steady_clock::now();
      answer(request);
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - start);
      counts_.count(request.kind, request.caller.uid, static_cast<std::uint64_t>(took.count()));
    }
  }
}

void Reader::begin(Peer peer, std::unique_ptr<Pages> pages) {
  pages_[peer] = std::move(pages);
  send_page(peer);
}

void Reader::send_page(Peer peer) {
  const auto found = pages_.find(peer);
  if (found == pages_.end()) return;  // it has gone, or another reader answers it
  Pages::Page page = found->second->next();
  if (!page.more) pages_.erase(found);
  front_.act(
      {.peer = peer, .bytes = std::move(page.frame), .answered = !page.more, .page = page.more});
}

void Reader::answer(const Request& request) {
  const auto reply = [&](std::string frame) {
    front_.act({.peer = request.peer, .bytes = std::move(frame), .answered = true});
  };
  switch (request.kind) {
    case wire::Kind::Ping:
      return reply(
          wire::framed(published_.read([](const Picture& picture) { return picture.pong; })));
    case wire::Kind::ShowConfig: {
      wire::ConfigReply config;
      published_.read(
          [&](const Picture& picture) { return config.ParseFromString(picture.config); });
      config.set_now(clock_.seconds());
      return reply(wire::framed(config));
    }
    case wire::Kind::ListJobs:
      if (const auto ask = wire::decode<wire::ListJobs>(request.payload)) {
        return jobs(request.peer, *ask, request.caller);
      }
      break;
    case wire::Kind::ListNodes:
      if (const auto ask = wire::decode<wire::ListNodes>(request.payload)) {
        return reply(nodes(*ask));
      }
      break;
    case wire::Kind::ListPriorities:
      if (const auto ask = wire::decode<wire::ListPriorities>(request.payload)) {
        return reply(priorities(*ask, request.caller));
      }
      break;
    case wire::Kind::ListHistory:
      return history(request);
    default:
      break;
  }
  front_.act({.peer = request.peer, .close = true});  // it sent what cannot be read
}

void Reader::jobs(Peer peer, const wire::ListJobs& ask, const Caller& caller) {
  std::vector<std::uint32_t> uids(ask.users().begin(), ask.users().end());
  if (ask.only_mine()) uids.push_back(caller.uid);
  for (const std::string& name : ask.user_names()) {
    const auto uid = users_.uid_of(name);
    if (!uid) {
      wire::JobsReply refused;
      *refused.mutable_refusal() =
          wire::to_refusal(fail(Code::bad_value, fmt::format("Invalid user: {}", name)).error());
      return front_.act({.peer = peer, .bytes = wire::framed(refused), .answered = true});
    }
    uids.push_back(*uid);
  }
  begin(peer, std::make_unique<JobPages>(clock_, published_, ask, caller, std::move(uids)));
}

Result<std::vector<std::uint32_t>> Reader::uids_of(
    const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::vector<std::uint32_t> uids;
  for (const std::string& name : names) {
    if (const auto uid = users_.uid_of(name)) {
      uids.push_back(*uid);
    } else if (const auto number = text::parse_number(name, UINT32_MAX)) {
      uids.push_back(static_cast<std::uint32_t>(*number));
    } else {
      return fail(Code::bad_value, fmt::format("Invalid user: {}", name));
    }
  }
  return uids;
}

std::string Reader::priorities(const wire::ListPriorities& ask, const Caller& caller) {
  wire::PrioritiesReply reply;
  const auto uids = uids_of(ask.users());
  if (!uids) {
    *reply.mutable_refusal() = wire::to_refusal(uids.error());
    return wire::framed(reply);
  }
  wire::ListJobs choice;
  *choice.mutable_ids() = ask.ids();
  for (const std::uint32_t uid : *uids) choice.add_users(uid);
  choice.add_states("PENDING");
  choice.set_with_hidden(true);
  std::shared_ptr<const PrioritySite> site;
  job::Time at = 0;
  const auto jobs = published_.read([&](const Picture& picture) {
    site = picture.priorities;
    at = picture.priorities_at;
    return chosen_jobs(picture, choice, caller, *uids);
  });
  if (site) reply = priorities_reply(*site, jobs, ask, users_, at);
  return wire::framed(reply);
}

std::string Reader::nodes(const wire::ListNodes& ask) const {
  const std::int64_t now = clock_.seconds();
  return published_.read([&](const Picture& picture) {
    FrameWriter frame(wire::Kind::NodesReply);
    wire::NodesReply head;
    head.set_now(now);
    head.set_cluster_name(picture.cluster_name);
    head.AppendToString(&frame.bytes);
    const auto take = [&](const std::string& name) {
      const auto found = picture.nodes.find(name);
      if (found == picture.nodes.end()) return;
      append_field(frame.bytes, wire::NodesReply::kNodesFieldNumber, *found->second);
    };
    if (ask.names_size() > 0) {
      for (const std::string& name : ask.names()) take(name);
    } else {
      for (const std::string& name : picture.node_order) take(name);
    }
    if (ask.with_partitions()) {
      for (const auto& [name, bytes] : picture.partitions) {
        append_field(frame.bytes, wire::NodesReply::kPartitionsFieldNumber, *bytes);
      }
    }
    return frame.finish();
  });
}

void Reader::history(const Request& request) {
  const auto ask = wire::decode<wire::ListHistory>(request.payload);
  if (!ask) return front_.act({.peer = request.peer, .close = true});
  const auto refuse = [&](const Error& why) {
    wire::HistoryReply refused;
    *refused.mutable_refusal() = wire::to_refusal(why);
    front_.act({.peer = request.peer, .bytes = wire::framed(refused), .answered = true});
  };
  if (!history_) {
    Result<store::History> opened = store::History::open(state_directory_);
    if (!opened) return refuse(opened.error());
    history_.emplace(std::move(*opened));
  }
  const auto site = published_.read([](const Picture& picture) { return picture.history; });
  if (!site) return front_.act({.peer = request.peer, .close = true});  // nothing was published yet
  // Steps are stored when they end: those that run are taken from the picture.
  const auto running = [this](std::uint32_t job) {
    return published_.read([&](const Picture& picture) {
      std::vector<wire::StepInfo> steps;
      const auto found = picture.jobs.find(job);
      if (found == picture.jobs.end()) return steps;
      for (const StepView& view : found->second->steps) {
        wire::StepInfo step;
        if (step.ParseFromString(*view.info)) steps.push_back(std::move(step));
      }
      return steps;
    });
  };
  HistoryAnswer answer(*history_, site, users_, running);
  Result<void> begun = answer.begin(*ask, request.caller, clock_.seconds());
  if (!begun) return refuse(begun.error());
  class HistoryPages : public Pages {
   public:
    explicit HistoryPages(HistoryAnswer answer) : answer_(std::move(answer)) {}
    Page next() override {
      const wire::HistoryReply reply = answer_.next();
      return {wire::framed(reply), reply.more()};
    }

   private:
    HistoryAnswer answer_;
  };
  begin(request.peer, std::make_unique<HistoryPages>(std::move(answer)));
}

}  // namespace berth::controller
