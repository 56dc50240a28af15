// sstat: which steps are asked for, and what is printed of them.
#include "command/sstat_view.h"

#include <gtest/gtest.h>

#include "wire/job_names.h"
#include "wire/step_figures.h"
#include "wire/step_ids.h"

namespace berth::command {
namespace {

wire::MeasuredStep step(std::uint32_t id, const std::string& nodes, std::uint32_t tasks) {
  wire::MeasuredStep out;
  out.mutable_step()->set_job_id(12);
  out.mutable_step()->set_step_id(id);
  out.mutable_step()->set_nodes(nodes);
  out.mutable_step()->set_tasks(tasks);
  return out;
}

/// 12.0 on two nodes, with the processes of each.
wire::MeasuredStep two_nodes() {
  wire::MeasuredStep out = step(0, "n[1-2]", 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::string name = rank == 0 ? "n1" : "n2";
    wire::StepFigures figures;
    wire::note(*figures.mutable_memory(), rank, 1572 * 1024 * (rank + 1));
    wire::note(*figures.mutable_cpu(), rank, 61'000'000 * (rank + 1));
    wire::note(*figures.mutable_written(), rank, 1536);
    wire::add_figures(*out.mutable_figures(), figures, name);
    wire::NodePids& pids = *out.add_pids();
    pids.set_node(name);
    pids.add_pids(100 * (rank + 1));
    pids.add_pids(100 * (rank + 1) + 1);
  }
  return out;
}

wire::StepsMeasured reply(std::vector<wire::MeasuredStep> steps) {
  wire::StepsMeasured out;
  wire::AskedSteps& asked = *out.add_asked();
  for (wire::MeasuredStep& one : steps) *asked.add_steps() = std::move(one);
  return out;
}

/// The table; the messages and hints behind it.
std::string sstat(const std::vector<std::string>& words, const wire::StepsMeasured& told) {
  const auto options = parse_sstat(words);
  if (!options) return "refused: " + render(options.error().messages.front(), "sstat");
  const auto columns = parse_sstat_format(options->fields);
  if (!columns) return "refused: " + render(columns.error().messages.front(), "sstat");
  SstatText text = sstat_text(*options, *columns, told);
  for (const Message& message : text.messages) text.table += render(message, "sstat") + '\n';
  for (const std::string& hint : text.hints) text.table += "berth: " + hint + '\n';
  return text.table;
}

TEST(Sstat, TablesAsSlurmPrintsThem) {
  const wire::StepsMeasured told = reply({two_nodes()});
  EXPECT_EQ(sstat({"-j", "12", "-o", "jobid,maxrss,maxrssnode,maxrsstask,averss,ntasks"}, told),
            "JobID            MaxRSS MaxRSSNode MaxRSSTask     AveRSS   NTasks \n"
            "------------ ---------- ---------- ---------- ---------- -------- \n"
            "12.0              3144K         n2          1      2358K        2 \n");
  EXPECT_EQ(sstat({"-pj12", "--format=AveCPU,MinCPU,MinCPUNode,MaxDiskWrite,ReqCPUFreqGov"}, told),
            "AveCPU|MinCPU|MinCPUNode|MaxDiskWrite|ReqCPUFreqGov|\n"
            "00:01:31|00:01:01|n1|1.50K|Unknown|\n");
  EXPECT_EQ(sstat({"-nP", "--noconvert", "-o", "JobID%3,MaxRSS", "12"}, told), "12.0|3219456\n");
  EXPECT_EQ(sstat({"-o", "JobID%3,NTasks%-4", "12"}, told), "Job NTas \n--- ---- \n12+ 2    \n");
  EXPECT_EQ(sstat({"-nP", "-o", "MaxVMSize,AveCPUFreq,ConsumedEnergy", "12"}, told), "||0\n")
      << "what was not measured";
}

TEST(Sstat, ProcessesNodeByNodeOrTogether) {
  const wire::StepsMeasured told = reply({two_nodes()});
  EXPECT_EQ(sstat({"-i", "-j", "12"}, told),
            "JobID                    Nodelist                 Pids \n"
            "------------ -------------------- -------------------- \n"
            "12.0                           n1              100,101 \n"
            "12.0                           n2              200,201 \n");
  EXPECT_EQ(sstat({"-nP", "-o", "nodelist,pids", "-j", "12"}, told), "n[1-2]|100,101,200,201\n");
  EXPECT_EQ(sstat({"-nP", "-o", "ntasks", "-i", "-j", "12"}, told),
            "2|12.0|n1|100,101\n2|12.0|n2|200,201\n");
}

TEST(Sstat, TheDefaultHasTheColumnsOfSlurm) {
  const std::string text = sstat({"-P", "-j", "12"}, reply({two_nodes()}));
  EXPECT_TRUE(text.starts_with("JobID|MaxVMSize|MaxVMSizeNode|MaxVMSizeTask|AveVMSize|MaxRSS|"))
      << text;
  EXPECT_NE(text.find("|TRESUsageOutMinTask|TRESUsageOutTot\n"), text.npos) << text;
  const std::string names = field_names(sstat_fields());
  EXPECT_TRUE(names.starts_with(
      "AveCPU              AveCPUFreq          AveDiskRead         AveDiskWrite       \n"))
      << names;
  EXPECT_TRUE(names.ends_with("TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot    \n"))
      << names;
}

TEST(Sstat, WhatCannotBeShownIsSaid) {
  wire::StepsMeasured told;
  told.add_asked()->set_fault("no job");
  told.add_asked()->set_fault("no steps");
  told.add_asked()->set_fault("no step");
  told.add_asked()->set_only_special(true);
  wire::MeasuredStep denied = step(wire::kBatchStep, "n1", 1);
  denied.set_denied(true);
  *told.add_asked()->add_steps() = denied;
  wire::MeasuredStep partly = two_nodes();
  partly.add_missing("n2");
  *told.add_asked()->add_steps() = partly;
  EXPECT_EQ(sstat({"-n", "-o", "jobid", "-j", "9,8,7.extern,6,12.batch,12"}, told),
            "12.0         \n"
            "sstat: error: couldn't get steps for job 9\n"
            "sstat: error: No steps running for job 8\n"
            "sstat: error: StepId=7.extern not found running.\n"
            "sstat: error: problem getting step_layout for StepId=12.batch: Invalid user id\n"
            "berth: job 6 runs no numbered step: sstat -j 6.batch shows its script, sstat -a -j 6 "
            "all\n"
            "berth: n2 has not answered: the figures of step 12.0 are without it\n");
  EXPECT_EQ(sstat({"-vn", "-o", "jobid", "-j", "12"}, reply({two_nodes()})),
            "12.0         \nsstat: step 12.0: 2 tasks on n[1-2]\n");
}

TEST(Sstat, WhichStepsAreAskedFor) {
  const auto asked = [](const std::vector<std::string>& words) {
    const auto options = parse_sstat(words);
    if (!options) return render(options.error().messages.front(), "sstat");
    const wire::MeasureSteps ask = sstat_request(*options, *parse_sstat_format(options->fields));
    std::string text;
    for (const wire::JobName& name : ask.steps()) text += wire::shown(name) + ' ';
    return text + (ask.all_steps() ? "all " : "") + (ask.with_pids() ? "pids" : "");
  };
  EXPECT_EQ(asked({"-j", "12.0,13.batch", "-j", "14_3", "15+1.2"}), "12.0 13.batch 14_3 15+1.2 ");
  EXPECT_EQ(asked({"-a", "-i", "--jobs=,12,"}), "12 all pids");
  EXPECT_EQ(asked({"-o", "pid", "12.extern"}), "12.extern pids");
  EXPECT_EQ(asked({}), "sstat: error: You didn't give me any jobs to stat.");
  EXPECT_EQ(asked({"-j", ""}), "sstat: error: You didn't give me any jobs to stat.");
  EXPECT_EQ(asked({"-j", "x"}), "sstat: fatal: Bad job/step specified: x");
  EXPECT_EQ(asked({"-j", "12_[1-3]"}), "sstat: fatal: Bad job/step specified: 12_[1-3]");
  EXPECT_EQ(asked({"-j", "12.foo"}), "sstat: fatal: Bad step specified: 12");
  EXPECT_EQ(asked({"-j", "12."}), "sstat: fatal: Bad step specified: 12");
  EXPECT_EQ(sstat({"-o", "JobID,Foo", "12"}, {}),
            "refused: sstat: error: Invalid field requested: \"Foo\"");
  EXPECT_TRUE(
      sstat({"--delimiter=,", "12"}, {}).starts_with("refused: sstat: unrecognized option"));
}

}  // namespace
}  // namespace berth::command
