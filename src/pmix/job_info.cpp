// What job_info.h promises.
#include "pmix/job_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>

#include "pmix/topology.h"

namespace berth::pmix {

void Infos::add_regex(const char* key, char* text) {
  PMIX_INFO_LOAD(&next(), key, text, PMIX_REGEX);
  std::free(text);
}

std::vector<std::uint32_t> nodes_of_ranks(const wire::StepLayout& layout) {
  std::vector<std::uint32_t> out;
  for (int n = 0; n < layout.nodes_size(); ++n) {
    for (const std::uint32_t rank : layout.nodes(n).ranks()) {
      if (out.size() <= rank) out.resize(rank + 1);
      out[rank] = static_cast<std::uint32_t>(n);
    }
  }
  return out;
}

std::string rank_list(const wire::NodeRanks& node) {
  return fmt::format("{}", fmt::join(node.ranks(), ","));
}

pmix_status_t register_step(const wire::ServePmix& step, pmix_op_cbfunc_t done, void* cookie,
                            Infos& infos) {
  const wire::StepLayout& layout = step.layout();
  const wire::NodeRanks& here = layout.nodes(static_cast<int>(step.node_id()));
  const auto size = static_cast<std::uint32_t>(nodes_of_ranks(layout).size());
  std::vector<std::string> names;
  std::vector<std::string> ranks;
  for (const wire::NodeRanks& node : layout.nodes()) {
    names.push_back(node.name());
    ranks.push_back(rank_list(node));
  }
  infos.add(PMIX_JOBID, step.job_id());
  infos.add(PMIX_UNIV_SIZE, std::max(layout.universe(), size));
  infos.add(PMIX_JOB_SIZE, size);
  infos.add(PMIX_APP_SIZE, size);
  infos.add(PMIX_MAX_PROCS, std::max(layout.universe(), size));
  infos.add(PMIX_JOB_NUM_APPS, 1);
  infos.add(PMIX_APPNUM, 0);
  infos.add(PMIX_LOCAL_SIZE, static_cast<std::uint32_t>(here.ranks_size()));
  infos.add(PMIX_NODE_SIZE, static_cast<std::uint32_t>(here.ranks_size()));
  infos.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(layout.nodes_size()));
  infos.add(PMIX_NODEID, step.node_id());
  infos.add(PMIX_LOCAL_PEERS, rank_list(here));
  if (here.ranks_size() > 0) infos.add_rank(PMIX_LOCALLDR, here.ranks(0));
  if (const std::string xml = topology_xml(); !xml.empty()) infos.add(PMIX_HWLOC_XML_V2, xml);
  char* text = nullptr;
  if (PMIx_generate_regex(fmt::format("{}", fmt::join(names, ",")).c_str(), &text) ==
      PMIX_SUCCESS) {
    infos.add_regex(PMIX_NODE_MAP, text);
  }
  if (PMIx_generate_ppn(fmt::format("{}", fmt::join(ranks, ";")).c_str(), &text) == PMIX_SUCCESS) {
    infos.add_regex(PMIX_PROC_MAP, text);
  }
  // Where each rank is, and its place there, the library works out from these two.
  return PMIx_server_register_nspace(step.name_space().c_str(), here.ranks_size(), infos.data(),
                                     infos.size(), done, cookie);
}

}  // namespace berth::pmix
