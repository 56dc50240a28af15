// What job_info.h promises.
#include "pmix/job_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>

namespace berth::pmix {
namespace {

constexpr std::size_t kOfTheStep = 20;
constexpr std::size_t kOfOneRank = 8;

void load(pmix_info_t& info, const char* key, std::uint32_t number) {
  PMIX_INFO_LOAD(&info, key, &number, PMIX_UINT32);
}
void load_small(pmix_info_t& info, const char* key, std::uint16_t number) {
  PMIX_INFO_LOAD(&info, key, &number, PMIX_UINT16);
}
void load_rank(pmix_info_t& info, const char* key, pmix_rank_t rank) {
  PMIX_INFO_LOAD(&info, key, &rank, PMIX_PROC_RANK);
}

pmix_data_array_t* rank_info(const wire::NodeRanks& node, std::uint32_t node_id, int local) {
  pmix_data_array_t* array = nullptr;
  PMIX_DATA_ARRAY_CREATE(array, kOfOneRank, PMIX_INFO);
  auto* info = static_cast<pmix_info_t*>(array->array);
  const std::uint32_t rank = node.ranks(local);
  load_rank(info[0], PMIX_RANK, rank);
  load_rank(info[1], PMIX_GLOBAL_RANK, rank);
  load_rank(info[2], PMIX_APP_RANK, rank);
  load_small(info[3], PMIX_LOCAL_RANK, static_cast<std::uint16_t>(local));
  load_small(info[4], PMIX_NODE_RANK, static_cast<std::uint16_t>(local));
  load(info[5], PMIX_NODEID, node_id);
  load(info[6], PMIX_APPNUM, 0);
  PMIX_INFO_LOAD(&info[7], PMIX_HOSTNAME, node.name().c_str(), PMIX_STRING);
  return array;
}

}  // namespace

void Infos::add_array(const char* key, pmix_data_array_t* array) {
  PMIX_INFO_LOAD(&next(), key, array, PMIX_DATA_ARRAY);  // a copy
  PMIX_DATA_ARRAY_FREE(array);
}

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

std::size_t entries_for(const wire::ServePmix& step) {
  return kOfTheStep + nodes_of_ranks(step.layout()).size();
}

void register_step(const wire::ServePmix& step, pmix_op_cbfunc_t done, void* cookie, Infos& infos) {
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
  char* text = nullptr;
  if (PMIx_generate_regex(fmt::format("{}", fmt::join(names, ",")).c_str(), &text) ==
      PMIX_SUCCESS) {
    infos.add_regex(PMIX_NODE_MAP, text);
  }
  if (PMIx_generate_ppn(fmt::format("{}", fmt::join(ranks, ";")).c_str(), &text) == PMIX_SUCCESS) {
    infos.add_regex(PMIX_PROC_MAP, text);
  }
  for (int n = 0; n < layout.nodes_size(); ++n) {
    for (int local = 0; local < layout.nodes(n).ranks_size(); ++local) {
      infos.add_array(PMIX_PROC_DATA,
                      rank_info(layout.nodes(n), static_cast<std::uint32_t>(n), local));
    }
  }
  PMIx_server_register_nspace(step.name_space().c_str(), here.ranks_size(), infos.data(),
                              infos.size(), done, cookie);
}

}  // namespace berth::pmix
