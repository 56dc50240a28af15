// sprio: the factors of jobs that wait, from what was published.
#pragma once

#include <memory>
#include <vector>

#include "controller/published.h"
#include "controller/users.h"
#include "wire/info.pb.h"

namespace berth::controller {

/// `worked_out`: when priorities were last calculated, so that the factors are those of what is
/// shown.
wire::PrioritiesReply priorities_reply(const PrioritySite& site,
                                       const std::vector<std::shared_ptr<const JobView>>& jobs,
                                       const wire::ListPriorities& ask, Users& users,
                                       job::Time worked_out);

}  // namespace berth::controller
