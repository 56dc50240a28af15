// Certificates, and wishes for one, as a stranger sends them who wants to join: they are refused,
// or make a certificate for the node that was asked for and no other.
#include "tls/pem.h"

#include <openssl/pem.h>
#include <stdlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "tls/authority.h"

namespace {

using namespace berth::tls;

const Authority& authority() {
  static const Authority made = [] {
    char name[] = "/tmp/berth-fuzz-pem-XXXXXX";
    const std::string directory = ::mkdtemp(name);
    auto own = Authority::load_or_create(directory + "/a.pem", "fuzz");
    std::filesystem::remove_all(directory);
    if (!own) std::abort();
    return std::move(*own);
  }();
  return made;
}

std::string armoured(const char* what, std::string_view bytes) {
  const Bytes out(::BIO_new(::BIO_s_mem()));
  ::PEM_write_bio(out.get(), what, "", reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<long>(bytes.size()));
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

void wish_of(std::string_view text) {
  const auto issued = authority().issue_node(text, {"n1"});
  if (!issued) return;
  const auto bearer = bearer_of(issued->certificate);
  if (!bearer || bearer->nodes != std::vector<std::string>{"n1"}) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // As text, and as what the text would hold.
  wish_of(input);
  wish_of(armoured("CERTIFICATE REQUEST", input));
  for (const std::string& text : {std::string(input), armoured("CERTIFICATE", input)}) {
    (void)bearer_of(text);
    (void)days_left(text);
    if (const auto certificate = read_certificate(text)) (void)fingerprint_of(certificate.get());
  }
  return 0;
}
