#include "job/dependency.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "text/number.h"
#include "text/words.h"

namespace berth::job {
namespace {

constexpr std::array<std::pair<std::string_view, DependencyKind>, 6> kKinds = {{
    {"after", DependencyKind::after},
    {"afterany", DependencyKind::afterany},
    {"afterok", DependencyKind::afterok},
    {"afternotok", DependencyKind::afternotok},
    {"aftercorr", DependencyKind::aftercorr},
    {"singleton", DependencyKind::singleton},
}};

std::unexpected<Error> problem(std::string_view part) {
  return fail(
      Code::dependency_problem, std::string(slurm_text(Code::dependency_problem)),
      fmt::format("cannot read \"{}\"; a dependency is type:job[:job…], joined by , or ?", part));
}

Met strip_state(std::string_view& item) {
  for (const auto& [word, met] :
       {std::pair{"(unfulfilled)", Met::no}, {"(failed)", Met::never}, {"(null)", Met::no}}) {
    if (item.ends_with(word)) {
      item.remove_suffix(std::string_view(word).size());
      return met;
    }
  }
  return Met::no;
}

/// "12", "12_3", "12_*", "12+5".
std::optional<Clause> read_target(std::string_view item, DependencyKind kind) {
  Clause clause;
  clause.kind = kind;
  clause.met = strip_state(item);
  if (const auto plus = item.find('+'); plus != item.npos) {
    const auto minutes = text::parse_number(item.substr(plus + 1), 1U << 24U);
    if (!minutes || kind != DependencyKind::after) return std::nullopt;
    clause.minutes = static_cast<std::uint32_t>(*minutes);
    item = item.substr(0, plus);
  }
  if (const auto bar = item.find('_'); bar != item.npos) {
    const std::string_view task = item.substr(bar + 1);
    if (task == "*") {
      clause.all_tasks = true;
    } else if (const auto number = text::parse_number(task, UINT32_MAX)) {
      clause.task = static_cast<std::uint32_t>(*number);
    } else {
      return std::nullopt;
    }
    item = item.substr(0, bar);
  }
  const auto id = text::parse_number(item, UINT32_MAX);
  if (!id || *id == 0) return std::nullopt;
  clause.job = static_cast<JobId>(*id);
  return clause;
}

bool read_part(std::string_view part, Dependency& out) {
  const auto colon = part.find(':');
  const std::string_view word = part.substr(0, colon);
  const auto* const kind = std::ranges::find_if(kKinds, [&](const auto& known) {
    return text::equal_ignoring_case(known.first, word.substr(0, word.find('(')));
  });
  if (kind == kKinds.end()) {  // bare ids are afterany
    for (const std::string_view item : text::split(part, ':')) {
      auto clause = read_target(item, DependencyKind::afterany);
      if (!clause) return false;
      out.clauses.push_back(*clause);
    }
    return true;
  }
  if (kind->second == DependencyKind::singleton) {
    Clause clause;
    clause.kind = DependencyKind::singleton;
    out.clauses.push_back(clause);
    return colon == part.npos;
  }
  if (colon == part.npos) return false;
  for (const std::string_view item : text::split(part.substr(colon + 1), ':')) {
    auto clause = read_target(item, kind->second);
    if (!clause) return false;
    out.clauses.push_back(*clause);
  }
  return true;
}

std::string target_text(const Clause& clause) {
  if (clause.kind == DependencyKind::singleton) return "singleton";
  std::string out;
  for (const auto& [word, kind] : kKinds) {
    if (kind == clause.kind) out = word;
  }
  out += fmt::format(":{}", clause.job);
  if (clause.all_tasks) out += "_*";
  if (clause.task) out += fmt::format("_{}", *clause.task);
  if (clause.minutes > 0) out += fmt::format("+{}", clause.minutes);
  return out;
}

}  // namespace

Met Dependency::met() const {
  if (clauses.empty()) return Met::yes;
  const auto count = [&](Met met) { return std::ranges::count(clauses, met, &Clause::met); };
  const auto size = static_cast<std::ptrdiff_t>(clauses.size());
  if (any) return count(Met::yes) > 0 ? Met::yes : count(Met::never) == size ? Met::never : Met::no;
  if (count(Met::never) > 0) return Met::never;
  return count(Met::yes) == size ? Met::yes : Met::no;
}

std::string Dependency::text() const {
  std::string out;
  for (const Clause& clause : clauses) {
    if (clause.met == Met::yes) continue;
    if (!out.empty()) out += any ? '?' : ',';
    out += target_text(clause) + (clause.met == Met::never ? "(failed)" : "(unfulfilled)");
  }
  return out;
}

Result<Dependency> parse_dependency(std::string_view text) {
  Dependency out;
  if (text.empty()) return out;
  out.any = text.find('?') != text.npos;
  if (out.any && text.find(',') != text.npos) return problem(text);
  for (const std::string_view part : text::split(text, out.any ? '?' : ',')) {
    if (part.empty() || !read_part(part, out)) return problem(part);
  }
  return out;
}

}  // namespace berth::job
