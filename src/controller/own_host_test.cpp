// Which machine may be the controller of which slurm.conf.
#include "controller/own_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace berth::controller {
namespace {

using testing::AllOf;
using testing::HasSubstr;

OwnHost host(std::string name = "h0") {
  const std::map<std::string, std::string> known = {
      {"h0", "10.0.0.10"},   {"h1", "10.0.0.11"},        {"alias", "10.0.0.10"},
      {"me", "127.0.1.1"},   {"10.0.0.10", "10.0.0.10"}, {"10.0.0.11", "10.0.0.11"},
      {"fd00::1", "fd00::1"}};
  return {.name = std::move(name),
          .addresses = {"127.0.0.1", "10.0.0.10", "fd00::1"},
          .look_up = [known](const std::string& asked) -> std::optional<std::string> {
            const auto found = known.find(asked);
            return found == known.end() ? std::nullopt : std::optional(found->second);
          }};
}

struct Case {
  std::string name;
  std::string address;  // "" = the name
  std::string own = "h0";
  bool serves = true;
};

class ControllerHost : public testing::TestWithParam<Case> {};

TEST_P(ControllerHost, ServesWhereSlurmConfSays) {
  const Case& c = GetParam();
  const auto done =
      check_controller_host({{c.name, c.address.empty() ? c.name : c.address}}, host(c.own));
  EXPECT_EQ(done.has_value(), c.serves) << c.name << " " << c.address << " on " << c.own;
}

INSTANTIATE_TEST_SUITE_P(
    Names, ControllerHost,
    testing::Values(Case{"h0", ""}, Case{"H0", ""}, Case{"h0.example.org", ""},
                    Case{"h0", "", "h0.example.org"}, Case{"h0.a.org", "", "h0.a.org"},
                    Case{"h0.a.org", "", "h0.b.org", false}, Case{"localhost", ""},
                    Case{"localhost", "127.0.0.1", "h7"}, Case{"h1", "", "h0", false},
                    Case{"h1", "10.0.0.11", "h0", false}, Case{"h0", "192.0.2.1"},
                    Case{"ctl", "10.0.0.10", "h9"}, Case{"10.0.0.10", "", "h9"},
                    Case{"10.0.0.11", "", "h9", false}, Case{"alias", "", "h9"},
                    Case{"me", "", "h9"}, Case{"fd00::1", "", "h9"},
                    Case{"unknown", "", "h9", false}, Case{"h01", "", "h0", false}));

TEST(ControllerHostWords, SayWhoWhereAndWhatToDo) {
  const auto other = check_controller_host({{"h1", "h1"}}, host());
  ASSERT_FALSE(other);
  EXPECT_THAT(std::string(other.error().what()),
              AllOf(HasSubstr("this machine is h0 (10.0.0.10, fd00::1)"),
                    HasSubstr("SlurmctldHost=h1, which is 10.0.0.11")));
  EXPECT_THAT(other.error().hint, AllOf(HasSubstr("start it on h1"), HasSubstr("copy its Stat")));
}

TEST(ControllerHostWords, OneOnly) {
  const auto two = check_controller_host({{"h0", "h0"}, {"h1", "10.0.0.11"}}, host());
  ASSERT_FALSE(two);
  EXPECT_THAT(
      std::string(two.error().what()),
      AllOf(HasSubstr("SlurmctldHost=h0, SlurmctldHost=h1(10.0.0.11)"), HasSubstr("no failover")));
  EXPECT_TRUE(check_controller_host({}, host()));
}

TEST(ControllerHostWords, ThisMachineHasANameAndAddresses) {
  const OwnHost own = this_host();
  EXPECT_FALSE(own.name.empty());
  EXPECT_THAT(own.addresses, testing::Contains("127.0.0.1"));
  EXPECT_EQ(own.look_up("127.0.0.1"), "127.0.0.1");
}

}  // namespace
}  // namespace berth::controller
