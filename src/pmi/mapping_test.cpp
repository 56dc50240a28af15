// PMI_process_mapping and the variables of a task.
#include "pmi/mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "pmi/server_test_fixture.h"

namespace berth::pmi {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Mapping, Layouts) {
  struct Row {
    const char* what;
    Layout ranks;
    const char* mapping;
  };
  const Row rows[] = {
      {"one task", {{0}}, "(vector,(0,1,1))"},
      {"one node", {{0, 1, 2, 3}}, "(vector,(0,1,4))"},
      {"block", {{0, 1}, {2, 3}, {4, 5}}, "(vector,(0,3,2))"},
      {"block, the last one less", {{0, 1}, {2, 3}, {4}}, "(vector,(0,2,2),(2,1,1))"},
      {"block, the first one less", {{0}, {1, 2}, {3, 4}}, "(vector,(0,1,1),(1,2,2))"},
      {"block, the middle one less", {{0, 1}, {2}, {3, 4}}, "(vector,(0,1,2),(1,1,1),(2,1,2))"},
      {"one each", {{0}, {1}, {2}}, "(vector,(0,3,1))"},
      {"cyclic", {{0, 2, 4}, {1, 3, 5}}, "(vector,(0,2,1))"},
      {"cyclic, the last round short", {{0, 2, 4}, {1, 3}}, "(vector,(0,2,1))"},
      {"cyclic, a node full early",
       {{0, 3, 5, 6}, {1, 4}, {2}},
       "(vector,(0,3,1),(0,2,1),(0,1,2))"},
      {"plane of two", {{0, 1, 4, 5}, {2, 3, 6, 7}}, "(vector,(0,2,2))"},
      {"arbitrary", {{1, 2}, {0, 3}}, "(vector,(1,1,1),(0,1,2),(1,1,1))"},
      {"the order within a node is of no matter",
       {{3, 1}, {2, 0}},
       "(vector,(1,1,1),(0,2,1),(0,1,1))"},
      {"a node without tasks", {{0, 1}, {}, {2, 3}}, "(vector,(0,2,2))"},
      {"no task", {}, ""},
      {"a rank is missing", {{0}, {2}}, ""},
      {"a rank is there twice", {{0, 1}, {1}}, ""},
  };
  for (const Row& row : rows) EXPECT_EQ(process_mapping(row.ranks), row.mapping) << row.what;
}

/// The node of each rank as a library reads it.
std::vector<std::uint32_t> read_back(const std::string& mapping, std::size_t size) {
  std::vector<std::array<unsigned, 3>> blocks;
  for (std::size_t at = mapping.find('(', 1); at != std::string::npos;
       at = mapping.find('(', at + 1)) {
    auto& block = blocks.emplace_back();
    EXPECT_EQ(std::sscanf(mapping.c_str() + at, "(%u,%u,%u)", &block[0], &block[1], &block[2]), 3);
  }
  std::vector<std::uint32_t> nodes;
  while (nodes.size() < size) {
    for (const auto& [first, count, ranks] : blocks) {
      for (unsigned i = 0; i < count * ranks; ++i) nodes.push_back(first + i / ranks);
    }
  }
  nodes.resize(size);
  return nodes;
}

TEST(Mapping, EveryLayoutOfSixRanksReadsBack) {
  for (unsigned code = 0; code < 729; ++code) {
    Layout layout(3);
    std::vector<std::uint32_t> nodes;
    unsigned rest = code;
    for (std::uint32_t rank = 0; rank < 6; ++rank, rest /= 3) {
      nodes.push_back(rest % 3);
      layout[rest % 3].push_back(rank);
    }
    if (layout[0].empty() || layout[1].empty() || layout[2].empty()) continue;
    const std::string mapping = process_mapping(layout);
    EXPECT_EQ(read_back(mapping, 6), nodes) << mapping;
  }
}

TEST(Mapping, WhatDoesNotFitIntoALineIsLeftOut) {
  Layout irregular(1000);
  std::uint32_t rank = 0;
  for (std::size_t node = 0; node < irregular.size(); ++node) {
    for (std::size_t i = 0; i <= node % 2; ++i) irregular[node].push_back(rank++);
  }
  EXPECT_EQ(process_mapping(irregular), "");
  Layout large(20000, std::vector<std::uint32_t>(50));
  rank = 0;
  for (auto& ranks : large) {
    for (auto& of_node : ranks) of_node = rank++;
  }
  EXPECT_EQ(process_mapping(large), "(vector,(0,20000,50))");
}

TEST(Mapping, VariablesOfATask) {
  EXPECT_THAT(task_variables("12.0", 5, 3, 8, false),
              ElementsAre(Pair("PMI_FD", "5"), Pair("PMI_JOBID", "12.0"), Pair("PMI_RANK", "3"),
                          Pair("PMI_SIZE", "8")));
  EXPECT_EQ(task_variables("12.0", 5, 3, 8, true).at("PMI_SPAWNED"), "1");
}

}  // namespace
}  // namespace berth::pmi
