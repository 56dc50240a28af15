// Which jobs a question gets, and that joined bytes are the message.
#include "controller/reader.h"

#include "base/cluster_clock.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace berth::controller {
namespace {

std::shared_ptr<JobView> view(job::JobId id, std::uint32_t uid, const std::string& state) {
  auto job = std::make_shared<JobView>();
  job->id = job->array_id = id;
  job->uid = uid;
  job->over = state == "COMPLETED";
  job->states = {state};
  wire::JobInfo info;
  info.set_id(id);
  info.set_state(state);
  std::string bytes = info.SerializeAsString();
  job->public_bytes = bytes.size();
  wire::JobInfo secret;
  secret.set_command("typed");
  secret.AppendToString(&bytes);
  job->info = std::make_shared<const std::string>(std::move(bytes));
  wire::StepInfo step;
  step.set_job_id(id);
  std::string text = step.SerializeAsString();
  const std::size_t size = text.size();
  step.Clear();
  step.set_submit_line("typed");
  step.AppendToString(&text);
  job->steps.push_back({std::make_shared<const std::string>(std::move(text)), size});
  return job;
}

class Question {
 public:
  Question() {
    put(view(1, 100, "RUNNING"));
    put(view(2, 200, "PENDING"));
    put(view(3, 100, "COMPLETED"));
    auto rest = view(4, 200, "PENDING");
    Bits bits;
    bits.set(3);
    bits.set(5);
    rest->rest = std::make_shared<const Bits>(bits);
    put(rest);
    auto element = view(5, 200, "RUNNING");
    element->array_id = 4;
    element->array_task = 1;
    put(element);
  }
  void put(const std::shared_ptr<JobView>& job) { picture.jobs[job->id] = job; }

  std::vector<job::JobId> ids(std::vector<std::uint32_t> uids = {}) {
    std::vector<job::JobId> out;
    for (const auto& job : chosen_jobs(picture, ask, caller, uids)) out.push_back(job->id);
    return out;
  }
  wire::JobsReply reply() {
    wire::JobsReply all;
    for (const wire::JobsReply& page : pages(JobPages::kPageBytes)) all.MergeFrom(page);
    return all;
  }
  /// `between` is done to the picture between two pages.
  std::vector<wire::JobsReply> pages(std::size_t page_bytes,
                                     const std::function<void(Picture&)>& between = {}) {
    Published published;
    published.change([&](Picture& all) { all = picture; });
    const MachineTime machine;
    const ClusterClock clock(machine);
    JobPages pages(clock, published, ask, caller, {}, page_bytes);
    std::vector<wire::JobsReply> out;
    for (bool more = true; more;) {
      const Pages::Page page = pages.next();
      wire::Frame read;
      EXPECT_EQ(wire::scan_frame(page.frame, wire::kMostBytes, read), wire::Scan::complete);
      EXPECT_EQ(read.kind, wire::Kind::JobsReply);
      EXPECT_LT(page.frame.size(), page_bytes + 200);
      const auto message = wire::decode<wire::JobsReply>(read.payload);
      EXPECT_TRUE(message);
      out.push_back(message.value_or(wire::JobsReply()));
      EXPECT_EQ(out.back().more(), page.more);
      more = page.more && out.size() < 100000;
      if (between) published.change(between);
    }
    return out;
  }

  Picture picture;
  wire::ListJobs ask;
  Caller caller{100, 100, false};
};

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Reader, ShowsWhatHasNotEnded) {
  Question question;
  EXPECT_THAT(question.ids(), ElementsAre(1, 2, 4, 5));
  question.ask.set_with_ended(true);
  EXPECT_THAT(question.ids(), ElementsAre(1, 2, 3, 4, 5));
}

TEST(Reader, ChoosesByUserStateAndName) {
  Question question;
  question.ask.set_only_mine(true);
  EXPECT_THAT(question.ids({100}), ElementsAre(1));
  question.ask.clear_only_mine();
  question.ask.add_states("pending");
  EXPECT_THAT(question.ids(), ElementsAre(2, 4));
  question.ask.clear_states();
  question.ask.add_ids()->set_id(4);
  EXPECT_THAT(question.ids(), ElementsAre(4, 5));
  question.ask.mutable_ids(0)->set_array_task(5);
  EXPECT_THAT(question.ids(), ElementsAre(4));
  question.ask.mutable_ids(0)->set_array_task(9);
  EXPECT_THAT(question.ids(), IsEmpty());
}

TEST(Reader, PrivateJobsAreTheirOwners) {
  Question question;
  question.picture.disclosure.jobs = false;
  EXPECT_THAT(question.ids(), ElementsAre(1));
  question.caller.privileged = true;
  EXPECT_THAT(question.ids(), ElementsAre(1, 2, 4, 5));
}

