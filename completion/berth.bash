# Bash completion for berth's commands. Source it, or install it as
# /usr/share/bash-completion/completions/berth with links named after the commands.
#
# Partitions, nodes and job ids come from the running cluster (sinfo, squeue); without one there are
# only words. Nothing here waits for long: the commands answer or fail at once.

_berth_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "${2-$cur}"); }

# Completes the last of a comma-separated list.
_berth_list() {
    local given=${cur%"${cur##*,}"}
    mapfile -t COMPREPLY < <(compgen -P "$given" -W "$1" -- "${cur##*,}")
    compopt -o nospace 2> /dev/null
}

_berth_partitions() { sinfo -h -o %R 2> /dev/null | sort -u; }
_berth_nodes() { sinfo -h -N -o %N 2> /dev/null | sort -u; }
_berth_jobs() { squeue -h --me -o %i 2> /dev/null; }
_berth_jobs_in() { squeue -h --me -t "$1" -o %i 2> /dev/null; }
_berth_features() { sinfo -h -o %f 2> /dev/null | tr ',' '\n' | sort -u; }

# The option at hand: `name` and `cur` of "--name=cur", "--name cur" and "-n cur". COMP_WORDBREAKS
# has "=", so "--name=val" arrives in three words.
_berth_option() {
    name=
    cur=${COMP_WORDS[COMP_CWORD]}
    local before=${COMP_WORDS[COMP_CWORD-1]}
    if [[ $cur == "=" ]]; then
        name=$before
        cur=
    elif [[ $before == "=" && $COMP_CWORD -ge 2 ]]; then
        name=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $before == -* ]]; then
        name=$before
    fi
}

# Values that several commands share. False: nothing is known about this option.
_berth_value() {
    case $name in
        --partition | -p) _berth_list "$(_berth_partitions)" ;;
        --nodelist | -w | --exclude | -x) _berth_list "$(_berth_nodes)" ;;
        --jobid | --job | --jobs | -j) _berth_list "$(_berth_jobs)" ;;
        --constraint | -C | --prefer) _berth_words "$(_berth_features)" ;;
        --user | -u | --uid) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
        --gid) mapfile -t COMPREPLY < <(compgen -g -- "$cur") ;;
        --output | --error | --input | --export-file | --nodefile | -F | -o | -e | -i)
            mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        --chdir | -D) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --gpu-bind) _berth_words "closest map: mask: none per_task: single:" ;;
        --cpu-bind) _berth_list "cores ldoms map_cpu: mask_cpu: none quiet rank sockets threads verbose" ;;
        --gres-flags) _berth_list "disable-binding enforce-binding allow-task-sharing no-task-sharing" ;;
        --hint) _berth_words "compute_bound memory_bound multithread nomultithread" ;;
        --distribution | -m) _berth_words "arbitrary block block:block block:cyclic cyclic plane=" ;;
        --mpi) _berth_words "none pmi2 pmix list" ;;
        --open-mode) _berth_words "append truncate" ;;
        --mail-type)
            _berth_list "NONE BEGIN END FAIL REQUEUE ALL TIME_LIMIT TIME_LIMIT_90 ARRAY_TASKS" ;;
        --dependency | -d)
            _berth_words "after: afterany: afternotok: afterok: aftercorr: singleton" ;;
        --exclusive) _berth_words "user" ;;
        --signal | -s) _berth_words "$(compgen -A signal)" ;;
        *) return 1 ;;
    esac
}

_berth_submit() {
    local cur name
    _berth_option
    if [[ -n $name ]] && _berth_value; then return; fi
    if [[ $cur == -* ]]; then
        _berth_words "$1"
        [[ ${COMPREPLY-} == *= ]] && compopt -o nospace 2> /dev/null
        return
    fi
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    [[ $2 == commands ]] && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$cur")
}

