// read_script: which language it is, and the limits on the whole.
#include "script/script.h"

#include "script/reader.h"
#include "script/scan.h"
#include "text/words.h"

namespace berth::script {
namespace {

/// "bash" of "#!/usr/bin/env -S bash -l"; "" without a #! line.
std::string interpreter_of(std::string_view text) {
  if (!text.starts_with("#!")) return {};
  const std::string_view line = text.substr(2, text.substr(2).find('\n'));
  std::string name;
  for (const std::string_view word : text::split(text::trim(line), ' ')) {
    if (word.empty()) continue;
    const std::string_view base = base_name(word);
    if (name == "env" && (word.starts_with('-') || word.find('=') != std::string_view::npos)) {
      continue;
    }
    if (!name.empty() && name != "env") break;
    name = base;
  }
  while (!name.empty() && is_blank(name.back())) name.pop_back();
  return name;
}

bool is_shell_name(std::string_view name) {
  return name.empty() || name == "sh" || name == "bash" || name == "dash" || name == "ksh" ||
         name == "zsh" || name == "ash";
}

}  // namespace

Script read_script(std::string_view text, const std::map<std::string, std::string>& variables,
                   const std::vector<std::string>& arguments) {
  Script script;
  const std::string interpreter = interpreter_of(text);
  if (!is_shell_name(interpreter)) {
    script.interpreter = interpreter;
    script.is_shell = false;
    script.notes.push_back("the script is for " + interpreter.substr(0, 100) +
                           ", not for a shell: what it starts is not known");
    return script;
  }
  if (text.size() > kMaxScript || text.find('\0') != std::string_view::npos) {
    script.interpreter = interpreter;
    script.truncated = true;
    script.notes.emplace_back(text.size() > kMaxScript ? "the script is longer than 4 MiB: not read"
                                                       : "the script is binary: not read");
    return script;
  }
  script = Reader(variables, arguments).read(text);
  script.interpreter = interpreter;
  return script;
}

}  // namespace berth::script
