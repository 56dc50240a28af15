// What is kept for a state is found again, whether there are few or many of them.
#include "place/state_slots.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace berth::place {
namespace {

TEST(StateSlots, WhatIsKeptIsFoundAgain) {
  std::mt19937 random(3);
  for (const auto& [states, met] : {std::pair<std::size_t, std::size_t>{1, 1},
                                    {4, 10},
                                    {20, 10},
                                    {100000, 1},
                                    {100000, 16},
                                    {100000, 1000}}) {
    StateSlots slots(states, met);
    for (int round = 0; round < 2; ++round) {
      std::map<std::uint32_t, std::int32_t> expected;
      while (expected.size() < std::min(states, met)) {
        const auto state = static_cast<std::uint32_t>(random() % states);
        std::int32_t& slot = slots.of(state);
        const auto known = expected.find(state);
        EXPECT_EQ(slot, known == expected.end() ? StateSlots::kUnseen : known->second);
        slot = static_cast<std::int32_t>(expected.size());
        expected[state] = slot;
      }
      for (const auto& [state, kept] : expected) EXPECT_EQ(slots.of(state), kept);
      slots.clear();
    }
  }
}

}  // namespace
}  // namespace berth::place