_sbatch() {
    _berth_submit "
        --nodes= --ntasks= --ntasks-per-node= --tasks-per-node= --ntasks-per-core=
        --ntasks-per-socket= --ntasks-per-gpu= --ntasks-per-tres= --cpus-per-task= --mincpus=
        --extra-node-info= --sockets-per-node= --cores-per-socket= --threads-per-core= --hint=
        --overcommit --oversubscribe --share --exclusive --mem= --mem-per-cpu= --mem-per-gpu= --tmp=
        --gres= --gpus= --gpus-per-node= --gpus-per-socket= --gpus-per-task= --tres-per-task= --gpu-mem= --gpu-mem-min= --gpu-idle-timeout=
        --cpus-per-gpu= --gpu-bind= --tres-bind= --gres-flags= --gpu-freq= --nodelist= --nodefile=
        --exclude= --partition= --constraint= --prefer= --contiguous --spread-job --use-min-nodes
        --distribution= --mem-bind= --switches= --batch= --time= --time-min= --begin= --deadline=
        --delay-boot= --stepmgr --wrap= --job-name= --output= --error= --input= --open-mode=
        --chdir= --export= --export-file= --get-user-env --array= --propagate --ignore-pbs
        --account= --qos= --reservation= --comment= --extra= --wckey= --mail-type= --mail-user=
        --nice --priority= --hold --dependency= --licenses= --signal= --no-kill --requeue
        --no-requeue --kill-on-invalid-dep= --wait --wait-all-nodes= --test-only --explain --parsable
        --profile= --acctg-freq= --oom-kill-step --mem-update= --cpu-freq= --core-spec=
        --thread-spec= --uid= --gid= --segment= --consolidate-segments --spread-segments --power=
        --quiet --verbose --help --usage --version
    " files
}
_salloc() {
    _berth_submit "
        --nodes= --ntasks= --ntasks-per-node= --tasks-per-node= --ntasks-per-core=
        --ntasks-per-socket= --ntasks-per-gpu= --ntasks-per-tres= --cpus-per-task= --mincpus=
        --extra-node-info= --sockets-per-node= --cores-per-socket= --threads-per-core= --hint=
        --overcommit --oversubscribe --share --exclusive --mem= --mem-per-cpu= --mem-per-gpu= --tmp=
        --gres= --gpus= --gpus-per-node= --gpus-per-socket= --gpus-per-task= --tres-per-task= --gpu-mem= --gpu-mem-min= --gpu-idle-timeout=
        --cpus-per-gpu= --gpu-bind= --tres-bind= --gres-flags= --gpu-freq= --nodelist= --nodefile=
        --exclude= --partition= --constraint= --prefer= --contiguous --spread-job --use-min-nodes
        --distribution= --mem-bind= --switches= --time= --time-min= --begin= --deadline= --immediate
        --delay-boot= --stepmgr --job-name= --chdir= --account= --qos= --reservation= --comment=
        --extra= --wckey= --mail-type= --mail-user= --nice --priority= --hold --dependency=
        --licenses= --signal= --no-kill --wait-all-nodes= --no-shell --kill-command --bell --no-bell
        --profile= --acctg-freq= --oom-kill-step --mem-update= --cpu-freq= --core-spec=
        --thread-spec= --segment= --consolidate-segments --spread-segments --power= --quiet
        --verbose --help --usage --version
    " commands
}
_srun() {
    _berth_submit "
        --nodes= --ntasks= --ntasks-per-node= --tasks-per-node= --ntasks-per-core=
        --ntasks-per-socket= --ntasks-per-gpu= --ntasks-per-tres= --cpus-per-task= --mincpus=
        --extra-node-info= --sockets-per-node= --cores-per-socket= --threads-per-core= --hint=
        --overcommit --oversubscribe --share --exclusive --mem= --mem-per-cpu= --mem-per-gpu= --tmp=
        --gres= --gpus= --gpus-per-node= --gpus-per-socket= --gpus-per-task= --tres-per-task= --gpu-mem= --gpu-mem-min= --gpu-idle-timeout=
        --cpus-per-gpu= --gpu-bind= --tres-bind= --gres-flags= --gpu-freq= --accel-bind= --nodelist=
        --nodefile= --exclude= --partition= --constraint= --prefer= --contiguous --spread-job
        --use-min-nodes --distribution= --relative= --cpu-bind= --mem-bind= --switches= --time=
        --time-min= --begin= --deadline= --immediate --delay-boot= --jobid= --exact --whole
        --overlap --external-launcher --het-group= --pack-group= --multi-prog --pty --label
        --unbuffered --kill-on-bad-exit --wait= --mpi= --resv-ports --prolog= --epilog=
        --task-prolog= --task-epilog= --bcast --bcast-exclude= --send-libs --compress --preserve-env
        --disable-status --quit-on-interrupt --ignore-signals= --wait-for-children --stepmgr
        --threads= --msg-timeout= --treewidth= --slurmd-debug= --job-name= --output= --error=
        --input= --open-mode= --chdir= --export= --propagate --account= --qos= --reservation=
        --comment= --extra= --wckey= --mail-type= --mail-user= --nice --priority= --hold
        --dependency= --licenses= --signal= --no-kill --test-only --parsable --profile=
        --acctg-freq= --oom-kill-step --mem-update= --cpu-freq= --core-spec= --thread-spec=
        --segment= --consolidate-segments --spread-segments --power= --quiet --verbose --help
        --usage --version
    " commands
}

