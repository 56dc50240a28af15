// The socket on which PMIx clients are awaited is made by the supervisor before any task starts, so
// that tasks know where to go and this program is started only when one goes there. The PMIx
// library knows no way to be given a socket; it is given ours where it asks the C library for one
// (listener.cpp).
#pragma once

#include <sys/types.h>

namespace berth::pmix {

/// To be called before the library starts. Only processes of this user are let in.
void use_listener(int fd, uid_t user);
/// Whether the library took it.
bool listener_was_taken();
/// Until then nobody is let in: the library must know who may come.
void open_the_door();

}  // namespace berth::pmix
