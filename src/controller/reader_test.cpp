// Which jobs a question gets, and that joined bytes are the message.
#include "controller/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  job->info = std::make_shared<const std::string>(info.SerializeAsString());
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
    const std::string frame = jobs_frame({}, chosen_jobs(picture, ask, caller, {}), ask);
    wire::Frame read;
    EXPECT_EQ(wire::scan_frame(frame, wire::kMostBytes, read), wire::Scan::complete);
    EXPECT_EQ(read.kind, wire::Kind::JobsReply);
    const auto message = wire::decode<wire::JobsReply>(read.payload);
    EXPECT_TRUE(message);
    return message.value_or(wire::JobsReply());
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
  question.picture.private_jobs = true;
  EXPECT_THAT(question.ids(), ElementsAre(1));
  question.caller.privileged = true;
  EXPECT_THAT(question.ids(), ElementsAre(1, 2, 4, 5));
}

TEST(Reader, PendingElementsOneByOne) {
  Question question;
  question.ask.add_ids()->set_id(4);
  question.ask.set_split_arrays(true);
  const wire::JobsReply reply = question.reply();
  ASSERT_EQ(reply.jobs_size(), 3);
  EXPECT_EQ(reply.jobs(0).array_task_id(), 3U);
  EXPECT_EQ(reply.jobs(1).array_task_id(), 5U);
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
