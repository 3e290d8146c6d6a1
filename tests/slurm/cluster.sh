#!/usr/bin/env bash
# A Slurm of one's own on the loopback address: munged, slurmctld and slurmd from Debian's packages slurm-wlm
# and munge, all of whose files are in one folder.
#
#   cluster.sh start FOLDER [CPUS [NODES]]   waits until it takes jobs; then: export SLURM_CONF=FOLDER/slurm.conf
#   cluster.sh stop FOLDER                   ends what start began, and nothing else
#
# Exit 77 where the packages are missing or the daemons can't run: the reason is on standard error.
# CPUS (2) is what each of the NODES (1) claims to have. EXTRA_CONF is added to slurm.conf as it is.
set -euo pipefail

skip() { printf 'slurm: skipped: %s\n' "$*" >&2; exit 77; }

wait_for() {  # SECONDS WHAT COMMAND...
  local left=$(($1 * 5)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((left-- > 0)) || { printf 'slurm: waited in vain for %s\n' "$what" >&2; return 1; }
    sleep 0.2
  done
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

write_conf() {
  local cpus=$1 nodes=$2 host node
  host=$(hostname -s)
  cat >"$folder/slurm.conf" <<EOF
ClusterName=railyard
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
MaxArraySize=100001
MaxJobCount=200000
ReturnToService=2
MinJobAge=2
KillWait=2
InactiveLimit=0
${EXTRA_CONF:-}
EOF
  for ((node = 0; node < nodes; node++)); do
    printf 'NodeName=node%d NodeHostname=%s NodeAddr=127.0.0.1 Port=%s CPUs=%d State=UNKNOWN\n' \
      "$node" "$host" "$(free_port)" "$cpus" >>"$folder/slurm.conf"
  done
  printf 'PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n' >>"$folder/slurm.conf"
}

start() {
  local cpus=${1:-2} nodes=${2:-1} node program
  for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || skip "there is no $program: install the packages slurm-wlm and munge"
  done
  [ "$(id -u)" -eq 0 ] || skip "slurmctld and slurmd are started as root"
  mkdir -p "$folder/state"
  chmod 755 "$folder"
  dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 status=none
  chmod 600 "$folder/munge.key"
  munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --num-threads=2 \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munged.seed" \
    2>"$folder/munged.err" || skip "munged does not start: $(tail -n 1 "$folder/munged.err")"
  write_conf "$cpus" "$nodes"
  export SLURM_CONF="$folder/slurm.conf"
  slurmctld 2>"$folder/slurmctld.err" || skip "slurmctld does not start: $(tail -n 1 "$folder/slurmctld.err")"
  for ((node = 0; node < nodes; node++)); do
    mkdir -p "$folder/spool-node$node"
    slurmd -N "node$node" 2>"$folder/slurmd.err" || skip "slurmd does not start: $(tail -n 1 "$folder/slurmd.err")"
  done
  wait_for 60 "slurmctld" scontrol ping || skip "slurmctld does not answer: see $folder/slurmctld.log"
  wait_for 60 "an idle node" sh -c 'sinfo -h -t idle -o %n | grep -q .' || skip "no node is idle: see $folder"
}

stop() {
  local pid_file
  export SLURM_CONF="$folder/slurm.conf"
  scancel --user=root >/dev/null 2>&1 || true
  for pid_file in "$folder"/slurmd-*.pid "$folder/slurmctld.pid" "$folder/munged.pid"; do
    [ -s "$pid_file" ] && kill "$(cat "$pid_file")" 2>/dev/null || true
  done
}

[ $# -ge 2 ] || { sed -n '2,10p' "$0" >&2; exit 2; }
folder=$(realpath -m "$2")
case $1 in
  start) start "${@:3}" ;;
  stop) stop ;;
  *) sed -n '2,10p' "$0" >&2; exit 2 ;;
esac
