#pragma once
// The keys of many jobs: in which scenario each is tried, what is replaced in it, and by what.

#include <map>
#include <string>

#include "tests/scenario_text.h"

namespace railyard {

// Two nodes under each of six leaves; more work than they can do.
inline const std::string world_scenario = cluster_text(12, "6 day") + R"(
[scheduler]
topology = "tree"
nodes_per_leaf = 2
[scheduler.priority]
age = 1000
fair_share = 500
job_size = 400
partition = 300
qos = 200
[scheduler.health]
prolog_time = "10 s"
[[scheduler.qos]]
name = "low"
[[scheduler.qos]]
name = "high"
priority = 2
preempts = "low"
[[scheduler.qos]]
name = "mid"
priority = 1
[[scheduler.account]]
name = "a"
shares = 3
[[scheduler.account]]
name = "b"
[[partition]]
name = "main"
nodes = 10
limit_default = "20 h"
[[partition]]
name = "rest"
first_node = 6
priority = 1
[[reservation]]
start = "30 h"
duration = "6 h"
nodes = 6
[[jobs.kind]]
name = "small"
rate = "40 /day"
work = "2 h"
work_median = "1 h"
limit_factor = 2
own_failure_rate_per_gpu = "0.2 /day"
account = "b"
[[jobs.kind.size]]
gpus = 1
share = 2
[[jobs.kind.size]]
gpus = 8
share = 1
[[jobs.kind]]
name = "large"
rate = "6 /day"
gpus = 32
work = "6 h"
checkpoint_interval = "1 h"
checkpoint_stall = "2 min"
restart = "3 min"
restore = "4 min"
switches = 1
[[jobs.kind]]
name = "urgent"
partition = "rest"
qos = "high"
rate = "3 /day"
gpus = 12
work = "2 h"
limit = "3 h"
[[jobs.kind]]
name = "rest"
partition = "rest"
qos = "mid"
rate = "40 /day"
gpus = 8
work = "3 h"
[[failures.cause]]
name = "node"
rate_per_node = "0.3 /day"
detection = "10 min"
remedy = "reset"
reset_time = "2 h"
silences = true
[[failures.cause]]
name = "gpu"
rate_per_node = "0.4 /day"
detection = "1 min"
remedy = "reset"
reset_time = "2 h"
)";

inline const std::string world_groups = cluster_text(4, "2 day") + R"(
[scheduler]
[[node_group]]
name = "new"
node = "dgx_h100"
nodes = 2
[[node_group]]
name = "old"
node = "dgx_a100"
nodes = 2
[[partition]]
name = "p"
group = "new"
[[reservation]]
duration = "5 h"
[[jobs.kind]]
name = "j"
gpus = 8
count = 3
work = "10 h"
)";

// Two kinds of GPUs behind one partition, and jobs that ask for more than some of them are.
inline const std::string world_requests = cluster_text(4, "2 day") + R"(
[scheduler]
[[node_group]]
name = "old"
node = "hgx_a100_40"
nodes = 2
[[node_group]]
name = "new"
node = "dgx_h100"
nodes = 2
[[jobs.kind]]
name = "j"
gpus = 8
count = 4
work = "10 h"
[jobs.kind.requires]
)";

// Nodes cut into slices as jobs come, and others beforehand.
inline const std::string world_slices = cluster_text(2, "2 day") + R"(
[scheduler]
kind = "kubernetes"
[[node_group]]
name = "flexible"
node = "dgx_h100"
nodes = 1
mig = "dynamic"
[[node_group]]
name = "fixed"
node = "dgx_a100"
nodes = 1
mig = "static"
mig_layout = "4g.40gb,2g.20gb"
[[jobs.kind]]
name = "large"
rate = "60 /day"
work = "5 h"
[jobs.kind.requires]
slice = "4g.40gb"
[[jobs.kind]]
name = "mid"
rate = "60 /day"
work = "4 h"
[jobs.kind.requires]
slice = "3g.40gb"
[[jobs.kind]]
name = "small"
rate = "200 /day"
work = "3 h"
[jobs.kind.requires]
slice = "2g.20gb"
)";

