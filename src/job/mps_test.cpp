// MPS serves one GPU of a node at a time, unless gres.conf says otherwise (Flags=all_sharing).
#include <gtest/gtest.h>

#include "job/state_test_fixture.h"

namespace berth::job::testing {
namespace {

TEST(Mps, IsOfOneGpuAtATime) {
  for (const bool one : {true, false}) {
    cluster::Cluster cluster = place::corpus::make();
    cluster.settings.gres_types.push_back("mps");
    cluster::Node& node = cluster.nodes[*cluster.find_node("gpu1")];
    cluster::Gres mps = *node.find_gres("gpu");
    mps.name = "mps";
    mps.shares_gpu = true;
    mps.one_sharing = one;
    for (cluster::Device& device : mps.devices) device.units = 100;
    node.gres.push_back(mps);
    Controller c({}, std::move(cluster));
    const auto gpus_of = [&](JobId id) { return c.at(id).allocation.nodes.front().gpus(); };
    const std::string ask = "-w gpu1 -N1 -n1 --mem=1G --gres=mps:60";
    const JobId first = c.started(ask);
    const JobId second = c.submit(ask);
    EXPECT_EQ(c.start(second), !one);
    EXPECT_EQ(gpus_of(c.started("-w gpu1 -N1 -n1 --mem=1G --gres=mps:40")), gpus_of(first));
    c.runs_to_the_end(first);
    if (one) {
      EXPECT_TRUE(c.start(second)) << "60 of 100 are free again beside the other 40";
    }
  }
}

}  // namespace
}  // namespace berth::job::testing
