// What scontrol of Slurm does and berth does not, each with what to do instead.
#include <array>

#include "command/scontrol_session.h"

namespace berth::command::scontrol {
namespace {

struct Refused {
  std::string_view group;
  std::string_view word;
  std::string_view instead;
};
constexpr std::array kRefused = {
    Refused{"command", "abort", "use scontrol shutdown"},
    Refused{"command", "cancel_reboot", "berth does not reboot nodes"},
    Refused{"command", "cluster", "one berth serves one cluster; run the command there"},
    Refused{"command", "dwstat", "berth has no burst buffers"},
    Refused{"command", "fsdampeningfactor", "berth has no fair share to dampen"},
    Refused{"command", "getaddrs", "`scontrol show node NAME` shows NodeAddr"},
    Refused{"command", "getent", "run getent on the node"},
    Refused{"command", "listpids", "run `ps` in the job, e.g. srun --overlap --jobid=ID ps"},
    Refused{"command", "pidinfo", "the cgroup in /proc/PID/cgroup names the job"},
    Refused{"command", "reboot",
            "drain the nodes (scontrol update NodeName=… State=DRAIN Reason=reboot), then reboot "
            "them"},
    Refused{"command", "schedloglevel", "use scontrol setdebug"},
    Refused{"command", "setdebugflags", "use scontrol setdebug debug"},
    Refused{"command", "takeover", "there is one controller; start it where it should run"},
    Refused{"show", "aliases", "`scontrol show node` shows NodeHostName"},
    Refused{
        "show", "assoc_mgr",
        "`sacctmgr show assoc` shows the one built-in account; `squeue -o \"%u %a\"` shows what "
        "jobs gave"},
    Refused{"show", "bbstat", "berth has no burst buffers"},
    Refused{"show", "burstbuffer", "berth has no burst buffers"},
    Refused{"show", "dwstat", "berth has no burst buffers"},
    Refused{"show", "federation", "one berth serves one cluster"},
    Refused{"show", "frontend", "berth has no front end nodes"},
    Refused{"show", "layouts", "`scontrol show node` shows the nodes"},
    Refused{"show", "slurmd", "`scontrol show node NAME` shows what its agent reported"},
};

}  // namespace

std::string_view instead_of(std::string_view group, std::string_view word) {
  for (const Refused& row : kRefused) {
    if (row.group == group && word.size() >= 4 && row.word.starts_with(word)) return row.instead;
  }
  return {};
}

}  // namespace berth::command::scontrol
