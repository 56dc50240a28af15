// MPI_Publish_name, MPI_Lookup_name: the questions that supervisors send to srun, and the book in
// which srun, where all tasks of a step meet, keeps the answers.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::launch {

struct NameQuestion {
  enum class Kind : char { publish = '+', forget = '-', find = '?' };
  Kind kind = Kind::find;
  std::string name;
  std::string port = {};  // of a name that is published
  friend bool operator==(const NameQuestion&, const NameQuestion&) = default;
};

/// For the data of an errand on kNameChannel. What follows a NUL in a name is not part of it.
std::string question_text(const NameQuestion& question);
/// What question_text() wrote; an error for anything that it does not write.
Result<NameQuestion> read_question(std::string_view text);

class NameService {
 public:
  /// A port for Kind::find, else nothing of use; an error: the name is taken, unknown, or the book
  /// is full.
  Result<std::string> answer(const NameQuestion& question);

 private:
  std::map<std::string, std::string> ports_;
  std::size_t bytes_ = 0;
};

}  // namespace berth::launch