TEST(Reader, WhatWasTypedIsItsOwners) {
  Question question;
  question.ask.set_with_steps(true);
  const auto shown = [&](bool split) {
    question.ask.set_split_arrays(split);
    std::string out;
    const wire::JobsReply reply = question.reply();
    for (const wire::JobInfo& job : reply.jobs()) out += job.command().empty() ? '-' : '+';
    for (const wire::StepInfo& step : reply.steps()) out += step.submit_line().empty() ? '-' : '+';
    return out;
  };
  EXPECT_EQ(shown(false), "+---+---");
  EXPECT_EQ(shown(true), "+----+---") << "elements of an array";
  question.caller.uid = 200;
  EXPECT_EQ(shown(true), "-++++-+++");
  question.caller = {0, 0, true};
  EXPECT_EQ(shown(true), "+++++++++");
  question.caller = {300, 300, false};
  EXPECT_EQ(shown(false), "--------");
  question.picture.disclosure.command_lines = true;
  EXPECT_EQ(shown(false), "++++++++");
}

TEST(Reader, PendingElementsOneByOne) {
  Question question;
  question.ask.add_ids()->set_id(4);
  question.ask.set_split_arrays(true);
  const wire::JobsReply reply = question.reply();
  ASSERT_EQ(reply.jobs_size(), 3);
  EXPECT_EQ(reply.jobs(0).array_task_id(), 3U);
  EXPECT_EQ(reply.jobs(1).array_task_id(), 5U);
  question.ask.mutable_ids(0)->set_array_task(5);
  ASSERT_EQ(question.reply().jobs_size(), 1);
  EXPECT_EQ(question.reply().jobs(0).array_task_id(), 5U);
}

/// Whatever the size of a page, each job and each element is in one of them.
TEST(Reader, LongAnswersComeInPages) {
  Question question;
  Bits bits;
  for (std::size_t i = 0; i < 5000; i += 2) bits.set(i);
  auto large = view(70, 200, "PENDING");
  large->rest = std::make_shared<const Bits>(bits);
  question.put(large);
  for (job::JobId id = 100; id < 1000; ++id) question.put(view(id, 200, "PENDING"));
  question.ask.set_split_arrays(true);
  std::vector<std::string> whole;
  const auto names = [](const wire::JobsReply& reply, std::vector<std::string>& out) {
    for (const wire::JobInfo& job : reply.jobs()) {
      out.push_back(fmt::format("{}_{}", job.id(), job.array_task_id()));
    }
  };
  names(question.reply(), whole);
  EXPECT_EQ(whole.size(), 2500U + 900U + 5U);
  for (const std::size_t page_bytes : {1U, 100U, 1000U, 4096U}) {
    std::vector<std::string> seen;
    const auto pages = question.pages(page_bytes);
    EXPECT_GT(pages.size(), 5U);
    for (const wire::JobsReply& page : pages) names(page, seen);
    EXPECT_EQ(seen, whole) << page_bytes;
  }
}

TEST(Reader, JobsMayGoAndComeBetweenTwoPages) {
  Question question;
  for (job::JobId id = 100; id < 400; ++id) question.put(view(id, 200, "PENDING"));
  question.ask.add_states("pending");
  job::JobId gone = 100;
  job::JobId come = 1000;
  std::vector<job::JobId> seen;
  const auto pages = question.pages(64, [&](Picture& picture) {
    picture.jobs.erase(gone++);
    if (come < 1020) {
      const auto job = view(come, 200, "PENDING");
      picture.jobs[come++] = job;
    }
  });
  for (const wire::JobsReply& page : pages) {
    for (const wire::JobInfo& job : page.jobs()) seen.push_back(job.id());
  }
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
  EXPECT_EQ(seen.back(), 1019U);
  EXPECT_THAT(seen, testing::Contains(399U));
}

TEST(Reader, DetailIsAPartOfTheSameMessage) {
  Question question;
  wire::JobInfo detail;
  detail.add_detail()->set_node("n1");
  auto job = view(1, 100, "RUNNING");
  job->detail = std::make_shared<const std::string>(detail.SerializeAsString());
  question.put(job);
  question.ask.add_ids()->set_id(1);
  EXPECT_EQ(question.reply().jobs(0).detail_size(), 0);
  question.ask.set_with_detail(true);
  const wire::JobsReply reply = question.reply();
  EXPECT_EQ(reply.jobs(0).detail(0).node(), "n1");
  EXPECT_EQ(reply.jobs(0).state(), "RUNNING");
}

TEST(Reader, ANewerPriorityCounts) {
  Question question;
  question.picture.jobs.at(2)->priority = 77;
  question.picture.jobs.at(4)->priority = 78;
  question.ask.add_states("pending");
  question.ask.set_split_arrays(true);
  const wire::JobsReply reply = question.reply();
  ASSERT_EQ(reply.jobs_size(), 3);
  EXPECT_EQ(reply.jobs(0).priority(), 77U);
  EXPECT_EQ(reply.jobs(0).state(), "PENDING");
  EXPECT_EQ(reply.jobs(2).priority(), 78U);
}

}  // namespace
}  // namespace berth::controller
