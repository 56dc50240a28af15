// What devices a step asks for, of its own and of its job.
#include "place/step_gres.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "place/step_test_fixture.h"

namespace berth::place {
namespace {

std::string wanted_text(const GresRequest& wanted) {
  std::string out;
  const std::pair<const char*, const std::vector<request::GresAsk>*> kinds[] = {
      {"node", &wanted.per_node},
      {"step", &wanted.per_step},
      {"socket", &wanted.per_socket},
      {"task", &wanted.per_task}};
  for (const auto& [per, asks] : kinds) {
    for (const request::GresAsk& ask : *asks) {
      out += fmt::format("{}{}:{}/{}", out.empty() ? "" : " ", ask.name, ask.count, per);
    }
  }
  return out;
}

TEST(StepGresAsked, APartOfAGpusMemoryIsNeverDropped) {
  const request::Environment inside = {{"SLURM_JOB_ID", "7"}};
  const request::Environment inherited = {{"SLURM_JOB_ID", "7"}, {"SLURM_GPUS_PER_NODE", "2"}};
  const struct {
    const char* job;
    const char* srun;
    const request::Environment& environment;
    const char* wanted;
  } rows[] = {
      {"--gpu-mem=8G", "", inside, "gpumem:8192/node"},
      {"--gpu-mem=8G", "--gpu-mem=2G", inside, "gpumem:2048/node"},
      {"--gpu-mem=8G", "--gres=none", inside, ""},
      {"--gpu-mem=8G", "--gres=none --gpu-mem=2G", inside, "gpumem:2048/node"},
      {"--gpu-mem=8G", "--gpu-mem=2G --gres=none", inside, "gpumem:2048/node"},
      {"--gpus=1", "--gres=none", inside, ""},
      {"--gpus=1", "--gres=none --gpus=1", inside, "gpu:1/step"},
      {"--gpus=2", "--gpus=1", inherited, "gpu:1/step"},
      {"--gpus=2", "--gpus=1 --gpu-mem=2G", inherited, "gpumem:2048/node gpu:1/step"},
      {"--gpus=2", "--gpus=1 --gres=shard:1 --gpu-mem=2G", inherited,
       "shard:1/node gpumem:2048/node gpu:1/step"},
  };
  for (const auto& row : rows) {
    JobFacts job;
    job.request = corpus::parsed(request::Command::sbatch, row.job);
    const request::Request srun = corpus::parsed(request::Command::srun, row.srun, row.environment);
    EXPECT_EQ(wanted_text(requested_gres(job, srun)), row.wanted)
        << row.job << " srun " << row.srun;
  }
}

}  // namespace
}  // namespace berth::place
