// What help_text.h promises.
#include "command/help_text.h"

namespace berth::command {

std::string_view scontrol_help() {
  return R"(scontrol [OPTIONS] [COMMAND]      without COMMAND: a prompt

Looking
  show job[=ID] | step[=ID] | node[=LIST] | partition[=NAME] | config
  show licenses | topology | daemons | reservation[=NAME]
  show hostnames [LIST]           one name a line; inside a job: the job's nodes
  show hostlist NAMES             the short form ("-" or a /file: names from there)
  show hostlistsorted NAMES       the same, sorted
  completing                      jobs whose processes are not gone yet
  listjobs | liststeps [NODE]     what runs on this node
  explain job ID                  why a job waits, who has what it needs, what would start it now
  write batch_script ID [FILE|-]  the script of a job, to slurm-ID.sh
  ping | version | errnumstr NUMBER

Jobs (IDS: 12  12_3  12_[3-5]  12+1, with commas; or JobName=NAME)
  hold | uhold | release IDS
  requeue [Incomplete] IDS        requeuehold [Incomplete] [State=SpecialExit] IDS
  suspend | resume IDS
  top IDS                         first among your own jobs
  notify ID TEXT                  a line on the job's standard error
  wait_job ID                     until its nodes are ready
  update JobId=IDS KEY=VALUE…     keys as show job prints them
  update StepId=ID.STEP TimeLimit=TIME

Administration
  update NodeName=LIST State=DRAIN Reason="…" | RESUME | DOWN | UNDRAIN | FAIL | IDLE
  update NodeName=LIST State=POWER_UP | POWER_DOWN | POWER_DOWN_ASAP | POWER_DOWN_FORCE
  power up LIST | power down [asap|force] LIST          the same
  update NodeName=LIST Weight= | Features= | Comment= | Extra=
  update | create | delete PartitionName=NAME KEY=VALUE…
  create reservation [ReservationName=NAME] StartTime= Duration= Nodes= | NodeCnt= | TRES= Users=…
  update ReservationName=NAME KEY=VALUE… | skip     delete ReservationName=NAME
  reconfigure | shutdown | setdebug LEVEL
  token node=LIST [lifespan=SECONDS]           for machines to join with: berth join -
  token newnode=LIST [lifespan=SECONDS]        the same, for machines that slurm.conf does not name
  token [username=NAME] [lifespan=SECONDS]     SLURM_JWT=…, which says who calls where no munge does
  revoke node=LIST                their identities are void: a machine that was lost or stolen
  revoke username=NAME            the tokens he has are void

Options
  -a, --all         hidden partitions too       -d, --details    what a job holds on each node
  -o, --oneliner    one line a record           -Q, --quiet      no error messages
  -u, --uid=USER    act as that user (root)     --json           machine readable
  --future          nodes in state FUTURE too   -V, --version    --help
)";
}

std::string_view scancel_help() {
  return R"(scancel [OPTIONS] [JOB[_TASKS][.STEP]…]     ends jobs and steps, or sends them a signal

  12  12_3  12_[3-5]  12+1  12.0  12.batch     what to end
  without a job, one of these says which:
  -A, --account=NAME       -n, --name, --jobname=NAME    -p, --partition=NAME
  -q, --qos=NAME           -R, --reservation=NAME        -t, --state=PENDING|RUNNING|SUSPENDED
  -u, --user=NAME          --me                          -w, --nodelist=NODES
      --wckey=KEY          (with jobs: only those of them that match)

  -s, --signal=SIGNAL      send it instead of ending the job; it goes to the steps
  -b, --batch              to the batch script only
  -f, --full               to the batch script and all it started
  -H, --hurry              end at once, without waiting for the script
  -i, --interactive        ask before each job
  -Q, --quiet              no messages            -v, --verbose   say what is done
      --ctld               accepted: it is always the controller that sends
  -V, --version            --help
)";
}

}  // namespace berth::command
