// What name_service.h promises.
#include "launch/name_service.h"

namespace berth::launch {
namespace {

/// What tasks of one step may make their srun remember.
constexpr std::size_t kMostNames = 10'000;
constexpr std::size_t kMostBytes = std::size_t{16} * 1024 * 1024;

constexpr char kEndOfName = '\0';

}  // namespace

std::string question_text(const NameQuestion& question) {
  std::string text(1, static_cast<char>(question.kind));
  text.append(question.name, 0, question.name.find(kEndOfName));
  if (question.kind == NameQuestion::Kind::publish)
    text.append(1, kEndOfName).append(question.port);
  return text;
}

Result<NameQuestion> read_question(std::string_view text) {
  using Kind = NameQuestion::Kind;
  const Kind kind = text.empty() ? Kind{} : static_cast<Kind>(text.front());
  if (kind != Kind::publish && kind != Kind::forget && kind != Kind::find) {
    return fail(Code::protocol, "not a question about a name");
  }
  text.remove_prefix(1);
  const std::size_t end = text.find(kEndOfName);
  if ((kind == Kind::publish) != (end != std::string_view::npos)) {
    return fail(Code::protocol, "a question about a name that is cut off or too long");
  }
  NameQuestion question{.kind = kind, .name = std::string(text.substr(0, end))};
  if (kind == Kind::publish) question.port = text.substr(end + 1);
  return question;
}

Result<std::string> NameService::answer(const NameQuestion& question) {
  const auto at = ports_.find(question.name);
  if (question.kind == NameQuestion::Kind::publish) {
    const std::size_t bytes = question.name.size() + question.port.size();
    if (at != ports_.end()) return fail(Code::conflict, "the name is published already");
    if (ports_.size() == kMostNames || bytes > kMostBytes - bytes_) {
      return fail(Code::limit, "too many names are published");
    }
    bytes_ += bytes;
    ports_.emplace(question.name, question.port);
    return std::string();
  }
  if (at == ports_.end()) return fail(Code::bad_value, "no such name");
  if (question.kind == NameQuestion::Kind::find) return at->second;
  bytes_ -= at->first.size() + at->second.size();
  ports_.erase(at);
  return std::string();
}

}  // namespace berth::launch
