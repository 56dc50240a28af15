// What field_limits.h promises.
#include "wire/field_limits.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <string>
#include <unordered_map>
#include <vector>

namespace berth::wire {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kShort = 128;        // words of our own
constexpr std::size_t kName = kKiB;        // one name, as Slurm
constexpr std::size_t kWords = 16 * kKiB;  // why something went wrong; 1 KiB of it is kept
constexpr std::size_t kPath = 4 * kKiB;    // PATH_MAX
constexpr std::size_t kWord = 128 * kKiB;  // an argument or a variable, as Linux
constexpr std::size_t kList = 64 * kKiB;   // a host list, as Slurm
constexpr std::size_t kNames = 10000;
constexpr std::size_t kScriptRow = SIZE_MAX;
/// Of fields that this program does not know: a newer one may have sent them.
constexpr std::size_t kUnknown = 64 * kKiB;
constexpr std::size_t kMostRows = 24;  // of one message

constexpr LimitedField kRows[] = {
#define BERTH_LIMITED(message) {#message, "", 0, 0, 0, 0, ""},
#define BERTH_TEXT(message, field, most) \
  {#message, #field, message::k##field##FieldNumber, most, 1, 0, ""},
#define BERTH_SCRIPT(message, field) \
  {#message, #field, message::k##field##FieldNumber, kScriptRow, 1, 0, ""},
#define BERTH_TEXTS(message, field, most, count, all) \
  {#message, #field, message::k##field##FieldNumber, most, count, all, ""},
#define BERTH_PART(message, field, type) \
  {#message, #field, message::k##field##FieldNumber, 0, 1, 0, #type},
#define BERTH_PARTS(message, field, type, count, all) \
  {#message, #field, message::k##field##FieldNumber, 0, count, all, #type},
#define BERTH_NUMBERS(message, field, count) \
  {#message, #field, message::k##field##FieldNumber, 0, count, 0, ""},
#include "wire/field_limits.def"
};

/// The rows of one message, by the numbers of fields.
struct Table {
  std::string_view message;
  std::vector<std::uint8_t> at;  // number → place in rows, from 1; 0 = unknown
  struct Row {
    const LimitedField* field = nullptr;
    const Table* part = nullptr;
  };
  std::vector<Row> rows;
};

class Tables {
 public:
  Tables() {
    for (const LimitedField& row : kRows) {
      Table& table = by_name_[row.message];
      table.message = row.message;
      if (row.name.empty()) continue;
      if (table.at.size() <= row.number) table.at.resize(row.number + 1);
      table.rows.push_back({&row, row.part.empty() ? nullptr : &by_name_[row.part]});
      table.at[row.number] = static_cast<std::uint8_t>(table.rows.size());
    }
#define BERTH_MESSAGE(number, type)                                     \
  if (const auto found = by_name_.find(#type); found != by_name_.end()) \
    by_kind_[Kind::type] = &found->second;
#include "wire/messages.def"
#undef BERTH_MESSAGE
  }
  [[nodiscard]] const Table* of(Kind kind) const {
    const auto found = by_kind_.find(kind);
    return found == by_kind_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string_view, Table> by_name_;
  std::unordered_map<Kind, const Table*> by_kind_;
};

/// "SubmitLine" → "submit line".
std::string in_words(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !out.empty()) out += ' ';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::unexpected<Error> too_long(const LimitedField& field, std::string what) {
  return fail(
      Code::too_long, std::string(slurm_text(Code::too_long)),
      fmt::format("{} ({}): {}; docs/limits.md", in_words(field.name), field.message, what));
}

std::unexpected<Error> unreadable() {
  return fail(Code::protocol, std::string(slurm_text(Code::protocol)));
}

bool take_varint(std::string_view& in, std::uint64_t& value, std::size_t most_bytes = 10) {
  value = 0;
  for (std::size_t i = 0; i < most_bytes && i < in.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(in[i]);
    value |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if ((byte & 0x80U) == 0) {
      in.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

/// The key of a field. protobuf reads five bytes and drops what is beyond 32 bits: such a key would
/// be another field there than here.
bool take_key(std::string_view& in, std::uint64_t& key) {
  return take_varint(in, key, 5) && key <= UINT32_MAX && key >> 3U != 0;
}

class Walk {
 public:
  explicit Walk(std::size_t most_script) : most_script_(most_script) {}

  // The table has no cycles: messages are nested as deep as its rows.
  Result<void> message(const Table& table, std::string_view in) {
    struct Seen {
      std::size_t count = 0;
      std::size_t bytes = 0;
    };
    std::array<Seen, kMostRows> seen{};
    std::size_t unknown = 0;
    while (!in.empty()) {
      const std::size_t before = in.size();
      std::uint64_t key = 0;
      std::uint64_t length = 0;
      if (!take_key(in, key)) return unreadable();
      const std::uint64_t number = key >> 3U;
      const std::uint8_t place = number < table.at.size() ? table.at[number] : 0;
      switch (key & 7U) {
        case 0: {  // a number
          if (!take_varint(in, length)) return unreadable();
          if (place == 0) {
            unknown += before - in.size();
            if (unknown > kUnknown) return not_known(table);
            continue;
          }
          const LimitedField& field = *table.rows[place - 1U].field;
          if (++seen[place].count > field.count) return too_many(field);
          continue;
        }
        case 1:
        case 5: {
          const std::size_t bytes = (key & 7U) == 1 ? 8 : 4;
          if (in.size() < bytes) return unreadable();
          in.remove_prefix(bytes);
          unknown += before - in.size();
          if (unknown > kUnknown) return not_known(table);
          continue;
        }
        case 2:
          break;
        default:
          return unreadable();
      }
      if (!take_varint(in, length) || length > in.size()) return unreadable();
      const std::string_view value = in.substr(0, length);
      in.remove_prefix(length);
      if (place == 0) {
        unknown += before - in.size();
        if (unknown > kUnknown) return not_known(table);
        continue;
      }
      const Table::Row& row = table.rows[place - 1U];
      const LimitedField& field = *row.field;
      Seen& so_far = seen[place];
      const bool numbers = field.most == 0 && row.part == nullptr;
      so_far.count += numbers ? varints(value) : 1;
      so_far.bytes += value.size();
      if (so_far.count > field.count) return too_many(field);
      const std::size_t most = field.most == kScriptRow ? most_script_ : field.most;
      if (!numbers && row.part == nullptr && value.size() > most) {
        return too_long(field, fmt::format("{} bytes, at most {} are taken", value.size(), most));
      }
      if (field.all > 0 && so_far.bytes > field.all) {
        return too_long(field, fmt::format("more than {} bytes in all", field.all));
      }
      if (row.part != nullptr) {
        if (auto good = message(*row.part, value); !good) return good;
      }
    }
    return {};
  }

 private:
  static std::unexpected<Error> too_many(const LimitedField& field) {
    return too_long(field, fmt::format("more than {} of them", field.count));
  }
  static std::unexpected<Error> not_known(const Table& table) {
    return fail(Code::too_long, std::string(slurm_text(Code::too_long)),
                fmt::format("{} has fields that are not known here", table.message));
  }
  static std::size_t varints(std::string_view packed) {
    std::size_t count = 0;
    for (const char c : packed) count += (static_cast<std::uint8_t>(c) & 0x80U) == 0 ? 1 : 0;
    return count;
  }
  std::size_t most_script_;
};

}  // namespace

Result<void> check_fields(Kind kind, std::string_view payload, std::size_t most_script) {
  static const Tables tables;
  const Table* table = tables.of(kind);
  if (table == nullptr) return {};
  return Walk(most_script).message(*table, payload);
}

std::span<const LimitedField> limited_fields() {
  return kRows;
}

}  // namespace berth::wire
