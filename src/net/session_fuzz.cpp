// What comes over TCP: a TLS session and the frames in it. The first byte says how:
//
//   0  bytes of anybody, to a controller that knows nothing of him
//   1  the same to an agent
//   2  to somebody who called, from what is no controller
//   3  frames of somebody who is known, in records cut where the input says
//   4  somebody on the way changes records of a session: the bytes say where and how
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tls/authority.h"
#include "tls/context.h"
#include "wire/frame.h"

namespace {

using namespace berth;

const std::string kKey(32, 'k');

struct Contexts {
  tls::Context controller, caller, keyed_server, keyed_caller;
};

const Contexts& contexts() {
  static const Contexts made = [] {
    char name[] = "/tmp/berth-fuzz-session-XXXXXX";
    const std::string directory = ::mkdtemp(name);
    const auto own = tls::Authority::load_or_create(directory + "/a.pem", "fuzz");
    std::filesystem::remove_all(directory);
    if (!own) std::abort();
    return Contexts{*tls::Context::controller(*own->issue_controller("ctl"), own->certificate()),
                    *tls::Context::caller(own->certificate()),
                    *tls::Context::keyed_server([](std::string_view key_name) {
                      return key_name == "k" ? std::optional(kKey) : std::nullopt;
                    }),
                    *tls::Context::keyed_caller()};
  }();
  return made;
}

struct Pair {
  tls::Stream client = contexts().keyed_caller.open("k", kKey);
  tls::Stream server = contexts().keyed_server.open();
  std::string said;  // by the client, as the server has read it

  Pair() {
    std::string up;
    std::string down;
    std::string unused;
    client.begin(up);
    for (int round = 0; round < 4 && !(up.empty() && down.empty()); ++round) {
      const std::string now = std::exchange(up, {});
      if (!server.take(now, said, down)) std::abort();
      const std::string answer = std::exchange(down, {});
      if (!client.take(answer, unused, up)) std::abort();
    }
    if (!server.established() || !client.established()) std::abort();
  }
};

/// A session is used until somebody breaks it.
Pair& standing() {
  static std::optional<Pair> pair;
  if (!pair) pair.emplace();
  return *pair;
}

void stranger(tls::Stream stream, bool begins, std::string_view input) {
  std::string plain;
  std::string out;
  if (begins) stream.begin(out);
  while (!input.empty()) {
    const std::size_t piece = std::min<std::size_t>(input.size(), 1 + input.size() / 2);
    if (!stream.take(input.substr(0, piece), plain, out)) break;
    input.remove_prefix(piece);
  }
  if (!plain.empty() || stream.established()) std::abort();
}

void frames_within(std::string_view input) {
  Pair& pair = standing();
  pair.said.clear();
  std::string raw;
  for (std::string_view rest = input; !rest.empty();) {
    const std::size_t piece = std::min<std::size_t>(rest.size(), 1 + (rest[0] & 0xff) * 16U);
    pair.client.put(rest.substr(0, piece), raw);
    rest.remove_prefix(piece);
  }
  std::string out;
  for (std::string_view rest = raw; !rest.empty();) {
    const std::size_t piece = std::min<std::size_t>(rest.size(), 1000);
    if (!pair.server.take(rest.substr(0, piece), pair.said, out)) std::abort();
    rest.remove_prefix(piece);
  }
  if (pair.said != input) std::abort();
  std::string_view rest = pair.said;
  wire::Frame frame;
  while (wire::scan_frame(rest, wire::kUserBytes, frame) == wire::Scan::complete) {
    rest.remove_prefix(frame.size);
  }
}

void changed_within(std::string_view input) {
  static const std::string text(300, 't');
  std::optional<Pair> pair(std::in_place);
  pair->said.clear();
  std::string raw;
  for (int i = 0; i < 4; ++i) pair->client.put(text, raw);
  const std::string sent = raw;
  for (; input.size() >= 3; input.remove_prefix(3)) {
    const std::size_t at =
        (static_cast<std::uint8_t>(input[0]) * 256U + static_cast<std::uint8_t>(input[1])) %
        raw.size();
    const auto how = static_cast<std::uint8_t>(input[2]);
    if (how < 128) {
      raw[at] = static_cast<char>(raw[at] ^ (how + 1));
    } else if (how < 160) {
      raw.erase(at, how - 127U);
      if (raw.empty()) return;
    } else if (how < 192) {
      raw.insert(at, how - 159U, '\x17');
    } else {
      raw.append(sent.substr(at % sent.size(), how));
    }
  }
  std::string out;
  (void)pair->server.take(raw, pair->said, out);
  // Whole records in their order, up to the first that was touched, and nothing else.
  if (pair->said.size() % text.size() != 0 || pair->said.size() > 4 * text.size() ||
      pair->said.find_first_not_of('t') != std::string::npos) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      stranger(contexts().controller.open(), false, input);
      break;
    case 1:
      stranger(contexts().keyed_server.open(), false, input);
      break;
    case 2:
      stranger(contexts().caller.open(), true, input);
      break;
    case 3:
      frames_within(input);
      break;
    default:
      changed_within(input);
  }
  return 0;
}