_squeue() {
    local cur name
    _berth_option
    case $name in
        --states | --state | -t)
            _berth_list "all PENDING RUNNING SUSPENDED COMPLETING CONFIGURING COMPLETED CANCELLED
                FAILED TIMEOUT NODE_FAIL OUT_OF_MEMORY REQUEUED" ;;
        *)
            if [[ -n $name ]] && _berth_value; then return; fi
            _berth_words "--account= --all --array --help --format= --Format= --iterate= --jobs= --json
                --long --me --name= --noheader --nodelist= --partition= --priority --sort= --start --why
                --states= --steps= --user= --version" ;;
    esac
}

_sinfo() {
    local cur name
    _berth_option
    case $name in
        --states | -t) _berth_list "idle alloc mix down drain drained draining fail maint unknown" ;;
        *)
            if [[ -n $name ]] && _berth_value; then return; fi
            _berth_words "--all --dead --exact --format= --Format= --help --iterate= --json --list-reasons
                --long --Node --nodes= --noheader --partition= --responding --sort= --states=
                --summarize --version" ;;
    esac
}

_sacct() {
    local cur name
    _berth_option
    case $name in
        --state | -s) _berth_list "PENDING RUNNING COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL" ;;
        *)
            if [[ -n $name ]] && _berth_value; then return; fi
            _berth_words "--accounts= --allocations --allusers --batch-script --brief --delimiter=
                --duplicates --endtime= --env-vars --format= --helpformat --jobs= --json --long --name=
                --nodelist= --noheader --parsable --parsable2 --partition= --starttime= --state=
                --units= --user= --version" ;;
    esac
}

_scancel() {
    local cur name
    _berth_option
    case $name in
        --state | -t) _berth_words "PENDING RUNNING SUSPENDED" ;;
        *)
            if [[ -n $name ]] && _berth_value; then return; fi
            if [[ $cur == -* ]]; then
                _berth_words "--account= --batch --ctld --full --help --hurry --interactive --jobname= --me
                    --name= --nodelist= --partition= --qos= --quiet --reservation= --signal= --state=
                    --user= --verbose --version --wckey="
            else
                _berth_words "$(_berth_jobs)"
            fi ;;
    esac
}

_scontrol_update() {
    local words=${COMP_WORDS[*]}
    case $name in
        JobId) _berth_list "$(_berth_jobs)" && return ;;
        NodeName) _berth_list "$(_berth_nodes)" && return ;;
        PartitionName | Partition) _berth_words "$(_berth_partitions)" && return ;;
        State)
            [[ $words == *gpu* ]] && _berth_words "DRAIN RESUME"
            [[ $words == *NodeName* ]] && _berth_words "DOWN DRAIN FAIL IDLE RESUME UNDRAIN"
            [[ $words == *PartitionName* ]] && _berth_words "UP DOWN DRAIN INACTIVE"
            return ;;
    esac
    case $words in
        *JobId=* | *"JobId ="*)
            _berth_words "Account= ArrayTaskThrottle= Comment= Contiguous= CoreSpec= CPUsPerTask= Deadline=
                Dependency= EndTime= ExcNodeList= Extra= Features= GpuIdleTimeout= Gres= JobName= Licenses= MailType=
                MailUser= MinCPUsNode= MinMemoryCPU= MinMemoryNode= MinTmpDiskNode= Nice= NodeList=
                NumNodes= NumTasks= OverSubscribe= Partition= Prefer= Priority= QOS= ReqNodeList= Requeue=
                StartTime= StdErr= StdIn= StdOut= Switches= TasksPerNode= TimeLimit= TimeMin= WCKey=
                WorkDir=" ;;
        *NodeName*) _berth_words "Comment= Extra= Features= Reason= State= Weight=" ;;
        *PartitionName*)
            _berth_words "AllowAccounts= AllowGroups= Default= DefaultTime= DefMemPerCPU= DefMemPerNode=
                GpuIdleTimeout= Hidden= MaxGpuIdleTimeout= MaxMemPerCPU= MaxMemPerNode= MaxNodes= MaxTime=
                MinNodes= Nodes= PriorityTier= RootOnly= State=" ;;
        *StepId*) _berth_words "TimeLimit=" ;;
        *gpu*) _berth_words "Reason= State=" ;;
        *) _berth_words "JobId= NodeName= PartitionName= StepId= gpu=" ;;
    esac
    compopt -o nospace 2> /dev/null
}

