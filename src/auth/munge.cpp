#include "auth/munge.h"

#include <fmt/format.h>
#include <munge.h>

#include <cstdlib>
#include <memory>

#include "wire/frame.h"

namespace berth::auth {
namespace {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
struct FreeContext {
  void operator()(munge_ctx_t context) const { ::munge_ctx_destroy(context); }
};
using Context = std::unique_ptr<std::remove_pointer_t<munge_ctx_t>, FreeContext>;

std::unexpected<Error> no_munge(const char* what, munge_err_t trouble) {
  const bool absent = trouble == EMUNGE_SOCKET || trouble == EMUNGE_TIMEOUT;
  return fail(
      Code::no_credential, fmt::format("{}: {}", what, ::munge_strerror(trouble)),
      absent ? "munged does not answer: it has to run on this host, with the cluster's key" : "");
}

/// What a credential is made for: by whom it is used, for whom it is, in which session. It is no
/// good for anything else.
std::string signed_part_of(wire::Hello hello, const std::string& binding) {
  hello.clear_credential();
  return fmt::format("{}\n{}\n{}", kCallerPurpose, hello.SerializeAsString(), binding);
}

}  // namespace

Result<wire::Hello> make_hello(const std::string& program, const std::string& binding) {
  wire::Hello hello;
  hello.set_protocol(wire::kProtocol);
  hello.set_program(program);
  const std::string signed_part = signed_part_of(hello, binding);
  char* credential = nullptr;
  const munge_err_t trouble = ::munge_encode(&credential, nullptr, signed_part.data(),
                                             static_cast<int>(signed_part.size()));
  const std::unique_ptr<char, FreeMemory> owned(credential);
  if (trouble != EMUNGE_SUCCESS) return no_munge("cannot get a munge credential", trouble);
  hello.set_credential(credential);
  return hello;
}

Result<void> check_protocol(const wire::Hello& hello) {
  if (hello.protocol() != wire::kProtocol) {
    return fail(Code::protocol,
                fmt::format("protocol {} was expected, not {}", wire::kProtocol, hello.protocol()),
                "berth of another version runs at the other end");
  }
  return {};
}

Result<Caller> check_hello(const wire::Hello& hello, const std::string& binding) {
  if (auto good = check_protocol(hello); !good) return pass(std::move(good.error()));
  const Context context(::munge_ctx_create());
  void* payload = nullptr;
  int size = 0;
  Caller caller;
  const munge_err_t trouble = ::munge_decode(hello.credential().c_str(), context.get(), &payload,
                                             &size, &caller.uid, &caller.gid);
  const std::unique_ptr<void, FreeMemory> owned(payload);
  if (trouble != EMUNGE_SUCCESS) return no_munge("bad munge credential", trouble);
  if (std::string_view(static_cast<const char*>(payload), static_cast<std::size_t>(size)) !=
      signed_part_of(hello, binding)) {
    return fail(Code::no_credential, "the munge credential was made for something else");
  }
  return caller;
}

}  // namespace berth::auth
