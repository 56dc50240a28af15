#include "base/result.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Message, IsIntroducedByItsSeverity) {
  EXPECT_EQ(render({Severity::error, "no"}, "srun"), "srun: error: no");
  EXPECT_EQ(render({Severity::fatal, "no"}, "sbatch"), "sbatch: fatal: no");
  EXPECT_EQ(render({Severity::warning, "hm"}, "srun"), "srun: warning: hm");
  EXPECT_EQ(render({Severity::plain, "text"}, "srun"), "srun: text");
  EXPECT_EQ(render({Severity::bare, "text"}, "srun"), "text");
}

TEST(Error, SaysWhatWentWrong) {
  const Result<int> result = fail(Code::invalid_tres, "bad gres", "write gpu:1", 255);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what(), "bad gres");
  EXPECT_EQ(result.error().hint, "write gpu:1");
  EXPECT_EQ(result.error().exit_code, 255);
  Error bare;
  bare.code = Code::nodes_busy;
  EXPECT_EQ(bare.what(), "Requested nodes are busy");
  EXPECT_EQ(code_name(Code::nodes_busy), "nodes_busy");
}

}  // namespace
}  // namespace berth
