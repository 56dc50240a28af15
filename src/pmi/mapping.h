// What tasks are told before they ask: which rank is on which node (PMI_process_mapping), and the
// variables by which a PMI library finds its server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace berth::pmi {

/// Longer ones do not fit into the line that a PMI-1 client reads.
inline constexpr std::size_t kMaxMapping = 960;

/// "(vector,(first node,nodes,ranks on each),…)": blocks of ranks in order, nodes numbered from 0.
/// Ranks that are left when the blocks are over begin again with the first block, so 8 ranks dealt
/// out to two nodes in turn are "(vector,(0,2,1))". `ranks_of_node`: each rank of the step once;
/// nodes without ranks do not count. "" when the layout takes more than kMaxMapping bytes, or a
/// rank is missing or there twice: libraries then compare the names of their hosts.
std::string process_mapping(std::span<const std::vector<std::uint32_t>> ranks_of_node);

/// PMI_FD, PMI_JOBID, PMI_RANK, PMI_SIZE, and PMI_SPAWNED=1 for a step that MPI_Comm_spawn started.
/// `fd`: the task's end of its connection, open across exec. `id`: Step::id of server.h.
std::map<std::string, std::string, std::less<>> task_variables(const std::string& id, int fd,
                                                               std::uint32_t rank,
                                                               std::uint32_t size, bool spawned);

}  // namespace berth::pmi
