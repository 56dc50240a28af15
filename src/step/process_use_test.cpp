// What the kernel's texts say of a process.
#include "step/process_use.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step/task_use.h"

namespace berth::step {
namespace {

constexpr KernelUnits kUnits{.ticks_per_second = 100, .page = 4096};

TEST(ProcessUse, StatIsReadBehindANameThatHoldsAnything) {
  const auto use = parse_stat(
      "4711 (a) b ) (c) S 12 4711 4711 0 -1 4194304 1000 2000 3 4 150 50 30 20 20 0 1 0 5000 "
      "123456789 2500 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 6 0 0\n",
      kUnits);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->cpu, 2'500'000U) << "its own and that of children that have ended";
  EXPECT_EQ(use->pages, 7U);
  EXPECT_EQ(use->address_space, 123456789U);
  EXPECT_EQ(use->memory, 2500U * 4096);
  EXPECT_EQ(use->processor, 6U);
  for (const char* text : {"", "4711", "4711 (sh", "4711 (sh)", "4711 (sh) S 1 2 3"}) {
    EXPECT_FALSE(parse_stat(text, kUnits)) << text;
  }
}

TEST(ProcessUse, MarksAreOfStatus) {
  ProcessUse use{
      .memory = 1000, .memory_most = 1000, .address_space = 9000, .address_space_most = 9000};
  parse_status("Name:\tsh\nVmPeak:\t     100 kB\nVmHWM:\t       0 kB\nVmRSS: 5 kB\n:\nVmPeak", use);
  EXPECT_EQ(use.address_space_most, 102400U);
  EXPECT_EQ(use.memory_most, 1000U) << "never less than now";
}

TEST(ProcessUse, BytesOfIo) {
  const auto bytes = parse_io("rchar: 817\nwchar: 31\nsyscr: 3\nread_bytes: 4096\n");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->read, 817U);
  EXPECT_EQ(bytes->written, 31U);
  EXPECT_FALSE(parse_io("rchar: 817\n"));
  EXPECT_FALSE(parse_io("rchar: x\nwchar: y\n"));
}

TEST(ProcessUse, FrequenciesOfCpuinfo) {
  const auto clocks = parse_cpuinfo(
      "processor\t: 0\ncpu MHz\t\t: 2596.123\n\nprocessor\t: 7\nmodel name\t: x\ncpu MHz\t\t: "
      "800\n");
  EXPECT_EQ(clocks, (std::map<unsigned, std::uint64_t>{{0, 2'596'000}, {7, 800'000}}));
}

/// A process that has written a known number of bytes and waits, with a child that waits too.
class Waiting {
 public:
  Waiting() {
    int pair[2] = {-1, -1};
    EXPECT_EQ(::pipe(pair), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const pid_t child = ::fork();
      if (child != 0) (void)!::write(pair[1], &child, sizeof child);
      for (;;) ::pause();
    }
    EXPECT_EQ(::read(pair[0], &child_, sizeof child_), static_cast<ssize_t>(sizeof child_));
    ::close(pair[0]);
    ::close(pair[1]);
  }
  ~Waiting() {
    ::kill(child_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  pid_t pid_ = 0;
  pid_t child_ = 0;
};

TEST(TaskUse, AFamilyIsFoundAndAddedUp) {
  const Waiting one;
  const pid_t leaders[] = {one.pid_, 0};
  const auto found = families(leaders);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], (std::vector<pid_t>{one.pid_, one.child_}));
  EXPECT_TRUE(found[1].empty());
  CpuClocks clocks;
  const KernelUnits units = KernelUnits::of_this_machine();
  const TaskUse both = use_of_all(found[0], units, clocks);
  const TaskUse child = use_of_all({&one.child_, 1}, units, clocks);
  EXPECT_GT(child.memory, 0U);
  EXPECT_GT(both.memory, child.memory);
  EXPECT_GE(both.memory_most, both.memory);
  EXPECT_GT(both.address_space, child.address_space);
  EXPECT_TRUE(both.bytes_known);
  EXPECT_EQ(both.bytes.written, sizeof(pid_t));
}

TEST(TaskUse, NothingIsNotedOfWhatIsNotKnown) {
  wire::StepFigures figures;
  note_task(figures, 3, {.cpu = 5, .memory = 10, .memory_most = 20}, false);
  EXPECT_EQ(figures.cpu().most(), 5U);
  EXPECT_EQ(figures.memory().total(), 10U);
  EXPECT_EQ(figures.memory().most(), 20U);
  EXPECT_EQ(figures.memory().most_rank(), 3U);
  EXPECT_FALSE(figures.has_read());
  EXPECT_FALSE(figures.has_address_space());
  EXPECT_FALSE(figures.has_cpu_khz());
}

}  // namespace
}  // namespace berth::step