inline const std::string world_models = cluster_text(4, "2 day") + R"(
[scheduler]
[[jobs.kind]]
name = "j"
gpus = 16
work = "10 h"
model = "llama2_13b"
[jobs.kind.parallel]
tensor = 4
)";

inline const std::string world_traces = cluster_text(4, "2 day") + R"(
[scheduler]
[jobs]
trace = ")" RAILYARD_ROOT R"(/tests/models/world_trace.csv"
[[jobs.kind]]
name = "saves"
count = 0
restart = "10 min"
)";

// Power for three of four jobs; or for all of them, slowed.
inline const std::string world_budget = cluster_text(4, "2 day") + R"(
[power]
budget = "45 kW"
over_budget = "throttle"
[scheduler]
[[jobs.kind]]
name = "j"
gpus = 8
count = 4
work = "10 h"
)";

// Two services across both leaves, and what they send over the same uplinks.
inline const char* const world_shares = R"(
[run]
replicas = 1
duration = "1 day"
fidelity = "flow"
network_draws = 1
[cluster]
nodes = 4
[fabric.compute]
topology = "fat_tree"
nodes_per_leaf = 2
oversubscription = 2
[scheduler]
topology = "none"
[[jobs.kind]]
name = "filler"
gpus = 8
work = "1 h"
[[jobs.kind]]
name = "j"
at = "1 min"
count = 2
nodes = 2
work = "40 day"
fabric_share = 0.5
)";

// The first one, with the shortest jobs first.
inline const std::string world_shortest_first = [] {
    std::string text = world_scenario;
    const std::string header = "[scheduler]\n";
    return text.insert(text.find(header) + header.size(), "kind = \"sjf\"\n");
}();

struct WorldKnob {
    const char* text;
    const char* by;
    std::string scenario = world_scenario;
};

