// Xid errors: each entry of the file is told once to each event set that was there before it.
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "fakenvml/device.h"
#include "fakenvml/exports.h"

namespace berth::nvml {

/// What a handle of an event set points at.
struct OpaqueEventSet {
  std::uint64_t told = 0;         // the number of the last Xid
  std::set<std::size_t> devices;  // registered
  int changes = -1;               // inotify, of the file's directory
};

namespace {

std::uint64_t last_number() {
  std::uint64_t last = 0;
  if (const fakenvml::State* state = fakenvml::current()) {
    for (const fakenvml::XidEvent& one : state->xids) last = std::max(last, one.number);
  }
  return last;
}

bool next(OpaqueEventSet& set, EventData& out) {
  const fakenvml::State* state = fakenvml::current();
  if (state == nullptr) return false;
  const fakenvml::XidEvent* found = nullptr;
  for (const fakenvml::XidEvent& one : state->xids) {
    if (one.number <= set.told || !set.devices.contains(one.gpu)) continue;
    if (found == nullptr || one.number < found->number) found = &one;
  }
  if (found == nullptr) return false;
  set.told = found->number;
  out = {fakenvml::handle_of(found->gpu), kXidEvent, found->code, kNoInstance, kNoInstance};
  return true;
}

Return wait(const char* function, EventSet set, EventData* data, unsigned int milliseconds) {
  using Clock = std::chrono::steady_clock;
  if (const Return answer = fakenvml::check(function); answer != kSuccess) return answer;
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (!next(*set, *data)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return kTimeout;
    pollfd changes{set->changes, POLLIN, 0};
    if (::poll(&changes, 1, static_cast<int>(left)) > 0) {
      std::array<char, 4096> names;
      if (::read(set->changes, names.data(), names.size()) < 0) return kTimeout;
      ::usleep(6000);  // the state is looked at no more often than that
    }
  }
  return kSuccess;
}

}  // namespace

extern "C" {

Return nvmlEventSetCreate(EventSet* set) {
  if (const Return answer = fakenvml::check("nvmlEventSetCreate"); answer != kSuccess) {
    return answer;
  }
  auto* made = new OpaqueEventSet;
  made->told = last_number();
  made->changes = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const std::string path = fakenvml::state_path();
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  ::inotify_add_watch(made->changes, folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO);
  *set = made;
  return kSuccess;
}
Return nvmlEventSetFree(EventSet set) {
  ::close(set->changes);
  delete set;
  return kSuccess;
}
Return nvmlDeviceRegisterEvents(Device device, unsigned long long types, EventSet set) {
  fakenvml::Target at;
  const Return answer = look_up("nvmlDeviceRegisterEvents", device, at);
  if (answer != kSuccess) return answer;
  if (types != kXidEvent) return kNotSupported;
  set->devices.insert(at.index);
  return kSuccess;
}
Return nvmlEventSetWait(EventSet set, EventData* data, unsigned int milliseconds) {
  return wait("nvmlEventSetWait", set, data, milliseconds);
}
Return nvmlEventSetWait_v2(EventSet set, EventData* data, unsigned int milliseconds) {
  return wait("nvmlEventSetWait_v2", set, data, milliseconds);
}

}  // extern "C"
}  // namespace berth::nvml
