// The table of who may send what is complete and fails closed.
#include "controller/access.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace berth::controller {
namespace {

constexpr wire::Kind kAll[] = {
#define BERTH_MESSAGE(number, type) wire::Kind::type,
#include "wire/messages.def"
#undef BERTH_MESSAGE
};

struct Cell {
  const char* name;
  Standing standing;
};
// Every standing that a connection can have. A live test walks through the same cells with real
// connections (tests/hosts/test_matrix.py).
const Cell kStandings[] = {
    {"stranger over TCP", {.role = Role::stranger, .remote = true}},
    {"user here", {.role = Role::user}},
    {"user over TCP", {.role = Role::user, .remote = true}},
    {"administrator here", {.role = Role::administrator}},
    {"administrator over TCP", {.role = Role::administrator, .remote = true}},
    {"agent here", {.role = Role::administrator, .registered = true}},
    {"node over TCP", {.role = Role::node, .remote = true}},
    {"agent over TCP", {.role = Role::node, .remote = true, .registered = true}},
};

/// Message → who may send it, as tests/hosts/matrix.txt has it.
std::map<std::string, std::string> written_down() {
  std::map<std::string, std::string> rows;
  std::ifstream file(std::string(BERTH_SOURCE_DIR) + "/tests/hosts/matrix.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string message;
    std::string who;
    if (words >> message >> who && message != "#") rows[message] = who;
  }
  return rows;
}

bool expected(const std::string& who, const Standing& standing) {
  const bool here = !standing.remote;
  const bool administrator = standing.role == Role::administrator;
  const bool agent = standing.role == Role::node || (administrator && here);
  if (who == "anybody") return true;
  if (who == "users") return standing.role == Role::user || administrator;
  if (who == "administrators") return administrator;
  if (who == "new-agents") return agent;
  if (who == "agents") return agent && standing.registered;
  if (who == "nodes") return standing.role == Role::node;
  if (who == "new-nodes") return standing.role == Role::node && !standing.registered;
  EXPECT_EQ(who, "-");
  return false;
}

TEST(Access, EveryRowSaysWhichThreadAnswers) {
  for (const wire::Kind kind : kAll) {
    const Rule rule = rule_of(kind);
    EXPECT_EQ(rule.kind, kind);
    EXPECT_EQ(rule.who == Who::nobody, rule.where == Where::none) << wire::name_of(kind);
  }
}

TEST(Access, EveryCellOfMessageAndStanding) {
  auto rows = written_down();
  for (const wire::Kind kind : kAll) {
    const std::string name(wire::name_of(kind));
    ASSERT_TRUE(rows.contains(name)) << name << " has no row in tests/hosts/matrix.txt";
    const std::string who = rows.extract(name).mapped();
    for (const Cell& cell : kStandings) {
      EXPECT_EQ(may_send(rule_of(kind), cell.standing), expected(who, cell.standing))
          << name << " from " << cell.name;
    }
  }
  EXPECT_TRUE(rows.empty()) << rows.begin()->first << " is no message";
}

TEST(Access, UnknownNumbersAreRefused) {
  for (const Cell& cell : kStandings) {
    EXPECT_FALSE(may_send(rule_of(static_cast<wire::Kind>(60000)), cell.standing)) << cell.name;
  }
}

}  // namespace
}  // namespace berth::controller
