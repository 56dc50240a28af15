// What framing.h promises.
#include "pmi/framing.h"

#include <algorithm>

#include "pmi/limits.h"
#include "text/number.h"
#include "text/words.h"

namespace berth::pmi {
namespace {

constexpr std::size_t kLengthBytes = 6;  // decimal digits, blanks on either side

}  // namespace

void Inbox::append(std::string_view bytes) {
  bytes_.erase(0, at_);
  searched_ = std::max(searched_, at_) - at_;
  at_ = 0;
  bytes_ += bytes;
}

Result<std::optional<std::string_view>> Inbox::next() {
  return counted_ ? next_counted() : next_line();
}

Result<std::optional<std::string_view>> Inbox::next_line() {
  const std::size_t end = bytes_.find('\n', std::max(at_, searched_));
  const std::size_t length = (end == std::string::npos ? bytes_.size() : end) - at_;
  if (length > kMaxMessage) return fail(Code::limit, "a line is too long");
  if (end == std::string::npos) {
    searched_ = bytes_.size();
    return std::nullopt;
  }
  const std::string_view line = std::string_view(bytes_).substr(at_, length);
  at_ = end + 1;
  return line;
}

Result<std::optional<std::string_view>> Inbox::next_counted() {
  const std::string_view rest = std::string_view(bytes_).substr(at_);
  if (rest.size() < kLengthBytes) return std::nullopt;
  const auto length = text::parse_number(text::trim(rest.substr(0, kLengthBytes)));
  if (!length) return fail(Code::protocol, "a message does not begin with its length");
  if (*length > kMaxMessage) return fail(Code::limit, "a message is too long");
  if (rest.size() - kLengthBytes < *length) return std::nullopt;
  at_ += kLengthBytes + *length;
  return rest.substr(kLengthBytes, *length);
}

}  // namespace berth::pmi
