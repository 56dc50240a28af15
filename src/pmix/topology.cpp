// What topology.h promises.
#include "pmix/topology.h"

#include <hwloc.h>

namespace berth::pmix {

std::string topology_xml() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return {};
  std::string out;
  char* text = nullptr;
  int size = 0;
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(topology) == 0 &&
      hwloc_topology_export_xmlbuffer(topology, &text, &size, 0) == 0 && size > 0) {
    out.assign(text, static_cast<std::size_t>(size) - 1);
    hwloc_free_xmlbuffer(topology, text);
  }
  hwloc_topology_destroy(topology);
  return out;
}

}  // namespace berth::pmix
