#pragma once
// The keys of [[job.stage]] and [[job.pause]], and the scenario in which they are tried.

#include "tests/models/schema_knobs.h"
#include "tests/scenario_text.h"

namespace railyard {

// A job with stages and pauses.
inline const std::string staged = cluster_text(12, "20 day", 2) + R"(
[job]
nodes = 8
model = "llama2_13b"
[job.parallel]
tensor = 4
pipeline = 2
microbatch = 1
global_batch = 64
sequence_length = 2048
[[job.stage]]
name = "first"
nodes = 4
tokens = 1e9
batch_from = 16
batch_increment = 16
checkpoint_interval = "100 steps"
[[job.stage]]
steps = 5000
sequence_from = 1024
sequence_increment = 256
stop = "10 min"
parallel = { tensor = 8 }
[[job.stage]]
until = "5 day"
parallel = { zero = 0 }
[[job.stage]]
steps = 1000000
[[job.pause]]
name = "evaluation"
every = "1000 steps"
duration = "10 min"
[[job.pause]]
at = "3 day"
duration = "2 h"
restart = true
[job.checkpoint]
mode = "sync"
interval = "200 steps"
[failures]
profile = "meta_rsc1"
rate_scale = 40
)";

// A cluster that grows, and whose job stands still for it.
inline const char* const phased = R"(
[run]
replicas = 2
start = "2026-06-01"
duration = "40 day"
[[phase]]
at = "2026-06-11"
stop = "1 day"
set = { "cluster.nodes" = 12 }
[cluster]
nodes = 6
[job]
nodes = 4
[job.step]
time = "10 s"
[job.checkpoint]
size = "1 TB"
[failures]
profile = "meta_rsc1"
rate_scale = 40
)";

inline const std::map<std::string, Knob> stage_knobs = {
    {"phase", {{}, {}, "set = { \"cluster.nodes\" = 12 }\n", "", phased}},
    {"phase.at", {{}, {}, "2026-06-11", "2026-06-21", phased}},
    {"phase.stop", {{}, {}, "stop = \"1 day\"", "stop = \"2 day\"", phased}},
    {"phase.set", {{}, {}, "= 12", "= 14", phased}},
    {"run.start", {{}, {}, "2026-06-01", "2026-06-02", phased}},
    {"run.ready", {{"run.ready=\"2026-06-05\""}, {}, {}, {}, phased}},
    {"job.trace", {{"job.trace=" RAILYARD_ROOT "/tests/models/step.0.et"}}},
    {"job.trace_node",
     {{"job.trace=" RAILYARD_ROOT "/tests/models/step.0.et", "job.trace_node=dgx_b200"}}},
    {"job.stage",
     {{}, {}, "[[job.stage]]\nuntil = \"5 day\"\nparallel = { zero = 0 }\n", "", staged}},
    {"job.pause",
     {{}, {}, "[[job.pause]]\nat = \"3 day\"\nduration = \"2 h\"\nrestart = true\n", "", staged}},
    {"job.stage.name", {{}, {}, "name = \"first\"", "name = \"other\"", staged}},
    {"job.stage.nodes", {{}, {}, "nodes = 4\ntokens", "nodes = 2\ntokens", staged}},
    {"job.stage.tokens", {{}, {}, "tokens = 1e9", "tokens = 2e9", staged}},
    {"job.stage.steps", {{}, {}, "steps = 5000", "steps = 4000", staged}},
    {"job.stage.until", {{}, {}, "until = \"5 day\"", "until = \"6 day\"", staged}},
    {"job.stage.parallel",
     {{}, {}, "parallel = { tensor = 8 }", "parallel = { tensor = 2 }", staged}},
    {"job.stage.batch_from", {{}, {}, "batch_from = 16", "batch_from = 32", staged}},
    {"job.stage.batch_increment", {{}, {}, "batch_increment = 16", "batch_increment = 8", staged}},
    {"job.stage.sequence_from", {{}, {}, "sequence_from = 1024", "sequence_from = 512", staged}},
    {"job.stage.sequence_increment",
     {{}, {}, "sequence_increment = 256", "sequence_increment = 128", staged}},
    {"job.stage.stop", {{}, {}, "stop = \"10 min\"", "stop = \"1 h\"", staged}},
    {"job.stage.checkpoint_interval",
     {{}, {}, "checkpoint_interval = \"100 steps\"", "checkpoint_interval = \"50 steps\"", staged}},
    {"job.pause.name", {{}, {}, "name = \"evaluation\"", "name = \"other\"", staged}},
    {"job.pause.every", {{}, {}, "every = \"1000 steps\"", "every = \"500 steps\"", staged}},
    {"job.pause.at", {{}, {}, "at = \"3 day\"", "at = \"4 day\"", staged}},
    {"job.pause.duration", {{}, {}, "duration = \"10 min\"", "duration = \"20 min\"", staged}},
    {"job.pause.restart", {{}, {}, "restart = true", "restart = false", staged}},
};

}  // namespace railyard
