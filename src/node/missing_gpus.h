// GPUs that the configuration counts and the machine does not show: each keeps its place among the
// others, so that jobs count those as before, and is out of service with the reason.
//
// Which one is missing is told by, in this order: a line of gres.conf that names its file; the GPUs
// that this node had when all were there; NVIDIA's library, where it still counts a GPU that does
// not answer. Where nothing tells it, the last ones are taken for missing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/machine.h"
#include "node/gres.h"
#include "text/tres.h"

namespace berth::node {

/// Puts items for missing GPUs among those of `gres`. Nothing is done where what is there is of
/// another type than what is counted: that is no GPU that went away.
/// `counted`: Gres= of the node; `where`: its file and line.
void place_missing_gpus(const device::Machine& machine, const std::vector<text::TresItem>& counted,
                        const std::string& where, const std::vector<KnownGpu>& known, Gres& gres);

bool misses_gpus(const Gres& gres);
/// Whether a look may find one of them: its file is there, or the library has told of a GPU (in
/// `samples`) that is none of the others.
bool may_be_back(const Gres& gres, const std::optional<survey::Survey>& told,
                 const std::map<std::uint32_t, survey::Sample>& samples);
/// Whether all that were there have the places that they had.
bool same_places(const Gres& before, const Gres& now);

/// The GPUs of a node on which none is missing, as text; "" where one is, or tells no UUID.
std::string write_known_gpus(const Gres& gres);
/// The other way; lines that cannot be read are left out.
std::vector<KnownGpu> read_known_gpus(std::string_view text);

}  // namespace berth::node
