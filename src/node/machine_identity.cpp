#include "node/machine_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/whole_file.h"

namespace berth::node {
namespace {

constexpr std::string_view kWish = "-----BEGIN CERTIFICATE REQUEST-----";
constexpr std::string_view kCertificate = "-----BEGIN CERTIFICATE-----";

std::string file_in(const std::string& spool) {
  return spool + "/identity.pem";
}

std::string joining_file_in(const std::string& spool) {
  return spool + "/joining.pem";
}

}  // namespace

Result<MachineIdentity> MachineIdentity::load(const std::string& spool) {
  const std::string path = file_in(spool);
  const auto text = read_private_file(path);
  if (!text) return pass(text.error());
  if (text->empty()) {
    return fail(
        Code::no_credential, "this machine has not joined the cluster (see `berth join`)",
        "run `scontrol token node=NAME` on the controller's host, then `berth join -` here, and "
        "give it the token");
  }
  const std::size_t first = text->find(kCertificate);
  const std::size_t second =
      first == std::string::npos ? first : text->find(kCertificate, first + kCertificate.size());
  if (second == std::string::npos) {
    return fail(Code::bad_config, fmt::format("{} is damaged", path),
                "let the machine join again: `scontrol token node=NAME`, `berth join -`");
  }
  MachineIdentity out;
  out.own.key = text->substr(0, first);
  out.own.certificate = text->substr(first, second - first);
  out.authority = text->substr(second);
  return out;
}

Result<void> MachineIdentity::save(const std::string& spool) const {
  return write_whole_file(file_in(spool), own.key + own.certificate + authority, 0600);
}

Result<tls::NewKey> joining_key(const std::string& spool, const std::string& token_id) {
  const std::string path = joining_file_in(spool);
  const auto text = read_private_file(path);
  const std::string head = fmt::format("token {}\n", token_id);
  const std::size_t wish = text && text->starts_with(head) ? text->find(kWish) : std::string::npos;
  if (wish != std::string::npos) {
    return tls::NewKey{.key = text->substr(head.size(), wish - head.size()),
                       .wish = text->substr(wish)};
  }
  auto made = tls::make_key();
  if (!made) return made;
  if (auto saved = write_whole_file(path, head + made->key + made->wish, 0600); !saved) {
    return pass(std::move(saved.error()));
  }
  return made;
}

void forget_joining_key(const std::string& spool) {
  ::unlink(joining_file_in(spool).c_str());
}

std::string epoch_file(const std::string& spool) {
  return spool + "/epoch";
}

std::string store_memory_file(const std::string& spool) {
  return spool + "/store-memory";
}

void forget_controller(const std::string& spool) {
  for (const std::string& file : {epoch_file(spool), store_memory_file(spool)}) {
    ::unlink(file.c_str());
  }
}

}  // namespace berth::node
