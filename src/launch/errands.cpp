// What errands.h promises.
#include "launch/errands.h"

namespace berth::launch {
namespace {

constexpr char kYes = '+';
constexpr char kNo = '-';

}  // namespace

std::string answer_text(const Result<std::string>& answer) {
  return answer ? kYes + *answer : kNo + std::string(answer.error().what());
}

Result<std::string> read_answer(std::string_view text) {
  if (text.empty()) return fail(Code::protocol, "there was no answer");
  if (text.front() == kYes) return std::string(text.substr(1));
  return fail(Code::bad_value, std::string(text.front() == kNo ? text.substr(1) : text));
}

}  // namespace berth::launch
