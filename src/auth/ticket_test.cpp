#include "auth/ticket.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "auth/munge.h"
#include "auth/random.h"
#include "wire/frame.h"

namespace berth::auth {
namespace {

wire::StepSpec some_spec() {
  wire::StepSpec spec;
  spec.set_job_id(5);
  spec.set_uid(1000);
  spec.set_node("n0");
  spec.set_nonce(random_bytes(16));
  return spec;
}

TEST(Ticket, IsGoodForItsNodeOnly) {
  const std::string cluster = random_bytes(kKeyBytes);
  const wire::Ticket ticket = sign_ticket("n0", some_spec(), node_key(cluster, "n0"));
  EXPECT_TRUE(verify(ticket.spec(), ticket.mac(), node_key(cluster, "n0")));
  EXPECT_FALSE(verify(ticket.spec(), ticket.mac(), node_key(cluster, "n1")));
  EXPECT_FALSE(verify(ticket.spec(), ticket.mac(), cluster));
  EXPECT_FALSE(verify(ticket.spec(), ticket.mac(), ""));
  EXPECT_FALSE(verify(ticket.spec(), sign(ticket.spec(), ""), ""));
}

TEST(Ticket, EveryFlippedBitIsSeen) {
  const std::string key = random_bytes(kKeyBytes);
  const wire::Ticket ticket = sign_ticket("n0", some_spec(), key);
  for (std::size_t bit = 0; bit < ticket.spec().size() * 8; ++bit) {
    std::string forged = ticket.spec();
    forged[bit / 8] = static_cast<char>(forged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(verify(forged, ticket.mac(), key)) << bit;
  }
  for (std::size_t bit = 0; bit < kMacBytes * 8; ++bit) {
    std::string forged = ticket.mac();
    forged[bit / 8] = static_cast<char>(forged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(verify(ticket.spec(), forged, key)) << bit;
  }
  for (std::size_t size = 0; size < kMacBytes; ++size) {
    EXPECT_FALSE(verify(ticket.spec(), ticket.mac().substr(0, size), key)) << size;
  }
  EXPECT_FALSE(verify(ticket.spec() + '\0', ticket.mac(), key));
}

TEST(Hmac, IsTheOneOfRfc4231) {
  const std::string mac = hmac(std::string(20, '\x0b'), "Hi There");
  EXPECT_EQ(static_cast<unsigned char>(mac[0]), 0xb0);
  EXPECT_EQ(static_cast<unsigned char>(mac[31]), 0xf7);
}

class KeyFile : public ::testing::Test {
 protected:
  KeyFile() {
    char name[] = "/tmp/berth-test-XXXXXX";
    folder = ::mkdtemp(name);
    path = folder + "/cluster.key";
  }
  ~KeyFile() override { std::filesystem::remove_all(folder); }
  std::string folder;
  std::string path;
};

TEST_F(KeyFile, IsMadeOnceAndKept) {
  const auto first = load_or_create_cluster_key(path);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size(), kKeyBytes);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  const auto second = load_or_create_cluster_key(path);
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, 1U);
}

TEST_F(KeyFile, OneThatOthersCouldReadOrThatIsShortIsRefused) {
  ASSERT_TRUE(load_or_create_cluster_key(path));
  ::chmod(path.c_str(), 0640);
  EXPECT_FALSE(load_or_create_cluster_key(path));
  ::chmod(path.c_str(), 0600);
  ASSERT_EQ(::truncate(path.c_str(), 8), 0);
  EXPECT_FALSE(load_or_create_cluster_key(path));
}

TEST(Random, TokensDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_token());
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_EQ(seen.begin()->size(), 32U);
}

TEST(Hello, WithoutAGoodCredentialIsRefusedInWords) {
  wire::Hello hello;
  hello.set_protocol(wire::kProtocol);
  hello.set_credential("MUNGE:nonsense:");
  auto caller = check_hello(hello, "session");
  ASSERT_FALSE(caller);
  EXPECT_EQ(caller.error().code, Code::no_credential);
  hello.set_protocol(wire::kProtocol + 1);
  caller = check_hello(hello, "session");
  ASSERT_FALSE(caller);
  EXPECT_EQ(caller.error().code, Code::protocol);
}

TEST(Hello, IsCheckedInAThreadOfItsOwn) {
  std::mutex mutex;
  std::condition_variable changed;
  bool refused = false;
  HelloChecker checker;
  checker.check(wire::Hello{}, "session", [&](Result<Caller> who) {
    const std::lock_guard lock(mutex);
    refused = !who;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return refused; }));
}

}  // namespace
}  // namespace berth::auth