inline const std::map<std::string, WorldKnob> world_knobs = {
    {"node_group",
     {"[[node_group]]\nname = \"old\"",
      "[[node_group]]\nname = \"x\"\nnode = \"dgx_h100\"\nnodes = 1\n[[node_group]]\nname = "
      "\"old\"",
      world_groups}},
    {"node_group.name", {"name = \"new\"\nnode", "name = \"newer\"\nnode", world_groups}},
    {"node_group.node", {"node = \"dgx_h100\"", "node = \"gb200_nvl72\"", world_groups}},
    {"node_group.nodes", {"nodes = 2\n[[node_group]]", "nodes = 1\n[[node_group]]", world_groups}},
    {"power.over_budget", {"over_budget = \"throttle\"", "over_budget = \"hold\"", world_budget}},
    {"scheduler.kind", {"topology = \"tree\"", "kind = \"none\""}},
    {"scheduler.estimate",
     {"kind = \"sjf\"", "kind = \"sjf\"\nestimate = \"work\"", world_shortest_first}},
    {"scheduler.node_timeout", {"[scheduler]\n", "[scheduler]\nnode_timeout = \"1 min\"\n"}},
    {"scheduler.main_interval",
     {"[scheduler]\n", "[scheduler]\nevent_depth = 1\nmain_interval = \"3 h\"\n"}},
    {"scheduler.event_depth",
     {"[scheduler]\n", "[scheduler]\nevent_depth = 1\nmain_interval = \"1 day\"\n"}},
    {"scheduler.topology", {"topology = \"tree\"", "topology = \"block\""}},
    {"scheduler.nodes_per_leaf", {"nodes_per_leaf = 2", "nodes_per_leaf = 3"}},
    {"scheduler.switches_wait_max",
     {"[scheduler]\n", "[scheduler]\nswitches_wait_max = \"5 h\"\n"}},
    {"scheduler.prolog_hold", {"[scheduler]\n", "[scheduler]\nprolog_hold = \"5 h\"\n"}},
    {"scheduler.backfill.enabled",
     {"[scheduler.priority]", "[scheduler.backfill]\nenabled = false\n[scheduler.priority]"}},
    {"scheduler.backfill.interval",
     {"[scheduler.priority]", "[scheduler.backfill]\ninterval = \"2 h\"\n[scheduler.priority]"}},
    {"scheduler.backfill.window",
     {"[scheduler.priority]", "[scheduler.backfill]\nwindow = \"1 h\"\n[scheduler.priority]"}},
    {"scheduler.backfill.resolution",
     {"[scheduler.priority]", "[scheduler.backfill]\nresolution = \"8 h\"\n[scheduler.priority]"}},
    {"scheduler.backfill.depth",
     {"[scheduler.priority]", "[scheduler.backfill]\ndepth = 1\n[scheduler.priority]"}},
    {"scheduler.priority.age", {"age = 1000", "age = 0"}},
    {"scheduler.priority.fair_share", {"fair_share = 500", "fair_share = 50000"}},
    {"scheduler.priority.job_size", {"job_size = 400", "job_size = 40000"}},
    {"scheduler.priority.partition", {"partition = 300", "partition = 30000"}},
    {"scheduler.priority.qos", {"qos = 200", "qos = 20000"}},
    {"scheduler.priority.age_max", {"age = 1000", "age = 1000\nage_max = \"30 min\""}},
    {"scheduler.priority.half_life",
     {"fair_share = 500", "fair_share = 500000\nhalf_life = \"1 h\""}},
    {"scheduler.priority.calc_period",
     {"fair_share = 500", "fair_share = 500\ncalc_period = \"10 h\""}},
    {"scheduler.priority.favor_small", {"job_size = 400", "job_size = 400\nfavor_small = true"}},
    {"scheduler.health.prolog", {"prolog_time = \"10 s\"", "prolog = false"}},
    {"scheduler.health.epilog",
     {"prolog_time = \"10 s\"", "prolog_time = \"10 s\"\nepilog = false"}},
    {"scheduler.health.prolog_time", {"prolog_time = \"10 s\"", "prolog_time = \"11 s\""}},
    {"scheduler.health.epilog_time",
     {"prolog_time = \"10 s\"", "prolog_time = \"10 s\"\nepilog_time = \"5 s\""}},
    {"scheduler.health.interval",
     {"prolog_time = \"10 s\"", "prolog_time = \"10 s\"\ninterval = \"5 min\""}},
    {"scheduler.qos",
     {"[[scheduler.qos]]\nname = \"low\"",
      "[[scheduler.qos]]\nname = \"lowest\"\npriority = 3\ngpus_max = 8\n[[scheduler.qos]]\nname = "
      "\"low\""}},
    {"scheduler.qos.name", {"name = \"low\"\n", "name = \"lower\"\n"}},
    {"scheduler.qos.priority", {"priority = 2", "priority = 0"}},
    {"scheduler.qos.preempts", {"preempts = \"low\"", ""}},
    {"scheduler.qos.preempt_mode", {"name = \"low\"", "name = \"low\"\npreempt_mode = \"cancel\""}},
    {"scheduler.qos.grace", {"name = \"low\"", "name = \"low\"\ngrace = \"20 min\""}},
    {"scheduler.qos.exempt", {"name = \"low\"", "name = \"low\"\nexempt = \"6 h\""}},
    {"scheduler.qos.gpus_max", {"name = \"low\"", "name = \"low\"\ngpus_max = 40"}},
    {"scheduler.account",
     {"[[scheduler.account]]\nname = \"a\"",
      "[[scheduler.account]]\nname = \"b2\"\nshares = 9\n[[scheduler.account]]\nname = \"a\""}},
    {"scheduler.account.name", {"name = \"b\"", "name = \"b2\""}},
    {"scheduler.account.shares", {"shares = 3", "shares = 300"}},
    {"partition",
     {"[[partition]]\nname = \"main\"",
      "[[partition]]\nname = \"x\"\nnodes = 5\n[[partition]]\nname = \"main\""}},
    {"partition.name", {"name = \"rest\"", "name = \"left\""}},
    {"partition.group", {"group = \"new\"", "first_node = 1", world_groups}},
    {"partition.first_node", {"first_node = 6", "first_node = 8"}},
    {"partition.nodes", {"nodes = 10", "nodes = 9"}},
    {"partition.limit_max", {"name = \"main\"", "name = \"main\"\nlimit_max = \"5 h\""}},
    {"partition.limit_default", {"limit_default = \"20 h\"", "limit_default = \"5 h\""}},
    {"partition.gpus_max", {"name = \"main\"", "name = \"main\"\ngpus_max = 16"}},
    {"partition.submitted_max", {"name = \"main\"", "name = \"main\"\nsubmitted_max = 9"}},
    {"partition.priority", {"name = \"main\"", "name = \"main\"\npriority = 9"}},
    {"partition.tier", {"name = \"main\"", "name = \"main\"\ntier = 5"}},
    {"reservation", {"[[reservation]]", "[[reservation]]\nduration = \"5 h\"\n[[reservation]]"}},
    {"reservation.group",
     {"duration = \"5 h\"", "duration = \"5 h\"\ngroup = \"old\"", world_groups}},
    {"reservation.first_node", {"start = \"30 h\"", "start = \"30 h\"\nfirst_node = 1"}},
    {"reservation.nodes", {"nodes = 6", "nodes = 7"}},
    {"reservation.start", {"start = \"30 h\"", "start = \"40 h\""}},
    {"reservation.duration", {"duration = \"6 h\"", "duration = \"7 h\""}},
    {"reservation.every", {"duration = \"6 h\"", "duration = \"6 h\"\nevery = \"2 day\""}},
    {"jobs.trace", {"world_trace.csv\"", "world_trace_bad.csv\"\nskip_bad = true", world_traces}},
    {"jobs.time_unit",
     {"world_trace.csv\"", "world_trace.csv\"\ntime_unit = \"2 s\"", world_traces}},
    {"jobs.skip_bad",
     {"world_trace.csv\"", "world_trace_bad.csv\"\nskip_bad = true", world_traces}},
    {"jobs.trace_kind",
     {"world_trace.csv\"", "world_trace.csv\"\ntrace_kind = \"saves\"", world_traces}},
    {"jobs.kind",
     {"[[jobs.kind]]\nname = \"small\"",
      "[[jobs.kind]]\nname = \"one\"\n[[jobs.kind]]\nname = \"small\""}},
    {"jobs.kind.name", {"name = \"small\"", "name = \"smaller\""}},
    {"jobs.kind.partition", {"partition = \"rest\"", "partition = \"main\""}},
    {"jobs.kind.qos", {"qos = \"high\"", "qos = \"low\""}},
    {"jobs.kind.account", {"account = \"b\"", "account = \"a\""}},
    {"jobs.kind.at", {"name = \"small\"", "name = \"small\"\nat = \"1 h\""}},
    {"jobs.kind.rate", {"rate = \"40 /day\"", "rate = \"41 /day\""}},
    {"jobs.kind.count", {"name = \"small\"", "name = \"small\"\ncount = 20"}},
    {"jobs.kind.gpus", {"gpus = 12", "gpus = 13"}},
    {"jobs.kind.nodes", {"gpus = 12", "nodes = 2"}},
    {"jobs.kind.length", {"work = \"6 h\"", "length = \"7 h\""}},
    {"jobs.kind.size",
     {"[[jobs.kind.size]]\ngpus = 8",
      "[[jobs.kind.size]]\ngpus = 4\nshare = 1\n[[jobs.kind.size]]\ngpus = 8"}},
    {"jobs.kind.size.gpus", {"gpus = 1\n", "gpus = 2\n"}},
    {"jobs.kind.size.share", {"share = 2", "share = 3"}},
    {"jobs.kind.worth", {"name = \"large\"", "name = \"large\"\nworth = 2"}},
    {"jobs.kind.worth_per_gpu_hour",
     {"name = \"large\"", "name = \"large\"\nworth_per_gpu_hour = 2"}},
    {"jobs.kind.duty", {"name = \"large\"", "name = \"large\"\nduty = 0.5"}},
    {"jobs.kind.fabric_share", {"fabric_share = 0.5", "fabric_share = 0.9", world_shares}},
    {"jobs.kind.stream", {"gpus = 8\nwork = \"3 h\"", "stream = \"philly\""}},
    {"jobs.kind.gpus_per_pod", {"gpus = 12", "gpus = 12\ngpus_per_pod = 6"}},
    {"jobs.kind.work", {"work = \"6 h\"", "work = \"7 h\""}},
    {"jobs.kind.work_median", {"work_median = \"1 h\"", "work_median = \"90 min\""}},
    {"jobs.kind.limit", {"limit = \"3 h\"", "limit = \"1 h\""}},
    {"jobs.kind.limit_factor", {"limit_factor = 2", "limit_factor = 0.9"}},
    {"jobs.kind.switches", {"switches = 1", "switches = 2"}},
    {"jobs.kind.switches_wait", {"switches = 1", "switches = 1\nswitches_wait = \"0 s\""}},
    {"jobs.kind.checkpoint_interval",
     {"checkpoint_interval = \"1 h\"", "checkpoint_interval = \"2 h\""}},
    {"jobs.kind.checkpoint_size",
     {"checkpoint_stall = \"2 min\"\nrestart = \"3 min\"\nrestore = \"4 min\"",
      "checkpoint_size = \"5 TB\"\nrestart = \"3 min\""}},
    {"jobs.kind.checkpoint_stall",
     {"checkpoint_stall = \"2 min\"", "checkpoint_stall = \"1 min\""}},
    {"jobs.kind.restart", {"restart = \"3 min\"", "restart = \"1 min\""}},
    {"jobs.kind.restore", {"restore = \"4 min\"", "restore = \"1 min\""}},
    {"jobs.kind.own_failure_rate_per_gpu", {"\"0.2 /day\"", "\"0.3 /day\""}},
    {"jobs.kind.requeue", {"name = \"small\"", "name = \"small\"\nrequeue = false"}},
    {"jobs.kind.resubmit",
     {"limit = \"3 h\"", "limit = \"1 h\"\ncheckpoint_interval = \"5 min\"\nresubmit = true"}},
    {"jobs.kind.restarts_max", {"name = \"large\"", "name = \"large\"\nrestarts_max = 0"}},
    {"jobs.kind.model", {"model = \"llama2_13b\"", "model = \"llama2_7b\"", world_models}},
    {"jobs.kind.parallel.tensor", {"tensor = 4", "tensor = 8", world_models}},
    {"jobs.kind.steps",
     {"model = \"llama2_13b\"", "model = \"llama2_13b\"\nsteps = 100", world_models}},
    {"node_group.mig", {"mig = \"dynamic\"", "", world_slices}},
    {"node_group.mig_layout", {"4g.40gb,2g.20gb", "3g.40gb,4g.40gb", world_slices}},
    {"node_group.mig_placement",
     {"mig = \"dynamic\"", "mig = \"dynamic\"\nmig_placement = \"first\"", world_slices}},
    {"jobs.kind.requires.slice", {"\"3g.40gb\"", "\"1g.10gb\"", world_slices}},
    {"jobs.kind.requires.gpu",
     {"[jobs.kind.requires]", "[jobs.kind.requires]\ngpu = \"h100_sxm\"", world_requests}},
    {"jobs.kind.requires.gpu_memory",
     {"[jobs.kind.requires]", "[jobs.kind.requires]\ngpu_memory = \"80 GB\"", world_requests}},
    {"jobs.kind.requires.nvlink_domain",
     {"[jobs.kind.requires]", "[jobs.kind.requires]\nnvlink_domain = 72", world_requests}},
    {"jobs.kind.requires.compute_capability",
     {"[jobs.kind.requires]", "[jobs.kind.requires]\ncompute_capability = 9.0", world_requests}},
    {"failures.cause.silences", {"silences = true", "silences = false"}},
};

}  // namespace railyard
