#include "controller/resume_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/hostlist.h"

namespace berth::controller {
namespace {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string json_or_null(std::string_view text) {
  return text.empty() ? "null" : json_quoted(text);
}

std::string_view sharing_of(const job::Job& job) {
  return job.allocation.whole_nodes ? "NO" : "OK";
}

}  // namespace

std::string resume_text(const job::State& state, const std::vector<std::string>& nodes) {
  std::set<job::JobId> jobs;
  for (const std::string& name : nodes) {
    const job::NodeState* node = state.find_node(name);
    if (node != nullptr) jobs.insert(node->jobs.begin(), node->jobs.end());
  }
  std::string out = fmt::format("{{\n  \"all_nodes_resume\": {},\n  \"jobs\": [",
                                json_quoted(text::compress_hostlist(nodes)));
  std::string_view comma = "\n";
  for (const job::JobId id : jobs) {
    const job::Job* job = state.find(id);
    if (job == nullptr || !job->running) continue;
    std::vector<std::string> here;
    for (const std::string& name : job->nodes) {
      if (std::ranges::find(nodes, name) != nodes.end()) here.push_back(name);
    }
    out += fmt::format(
        "{}    {{\n      \"extra\": {},\n      \"features\": {},\n      \"job_id\": {},\n"
        "      \"nodes_alloc\": {},\n      \"nodes_resume\": {},\n      \"oversubscribe\": {},\n"
        "      \"partition\": {},\n      \"reservation\": {}\n    }}",
        comma, json_or_null(job->what->extra),
        json_or_null(job->what->text(request::Opt::constraint)), id,
        json_quoted(text::compress_hostlist(job->nodes)),
        json_quoted(text::compress_hostlist(here)), json_quoted(sharing_of(*job)),
        json_quoted(job->partition), json_or_null(job->what->reservation));
    comma = ",\n";
  }
  return out + "\n  ]\n}\n";
}

}  // namespace berth::controller
