// What a spawned step is asked for by, and what becomes of the request on the way to its tasks.
#include "command/launch_spawn.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

namespace berth::command {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

wire::SpawnProgram program(std::uint32_t tasks, std::initializer_list<const char*> argv,
                           std::initializer_list<std::pair<const char*, const char*>> info = {}) {
  wire::SpawnProgram out;
  out.set_tasks(tasks);
  for (const char* word : argv) out.add_argv(word);
  for (const auto& [name, value] : info) {
    wire::Variable* pair = out.add_info();
    pair->set_name(name);
    pair->set_value(value);
  }
  return out;
}

wire::SpawnTasks asked(std::initializer_list<wire::SpawnProgram> programs) {
  wire::SpawnTasks out;
  for (const wire::SpawnProgram& one : programs) *out.add_programs() = one;
  return out;
}

TEST(Spawn, WordsOfTheOtherSrun) {
  const SpawnTemplate fixed{.options = {"--jobid=7"}, .environment = {}};
  EXPECT_THAT(*spawn_words(fixed, asked({program(3, {"./a", "-n", "x y"})}), 2),
              ElementsAre("--jobid=7", "--ntasks=3", "--nodes=2", "--", "./a", "-n", "x y"));
  EXPECT_THAT(*spawn_words(fixed, asked({program(1, {"a"}), program(2, {"b"})}), 8),
              ElementsAre("--jobid=7", "--ntasks=3", "--nodes=3", "--", "a"));
  EXPECT_THAT(
      *spawn_words(fixed,
                   asked({program(4, {"a"}, {{"host", "n[1-2]"}, {"wdir", "/w"}, {"x", "y"}})}), 8),
      ElementsAre("--jobid=7", "--ntasks=4", "--nodelist=n[1-2]", "--nodes=2", "--chdir=/w", "--",
                  "a"));
}

TEST(Spawn, WhatCannotBeHad) {
  const SpawnTemplate fixed;
  EXPECT_FALSE(spawn_words(fixed, {}, 1));
  EXPECT_FALSE(spawn_words(fixed, asked({program(0, {"a"})}), 1));
  EXPECT_FALSE(spawn_words(fixed, asked({program(1, {})}), 1));
  const auto two = spawn_words(
      fixed, asked({program(1, {"a"}, {{"host", "n1"}}), program(1, {"b"}, {{"host", "n2"}})}), 2);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().what(), HasSubstr("different hosts"));
}

TEST(Spawn, RanksAreCountedOverAllPrograms) {
  wire::Program one;
  put_spawned(one, asked({program(2, {"a"})}));
  EXPECT_TRUE(one.spawned());
  EXPECT_EQ(one.multi_prog_size(), 0);
  wire::Program two;
  put_spawned(two, asked({program(2, {"a"}), program(1, {"b", "c"}, {{"wd", "/w"}})}));
  ASSERT_EQ(two.multi_prog_size(), 3);
  EXPECT_EQ(two.multi_prog(1).rank(), 1U);
  EXPECT_EQ(two.multi_prog(1).appnum(), 0U);
  EXPECT_EQ(two.multi_prog(2).appnum(), 1U);
  EXPECT_EQ(two.multi_prog(2).argv(1), "c");
  EXPECT_EQ(two.multi_prog(2).directory(), "/w");
}

TEST(Spawn, TheOrderIsReadOnceAndItsVariableIsGone) {
  request::Environment none;
  EXPECT_FALSE(*take_spawn_order(none));
  const int file = ::memfd_create("order", 0);
  const std::string bytes = asked({program(2, {"a"})}).SerializeAsString();
  ASSERT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  const int answer = ::dup(file);
  request::Environment given{{"BERTH_SPAWN", std::to_string(file) + "," + std::to_string(answer)}};
  const auto order = take_spawn_order(given);
  ASSERT_TRUE(order && *order);
  EXPECT_EQ((*order)->tasks.programs(0).tasks(), 2U);
  EXPECT_TRUE(given.empty());
  for (const char* wrong : {"", "1", "1,2", "x,y", "999999,999998", ","}) {
    request::Environment bad{{"BERTH_SPAWN", wrong}};
    EXPECT_FALSE(take_spawn_order(bad)) << wrong;
  }
}

}  // namespace
}  // namespace berth::command
