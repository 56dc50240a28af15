// The table of whose fault a launch failure is.
#include "step/launch_failure.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace berth::step {
namespace {

TEST(LaunchFailure, WhoseFaultItIs) {
  struct Row {
    LaunchPart part;
    int why;
    bool nodes;
  };
  for (const Row& row : {
           Row{LaunchPart::spool, ENOSPC, true},
           {LaunchPart::spool, EROFS, true},
           {LaunchPart::supervisor, ENOENT, true},
           {LaunchPart::process, EAGAIN, true},
           {LaunchPart::process, ENOMEM, true},
           {LaunchPart::descriptor, EMFILE, true},
           {LaunchPart::fence, ENOSPC, true},
           {LaunchPart::identity, EPERM, true},
           // Whoever has used up his quota in the file system of the spool must not drain the node.
           {LaunchPart::script_owner, EDQUOT, false},
           {LaunchPart::script_owner, EPERM, true},
           // What a user names, on whatever file system it is.
           {LaunchPart::directory, ENOENT, false},
           {LaunchPart::directory, ESTALE, false},
           {LaunchPart::directory, ENOSPC, false},
           {LaunchPart::output, ENOSPC, false},
           {LaunchPart::output, EDQUOT, false},
           {LaunchPart::input, EIO, false},
           {LaunchPart::terminal, ENOSPC, false},
           {LaunchPart::other_user, EPERM, false},
       }) {
    EXPECT_EQ(is_the_nodes_fault(row.part, row.why), row.nodes)
        << static_cast<int>(row.part) << ' ' << row.why;
    const Error error = launch_failure(row.part, "it", row.why).error();
    EXPECT_EQ(error.code, row.nodes ? Code::node_unfit : Code::io);
  }
}

TEST(LaunchFailure, WhatRunsAlreadyMakesItTheSteps) {
  const Error error = launch_failure(LaunchPart::descriptor, "pipe", EMFILE).error();
  EXPECT_EQ(once_begun(error).code, Code::io);
  EXPECT_EQ(once_begun(error).what(), "pipe: Too many open files");
}

TEST(LaunchFailure, OnlyTheNodesFaultsAreToldAsTwoFailures) {
  const Error nodes = failed_twice(launch_failure(LaunchPart::spool, "/spool", ENOSPC).error());
  EXPECT_EQ(nodes.what(), "launch failed twice: /spool: No space left on device");
  EXPECT_EQ(nodes.code, Code::node_unfit);
  const Error jobs = failed_twice(launch_failure(LaunchPart::directory, "/gone", ENOENT).error());
  EXPECT_EQ(jobs.what(), "/gone: No such file or directory");
}

}  // namespace
}  // namespace berth::step
