// Reads option words with the names of request/options.def. Lenient: it serves messages, not parsing.
#include "lint/option_names.h"

#include <algorithm>
#include <array>

#include "text/words.h"

namespace berth::lint {
namespace {

using request::Opt;

using request::Command;

enum class Value { none, required, optional };

// The commands of a row, as request/options.def writes them.
constexpr unsigned B = 1, A = 2, R = 4;

unsigned bit_of(Command command) {
  return command == Command::sbatch ? B : command == Command::salloc ? A : R;
}

struct Name {
  Opt opt;
  std::string_view name;
  char letter;
  unsigned letter_in;
  Value value;
  unsigned commands;
};

Value value_of(Opt opt);

const std::vector<Name>& names() {
  static const std::vector<Name> kNames = [] {
    std::vector<Name> list;
#define BERTH_OPTION(id, name, letter, letter_in, arg, commands, ...) \
  list.push_back({Opt::id, name, letter, letter_in, Value::arg, commands});
#define BERTH_ALIAS(id, name, commands) \
  list.push_back({Opt::id, name, '\0', 0, value_of(Opt::id), commands});
#include "request/options.def"
#undef BERTH_OPTION
#undef BERTH_ALIAS
    return list;
  }();
  return kNames;
}

Value value_of(Opt opt) {
  switch (opt) {
#define BERTH_OPTION(id, name, letter, letter_in, arg, ...) \
  case Opt::id:                                             \
    return Value::arg;
#include "request/options.def"
#undef BERTH_OPTION
    case Opt::count_:
      break;
  }
  return Value::none;
}

/// Exact name, or the one option that `text` abbreviates.
const Name* find_long(std::string_view text, unsigned command) {
  const Name* found = nullptr;
  for (const Name& name : names()) {
    if ((name.commands & command) == 0) continue;
    if (name.name == text) return &name;
    if (text.size() < 2 || !name.name.starts_with(text)) continue;
    if (found != nullptr && found->opt != name.opt) return nullptr;
    found = &name;
  }
  return found;
}

const Name* find_letter(char letter, unsigned command) {
  const auto at = std::ranges::find_if(names(), [&](const Name& name) {
    return name.letter == letter && (name.letter_in & command) != 0;
  });
  return letter == '\0' || at == names().end() ? nullptr : &*at;
}

class Reader {
 public:
  Reader(std::span<const std::string> words, Command command)
      : words_(words), command_(bit_of(command)) {}

  RawOptions read() {
    for (; at_ < words_.size(); ++at_) {
      const std::string_view word = words_[at_];
      if (word.starts_with("--") && word.size() > 2) {
        long_option(word.substr(2));
      } else if (word.starts_with('-') && word.size() > 1) {
        letters(word.substr(1));
      } else if (!result_.first_plain) {
        result_.first_plain = at_;
      }
    }
    return std::move(result_);
  }

 private:
  void put(const Name& name, std::string_view attached, bool has_attached) {
    std::string value(attached);
    if (!has_attached && name.value == Value::required && at_ + 1 < words_.size()) {
      value = words_[++at_];
    }
    result_.options.push_back({name.opt, std::move(value)});
  }

  void long_option(std::string_view word) {
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string_view::npos;
    const Name* name = find_long(word.substr(0, equals), command_);
    if (name == nullptr) {
      result_.unknown.emplace_back(words_[at_]);
      return;
    }
    put(*name, has_value ? word.substr(equals + 1) : std::string_view(), has_value);
  }

  void letters(std::string_view word) {
    for (std::size_t i = 0; i < word.size(); ++i) {
      const Name* name = find_letter(word[i], command_);
      if (name == nullptr) {
        result_.unknown.emplace_back(words_[at_]);
        return;
      }
      if (name->value == Value::none) {
        put(*name, "", true);
        continue;
      }
      const std::string_view rest = word.substr(i + 1);
      put(*name, rest, !rest.empty());
      return;
    }
  }

  std::span<const std::string> words_;
  unsigned command_;
  std::size_t at_ = 0;
  RawOptions result_;
};

}  // namespace

RawOptions read_options(std::span<const std::string> words, Command command) {
  return Reader(words, command).read();
}

std::string_view long_name(Opt opt) {
  const auto at = std::ranges::find(names(), opt, &Name::opt);
  return at == names().end() ? std::string_view() : at->name;
}

std::string nearest_name(std::string_view name) {
  std::vector<std::string> known;
  for (const Name& each : names()) known.emplace_back(each.name);
  return text::nearest(name, known);
}

}  // namespace berth::lint
