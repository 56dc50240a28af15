// The network in words: which switches or blocks an allocation uses.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/usage.h"
#include "request/request.h"

namespace berth::place {

/// "one switch (leaf1)", "2 blocks (b1,b2)"; "" where the network is flat.
std::string leaf_words(const cluster::Cluster& cluster, const cluster::Allocation& allocation);

/// Why a job that fits on more switches than it asks for does not start at once.
std::string switch_wait_words(const cluster::Cluster& cluster, const request::Request& request,
                              const cluster::Allocation& allocation);

/// What the network makes of an option that asks for neighbours by number.
std::vector<Message> network_warnings(const cluster::Cluster& cluster,
                                      const request::Request& request);

/// Why blocks or segments may keep a job from ever running; "" where they do not matter.
std::string network_hint(const cluster::Cluster& cluster, const request::Request& request);

}  // namespace berth::place
