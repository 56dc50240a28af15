// Whom a munge credential names (auth/munge.h).
#pragma once

#include <sys/types.h>

namespace berth::auth {

struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
};

}  // namespace berth::auth
