// Frames: what is sent is read back, and nothing else is taken for a frame.
#include "wire/frame.h"

#include <gtest/gtest.h>

#include "wire/refusal.h"

namespace berth::wire {
namespace {

ListJobs some_question() {
  ListJobs question;
  question.add_partitions("gpu");
  question.add_states("RUNNING");
  question.set_with_steps(true);
  return question;
}

TEST(Frame, IsReadBackAndSaysHowLongItIs) {
  const std::string bytes = framed(some_question()) + framed(Ping{});
  Frame frame;
  ASSERT_EQ(scan_frame(bytes, kMostBytes, frame), Scan::complete);
  EXPECT_EQ(frame.kind, Kind::ListJobs);
  const auto message = decode<ListJobs>(frame.payload);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->partitions(0), "gpu");
  ASSERT_EQ(scan_frame(std::string_view(bytes).substr(frame.size), kMostBytes, frame),
            Scan::complete);
  EXPECT_EQ(frame.kind, Kind::Ping);
  EXPECT_EQ(frame.payload, "");
}

TEST(Frame, EveryBeginningIsIncomplete) {
  const std::string bytes = framed(some_question());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Frame frame;
    EXPECT_EQ(scan_frame(std::string_view(bytes).substr(0, size), kMostBytes, frame),
              Scan::incomplete)
        << size;
  }
}

TEST(Frame, EveryLengthUpToTheLimitAndNoneBeyond) {
  const std::size_t most = 40;
  for (std::size_t length = 0; length < 64; ++length) {
    std::string bytes(4 + length, '\0');
    bytes[0] = static_cast<char>(length);
    if (length >= 2) bytes[4] = static_cast<char>(Kind::Ping);
    Frame frame;
    const Scan expected = length < 2          ? Scan::malformed
                          : length + 4 > most ? Scan::too_large
                                              : Scan::complete;
    EXPECT_EQ(scan_frame(bytes, most, frame), expected) << length;
  }
}

TEST(Frame, ALengthBeyondTheLimitIsRefusedBeforeItsBytesCome) {
  const std::string bytes = "\xff\xff\xff\xff";
  Frame frame;
  EXPECT_EQ(scan_frame(bytes, kMostBytes, frame), Scan::too_large);
}

TEST(Frame, OnlyNumbersOfMessagesAreKinds) {
  std::size_t known = 0;
  for (std::uint32_t number = 0; number <= 0xffff; ++number) {
    const char bytes[] = {
        2, 0, 0, 0, static_cast<char>(number & 0xff), static_cast<char>(number >> 8)};
    Frame frame;
    const Scan scan = scan_frame({bytes, sizeof bytes}, kMostBytes, frame);
    const bool named = name_of(static_cast<Kind>(number)) != "unknown";
    EXPECT_EQ(scan, named ? Scan::complete : Scan::malformed) << number;
    known += named ? 1 : 0;
  }
  std::size_t in_table = 0;
#define BERTH_MESSAGE(number, type) ++in_table;
#include "wire/messages.def"
#undef BERTH_MESSAGE
  EXPECT_EQ(known, in_table);
}

TEST(Frame, BytesThatAreNoMessageAreNotDecoded) {
  EXPECT_FALSE(decode<ListJobs>("\x0a\x7f"));  // a string that would end beyond the payload
}

TEST(Refusal, ComesBackAsTheErrorItWas) {
  Error error;
  error.code = Code::nodes_busy;
  error.messages = {{Severity::error, "first"}, {Severity::bare, "second"}};
  error.hint = "wait";
  error.exit_code = 3;
  const Error back = from_refusal(to_refusal(error));
  EXPECT_EQ(back.code, error.code);
  EXPECT_EQ(back.messages, error.messages);
  EXPECT_EQ(back.hint, error.hint);
  EXPECT_EQ(back.exit_code, 3);
}

TEST(Refusal, OfANewerPeerIsStillAnError) {
  Refusal refusal;
  refusal.set_code("something_new");
  refusal.add_lines()->set_severity(99);
  const Error error = from_refusal(refusal);
  EXPECT_EQ(error.code, Code::bad_value);
  EXPECT_EQ(error.messages.at(0).severity, Severity::fatal);
}

}  // namespace
}  // namespace berth::wire
