// scontrol explain job ID: why a job waits, in words and as JSON.
#include <fmt/format.h>

#include "command/scontrol_session.h"
#include "command/why_text.h"
#include "text/words.h"
#include "wire/job_names.h"

namespace berth::command::scontrol {

int explain(Session& session, Words words) {
  const std::string what = text::to_lower(words.front());
  const bool named = what == "job" || what == "jobid";
  if (named && words.size() < 2) return session.complain("too few arguments for keyword:explain");
  std::string id = named ? words[1] : words.front();
  if (const auto equals = id.find('='); equals != id.npos) id = id.substr(equals + 1);
  const auto name = wire::parse_job_name(id);
  if (!name) return session.complain(fmt::format("Invalid job id specified: {}", id));
  wire::ExplainJob ask;
  *ask.mutable_job() = *name;
  const Result<wire::JobExplained> reply = session.ask<wire::JobExplained>(ask);
  if (!reply) return session.complain("slurm_explain_job error", reply.error());
  if (session.json) {
    JsonText json;
    why_json(*reply, json);
    session.out += std::move(json).done();
    return 0;
  }
  Shown shown;
  shown.now = session.style.now;
  shown.times = session.style.times;
  session.out += why_text(*reply, shown);
  return 0;
}

}  // namespace berth::command::scontrol
