#include "auth/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace berth::auth {

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = ::getrandom(bytes.data() + done, count - done, 0);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      std::abort();  // a key that is not random must never be used
    }
  }
  return bytes;
}

std::string random_token() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string token;
  for (const char byte : random_bytes(16)) {
    token += kDigits[static_cast<unsigned char>(byte) >> 4];
    token += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return token;
}

}  // namespace berth::auth
