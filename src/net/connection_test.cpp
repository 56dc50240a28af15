#include "net/connection.h"

#include <sys/socket.h>

#include "net/client.h"
#include "net/test_fixture.h"

namespace berth::net {
namespace {

class Pair : public LoopTest {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server = Connection::adopt(loop, Fd(ends[0]));
    other = Fd(ends[1]);
    set_nonblocking(other.get(), true);
  }
  void start() {
    server->start({.on_frame =
                       [this](Connection& c, const wire::Frame& frame) {
                         kinds.push_back(frame.kind);
                         if (then) then(c, frame);
                       },
                   .on_closed =
                       [this](Connection&, std::string_view why) {
                         ++closed;
                         reason = why;
                       },
                   .on_drained = [this](Connection&) { ++drained; }});
  }
  void write(std::string_view bytes) {
    ASSERT_EQ(::write(other.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  std::size_t read_all() {
    char piece[65536];
    std::size_t total = 0;
    for (ssize_t n = 0; (n = ::read(other.get(), piece, sizeof piece)) > 0;) {
      total += static_cast<std::size_t>(n);
    }
    return total;
  }

  std::shared_ptr<Connection> server;
  Fd other;
  std::vector<wire::Kind> kinds;
  std::function<void(Connection&, const wire::Frame&)> then;
  int closed = 0;
  int drained = 0;
  std::string reason;
};

const std::string kPing = wire::framed(wire::Ping{});

TEST_F(Pair, FramesThatComeByteByByteAreWholeInTheEnd) {
  start();
  wire::ListJobs question;
  question.add_names(std::string(300, 'n'));
  for (const char byte : wire::framed(question) + kPing) {
    write({&byte, 1});
    loop.run_once(std::chrono::milliseconds(0));
  }
  ASSERT_TRUE(until([&] { return kinds.size() == 2; }));
  EXPECT_EQ(kinds[0], wire::Kind::ListJobs);
  EXPECT_EQ(kinds[1], wire::Kind::Ping);
}

TEST_F(Pair, NonsenseAndTooLargeFramesCloseItWithAReason) {
  start();
  write(std::string("\x00\x00\x00\x7f", 4));
  ASSERT_TRUE(until([&] { return closed == 1; }));
  EXPECT_NE(reason.find("too large"), std::string::npos);
  EXPECT_FALSE(server->open());
  char byte = 0;
  EXPECT_EQ(::read(other.get(), &byte, 1), 0);
}

TEST_F(Pair, AnEndBetweenFramesHasNoReasonAndOneWithinHas) {
  start();
  write(kPing + kPing.substr(0, 3));
  other.reset();
  ASSERT_TRUE(until([&] { return closed == 1; }));
  EXPECT_EQ(kinds.size(), 1U);
  EXPECT_NE(reason, "");
}

TEST_F(Pair, ASlowReaderIsSeenDrainsAndIsToldOnce) {
  start();
  wire::Output piece;
  piece.set_data(std::string(100 * 1024, 'd'));
  std::size_t sent = 0;
  while (!server->congested()) {
    server->send(piece);
    sent += wire::framed(piece).size();
    ASSERT_LT(sent, 64U * 1024 * 1024);
  }
  std::size_t got = 0;
  ASSERT_TRUE(until([&] {
    got += read_all();
    return drained > 0;
  }));
  got += read_all();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(drained, 1);
  EXPECT_EQ(server->backlog(), 0U);
}

TEST_F(Pair, AReaderThatNeverReadsIsDropped) {
  start();
  server->limit_backlog(1024 * 1024);
  const std::string piece = wire::framed([] {
    wire::Output output;
    output.set_data(std::string(100 * 1024, 'd'));
    return output;
  }());
  for (int i = 0; i < 100; ++i) server->send_bytes(piece);
  ASSERT_TRUE(until([&] { return closed == 1; }));
  EXPECT_NE(reason.find("slowly"), std::string::npos);
}

TEST_F(Pair, ReleasedWithinAFrameItGivesAwayWhatFollows) {
  Connection::Released released;
  then = [&](Connection& c, const wire::Frame&) { released = c.release(); };
  start();
  wire::Input input;
  input.set_data("hello");
  write(kPing + wire::framed(input) + kPing.substr(0, 2));
  ASSERT_TRUE(until([&] { return bool(released.fd); }));
  EXPECT_EQ(kinds.size(), 1U);
  EXPECT_EQ(released.unread, wire::framed(input) + kPing.substr(0, 2));
  EXPECT_EQ(closed, 0);

  // The next owner goes on where this one stopped.
  write(kPing.substr(2));
  Client next(std::move(released.fd), std::move(released.unread));
  auto first = next.receive(std::chrono::seconds(5));
  ASSERT_TRUE(first);
  EXPECT_EQ(wire::decode<wire::Input>(first->payload)->data(), "hello");
  auto second = next.receive(std::chrono::seconds(5));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->kind, wire::Kind::Ping);
}

TEST_F(Pair, ReleasedItCanBeAdoptedAgainWithWhatWasRead) {
  server->start({.on_frame = {}, .on_closed = {}, .on_drained = {}});
  server->pause();
  auto released = server->release();
  server = Connection::adopt(loop, std::move(released.fd), kPing);
  start();
  EXPECT_TRUE(until([&] { return kinds.size() == 1; }));
}

TEST_F(Pair, PausedItKeepsFramesAndResumedItGivesThemInOrder) {
  then = [](Connection& c, const wire::Frame&) { c.pause(); };
  start();
  write(kPing + kPing + kPing);
  other.reset();  // the peer says all and goes
  for (std::size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(until([&] { return kinds.size() == i; }));
    for (int round = 0; round < 3; ++round) loop.run_once(std::chrono::milliseconds(0));
    EXPECT_EQ(kinds.size(), i);
    EXPECT_EQ(closed, 0);
    server->resume();
  }
  EXPECT_TRUE(until([&] { return closed == 1; }));
  EXPECT_EQ(reason, "");
}

TEST_F(Pair, ClosedItStillSendsWhatWaits) {
  start();
  wire::Output piece;
  piece.set_data(std::string(4 * 1024 * 1024, 'd'));
  server->send(piece);
  ASSERT_GT(server->backlog(), 0U);
  server->close();
  server.reset();
  std::size_t got = 0;
  EXPECT_TRUE(until([&] { return (got += read_all()) == wire::framed(piece).size(); }));
  EXPECT_TRUE(until([&] {
    char byte = 0;
    return ::read(other.get(), &byte, 1) == 0;
  }));
  EXPECT_EQ(closed, 0);
}

TEST_F(Pair, ACallbackMayDropTheLastReference) {
  then = [&](Connection&, const wire::Frame&) {
    server->abort();
    server.reset();
  };
  start();
  const std::weak_ptr<Connection> seen = server;
  write(kPing + kPing);
  ASSERT_TRUE(until([&] { return seen.expired(); }));
  EXPECT_EQ(kinds.size(), 1U);
  EXPECT_EQ(closed, 0);
}

TEST_F(Pair, TheKernelSaysWhoItIs) {
  ASSERT_TRUE(server->peer());
  EXPECT_EQ(server->peer()->uid, ::getuid());
  EXPECT_EQ(server->peer()->pid, ::getpid());
}

TEST_F(Pair, ADescriptorIsHandedOverWithText) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd left(ends[0]);
  Fd right(ends[1]);
  const std::string text(60000, 't');
  ASSERT_TRUE(send_fd(left.get(), other.get(), text));
  auto received = receive_fd(right.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->text, text);
  ASSERT_EQ(::write(received->fd.get(), kPing.data(), kPing.size()),
            static_cast<ssize_t>(kPing.size()));
  start();
  EXPECT_TRUE(until([&] { return kinds.size() == 1; }));
  right.reset();
  EXPECT_FALSE(send_fd(left.get(), other.get(), "x"));
}

}  // namespace
}  // namespace berth::net