_scontrol() {
    local cur name i command='' entity=''
    _berth_option
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -* || ${COMP_WORDS[i]} == "=" ]] && continue
        if [[ -z $command ]]; then command=${COMP_WORDS[i]}; elif [[ -z $entity ]]; then entity=${COMP_WORDS[i]}; fi
    done
    if [[ $cur == -* ]]; then
        _berth_words "--all --details --future --help --hide --json --oneliner --quiet --uid= --version"
        return
    fi
    case $command in
        "") _berth_words "completing create delete errnumstr explain help hold listjobs liststeps notify ping
            power reconfigure release requeue requeuehold resume setdebug show shutdown suspend top uhold update
            version wait_job write" ;;
        show)
            case $entity in
                "") _berth_words "config daemons hostlist hostlistsorted hostnames job licenses node partition
                    reservation step topology" ;;
                job* | step*) _berth_words "$(_berth_jobs)" ;;
                node*) _berth_words "$(_berth_nodes)" ;;
                part*) _berth_words "$(_berth_partitions)" ;;
            esac ;;
        update | create | delete) _scontrol_update ;;
        hold | uhold | release | top) _berth_words "$(_berth_jobs_in PENDING)" ;;
        suspend | requeue | requeuehold) _berth_words "$(_berth_jobs_in RUNNING)" ;;
        resume) _berth_words "$(_berth_jobs_in SUSPENDED)" ;;
        power)
            if [[ -z $entity ]]; then _berth_words "up down"; else _berth_words "asap force $(_berth_nodes)"; fi ;;
        notify | wait_job) _berth_words "$(_berth_jobs)" ;;
        explain)
            if [[ -z $entity ]]; then _berth_words "job"; else _berth_words "$(_berth_jobs_in PENDING)"; fi ;;
        write)
            if [[ -z $entity ]]; then _berth_words "batch_script"; else _berth_words "$(_berth_jobs)"; fi ;;
        setdebug) _berth_words "quiet fatal error info verbose debug debug2 debug3" ;;
        shutdown) _berth_words "controller" ;;
    esac
}

_sattach() { local cur name; _berth_option; _berth_words "--error-filter= --help --input-filter= --label --layout --output-filter= --pty --quiet --version $(_berth_jobs)"; }
_sbcast() {
    local cur name
    _berth_option
    if [[ $cur == -* ]]; then
        _berth_words "--compress --exclude= --fanout= --force --help --jobid= --preserve --send-libs --size= --timeout= --version"
    else
        compopt -o filenames 2> /dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}
_sdiag() { local cur name; _berth_option; _berth_words "--all --help --json --reset --version"; }
_sprio() {
    local cur name
    _berth_option
    _berth_words "--clusters= --format= --help --jobs= --long --noheader --norm --partition= --sort= --user= --version --weights"
}

_sacctmgr() {
    local cur name
    _berth_option
    case $COMP_CWORD in
        1) _berth_words "list show --help --noheader --parsable --parsable2 --version" ;;
        2) _berth_words "account association cluster qos user" ;;
        *) _berth_words "format= where withassoc user= account= cluster= --associations --noheader --parsable --parsable2" ;;
    esac
}
_sshare() {
    local cur name
    _berth_option
    if [[ -n $name ]] && _berth_value; then return; fi
    _berth_words "--accounts= --all --clusters= --format= --help --helpformat --long --noheader --parsable --parsable2
        --partition --users= --Users --version"
}

_sstat() {
    local cur name
    _berth_option
    _berth_words "--allsteps --format= --help --helpformat --jobs= --noconvert --noheader --parsable --parsable2 --pidformat
        --usage --verbose --version"
}

# berth COMMAND …: the same as the command itself.
_berth() {
    if [[ $COMP_CWORD -eq 1 ]]; then
        local cur=${COMP_WORDS[1]}
        _berth_words "down explain hardware help power sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol sdiag simulate
            sinfo sprio squeue srun sshare sstat status up --version --help"
        return
    fi
    local command=${COMP_WORDS[1]}
    case $command in
        sacct | sacctmgr | salloc | sattach | sbatch | sbcast | scancel | scontrol | sdiag | sinfo | sprio | squeue | srun | \
            sshare | sstat)
            COMP_WORDS=("${COMP_WORDS[@]:1}")
            COMP_CWORD=$((COMP_CWORD - 1))
            "_$command" ;;
        *)
            local cur=${COMP_WORDS[COMP_CWORD]}
            case $command in
                hardware) _berth_words "--from= --help --json --record" ;;
                explain) _berth_words "--all --busy= --conf= --emulate= --help --json --verbose" ;;
                simulate)
                    _berth_words "--against= --against-set= --conf= --emulate= --format= --help --html= --jobs=
                        --json= --limit-factor= --nodes= --priorities --seed= --set= --synthetic= --trace=" ;;
                up) _berth_words "--emulate= --help" ;;
                *) _berth_words "--help" ;;
            esac
            [[ $cur != -* ]] && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur") ;;
    esac
}

for _berth_command in berth sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol sdiag sinfo sprio squeue srun sshare sstat; do
    complete -F "_$_berth_command" "$_berth_command"
done
unset _berth_command
