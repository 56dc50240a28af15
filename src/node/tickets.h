// Whether a ticket allows what its bearer wants. Pure: time, key and what is known are arguments.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "wire/submit.pb.h"

namespace berth::node {

struct Bearer {
  uid_t uid = 0;
};

/// The spec of a launch: signed with this node's key, for this node, not expired, and carried by
/// its user or root. Whether it was used before is the caller's to know.
Result<wire::StepSpec> check_launch(const wire::Ticket& ticket, const std::string& key,
                                    std::int64_t now, const Bearer& bearer);
/// The same for sattach ("attach") and sbcast ("file").
Result<wire::AccessSpec> check_access(const wire::Ticket& ticket, const std::string& key,
                                      std::int64_t now, const Bearer& bearer,
                                      const std::string& purpose);

/// The script that comes with BeginJob: as a launch, and for just this job.
Result<void> check_batch(const wire::BeginJob& message, const std::string& key);

}  // namespace berth::node
