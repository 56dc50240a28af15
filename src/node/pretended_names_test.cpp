// Addresses are all different and of this machine; the file keeps what the machine has.
#include "node/pretended_names.h"

#include <gmock/gmock.h>

#include <set>

namespace berth::node {
namespace {

TEST(PretendedNames, AddressesGoOnAndDoNotMeet) {
  EXPECT_EQ(pretended_address(0), "127.77.0.1");
  EXPECT_EQ(pretended_address(253), "127.77.0.254");
  EXPECT_EQ(pretended_address(254), "127.77.1.1");
  EXPECT_EQ(pretended_address(65024), "127.78.0.1");
  std::set<std::string> all;
  for (std::size_t i = 0; i < 70000; ++i) all.insert(pretended_address(i));
  EXPECT_EQ(all.size(), 70000U);
}

TEST(PretendedNames, TheMachinesOwnNamesStay) {
  EXPECT_EQ(hosts_text("127.0.0.1 localhost", {"n1", "n2"}),
            "127.0.0.1 localhost\n# nodes that berth pretends\n127.77.0.1 n1\n127.77.0.2 n2\n");
  EXPECT_EQ(hosts_text("", {}), "# nodes that berth pretends\n");
}

}  // namespace
}  // namespace berth::node
