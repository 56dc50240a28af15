// berthd's command line.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::node {

struct Options {
  std::string conf;   // slurm.conf
  std::string spool;  // "" = SlurmdSpoolDir
  std::string run;    // "" = by net/paths.h
  std::string log;    // "" = SlurmdLogFile, else standard error
  std::string name;   // "" = the host's short name
  std::string nodes;  // --emulate: only these
  std::string join;   // a token, "-" = from standard input
  std::string home;   // with join: there is no slurm.conf, the controller's comes here
  bool foreground = false;
  bool emulate = false;
  bool print_hardware = false;  // -C
  bool print_gres = false;      // -G
  bool version = false;
  bool help = false;
};

Result<Options> read_options(std::span<const std::string> words);

inline constexpr std::string_view kUsage =
    "Usage: berthd [-f slurm.conf] [--spool DIR] [--run DIR] [-N NAME] [--log FILE] "
    "[--foreground]\n"
    "       berthd --emulate [--nodes HOSTLIST] …\n"
    "       berthd --join TOKEN [-f slurm.conf] [--spool DIR] [-N NAME]\n"
    "       berthd -C | -G\n"
    "The agent of a node, or with --emulate of all nodes of slurm.conf.\n"
    "  -f, --conf FILE    slurm.conf (SLURM_CONF, /etc/slurm/slurm.conf)\n"
    "      --spool DIR    records of jobs and steps (SlurmdSpoolDir)\n"
    "      --run DIR      sockets\n"
    "  -N, --name NAME    of this node (short host name)\n"
    "      --emulate      pretend to be the nodes of slurm.conf; no CPU masks are set\n"
    "      --nodes LIST   with --emulate: only these\n"
    "      --log FILE     instead of SlurmdLogFile\n"
    "  -D, --foreground   do not become a daemon\n"
    "      --join TOKEN   become a node of the cluster that made the token, and end; - reads it "
    "from\n"
    "                     standard input\n"
    "      --home DIR     with --join: take slurm.conf from the controller, keep all in DIR, and "
    "go on as\n"
    "                     the agent\n"
    "  -C                 print this machine as a line of slurm.conf, and end\n"
    "  -G                 print its generic resources as jobs would get them, and end\n"
    "  -V, --version\n"
    "  -h, --help\n";

}  // namespace berth::node
