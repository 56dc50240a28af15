// Questions survive their trip, and the book answers as MPI wants it.
#include "launch/name_service.h"

#include <gmock/gmock.h>

#include "launch/errands.h"

namespace berth::launch {
namespace {

using Kind = NameQuestion::Kind;

TEST(NameService, QuestionsSurviveTheTrip) {
  for (const NameQuestion& question :
       {NameQuestion{Kind::publish, "ocean", "tag#0$port#1"}, NameQuestion{Kind::publish, "", ""},
        NameQuestion{Kind::publish, "a", std::string("x\0y", 3)}, NameQuestion{Kind::forget, "o"},
        NameQuestion{Kind::find, "+?-"}}) {
    const auto back = read_question(question_text(question));
    ASSERT_TRUE(back) << question.name;
    EXPECT_EQ(*back, question);
  }
  // A name ends where C says it does.
  EXPECT_EQ(read_question(question_text({Kind::find, std::string("a\0b", 3)}))->name, "a");
}

TEST(NameService, ReadsNothingElse) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {""sv, "x"sv, "xname"sv, "+name"sv, "?name\0port"sv, "-a\0"sv}) {
    EXPECT_FALSE(read_question(text)) << text;
  }
}

TEST(NameService, RemembersUntilItIsToldToForget) {
  NameService book;
  EXPECT_FALSE(book.answer({Kind::find, "ocean"}));
  EXPECT_FALSE(book.answer({Kind::forget, "ocean"}));
  EXPECT_TRUE(book.answer({Kind::publish, "ocean", "p1"}));
  EXPECT_FALSE(book.answer({Kind::publish, "ocean", "p2"}));
  EXPECT_EQ(*book.answer({Kind::find, "ocean"}), "p1");
  EXPECT_TRUE(book.answer({Kind::forget, "ocean"}));
  EXPECT_FALSE(book.answer({Kind::find, "ocean"}));
  EXPECT_TRUE(book.answer({Kind::publish, "ocean", "p2"}));
}

TEST(NameService, HasAnEnd) {
  NameService book;
  const std::string large(1024 * 1024, 'x');
  int kept = 0;
  for (int i = 0; i < 20; ++i) {
    if (book.answer({Kind::publish, std::to_string(i), large})) ++kept;
  }
  EXPECT_EQ(kept, 15);  // 16 MiB, with the names
  EXPECT_TRUE(book.answer({Kind::forget, "3"}));
  EXPECT_TRUE(book.answer({Kind::publish, "again", large}));
}

TEST(Errands, AnswersSurviveTheTrip) {
  EXPECT_EQ(*read_answer(answer_text(std::string("12.3"))), "12.3");
  EXPECT_EQ(*read_answer(answer_text(std::string())), "");
  const auto no = read_answer(answer_text(fail(Code::limit, "too much")));
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().what(), "too much");
  EXPECT_FALSE(read_answer(""));
  EXPECT_FALSE(read_answer("12.3"));
}

}  // namespace
}  // namespace berth::launch
