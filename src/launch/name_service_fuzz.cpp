// What a supervisor may send: it is refused, or it is a question that is written as it was read.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "launch/errands.h"
#include "launch/name_service.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::launch;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto question = read_question(input)) {
    if (question_text(*question) != input) std::abort();
    NameService book;
    const bool published = book.answer(*question).has_value();
    if (published != (question->kind == NameQuestion::Kind::publish)) std::abort();
    if (published && *book.answer({NameQuestion::Kind::find, question->name}) != question->port) {
      std::abort();
    }
  }
  if (const auto answer = read_answer(input); answer && answer_text(answer) != input) std::abort();
  return 0;
}
