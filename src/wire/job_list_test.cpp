#include "wire/job_list.h"

#include <gtest/gtest.h>

namespace berth::wire {
namespace {

JobInfo sample(std::uint32_t id) {
  JobInfo job;
  job.set_id(id);
  job.set_name("train");
  job.set_user("alice");
  job.set_state("PENDING");
  job.add_flags("REQUEUED");
  job.set_array_job_id(id);
  job.set_array_task_id(0);
  job.set_work_dir("/home/alice");
  job.set_gid(100);
  return job;
}

TEST(JobList, BriefAndRestAreTheWhole) {
  const JobInfo whole = sample(7);
  JobInfo rest = whole;
  const JobInfo brief = take_brief(rest);
  EXPECT_EQ(brief.work_dir(), "");
  EXPECT_EQ(brief.name(), "train");
  EXPECT_TRUE(brief.has_array_task_id());
  EXPECT_EQ(rest.name(), "");
  JobInfo joined;
  ASSERT_TRUE(joined.ParseFromString(brief.SerializeAsString() + rest.SerializeAsString()));
  EXPECT_EQ(joined.SerializeAsString(), whole.SerializeAsString());
}

TEST(JobList, SplitsWithoutReadingTheJobs) {
  JobsReply reply;
  reply.set_now(12);
  for (const std::uint32_t id : {3U, 4U}) *reply.add_jobs() = sample(id);
  reply.add_steps()->set_job_id(3);
  reply.set_cluster_name("c");
  const std::string bytes = reply.SerializeAsString();
  const auto list = split_jobs(bytes);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->head.now(), 12);
  EXPECT_EQ(list->head.cluster_name(), "c");
  EXPECT_EQ(list->head.steps_size(), 1);
  EXPECT_EQ(list->head.jobs_size(), 0);
  ASSERT_EQ(list->jobs.size(), 2U);
  JobInfo job;
  ASSERT_TRUE(job.ParseFromString(std::string(list->jobs[1])));
  EXPECT_EQ(job.id(), 4U);
}

TEST(JobList, RefusesWhatIsCutShort) {
  JobsReply reply;
  *reply.add_jobs() = sample(3);
  const std::string bytes = reply.SerializeAsString();
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_FALSE(split_jobs(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_TRUE(split_jobs(""));
}

}  // namespace
}  // namespace berth::wire
