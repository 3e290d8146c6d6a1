#pragma once
// The scenarios in which the keys of the language are tried: each makes some keys matter.

#include <string>

#include "tests/scenario_text.h"

namespace railyard {

inline const std::string base = cluster_text(10, "20 day", 3) + R"(
[[cluster.fault]]
part = "gpu"
node = 1
index = 2
speed = 0.9
[[fabric.compute.fault]]
from = "node-1.nic-0"
to = "leaf-0"
capacity = 0.5
[[fabric.storage.fault]]
from = "node-2.nic-0"
to = "leaf-0"
capacity = 0.6
[[fabric.management.fault]]
from = "node-3.nic-0"
to = "leaf-0"
capacity = 0.7
[job]
nodes = 8
model = "llama2_13b"
[job.parallel]
tensor = 4
pipeline = 2
data = 8
interleave = 2
microbatch = 1
global_batch = 64
sequence_length = 2048
zero = 1
[job.checkpoint]
interval = "20 min"
[failures]
profile = "meta_rsc1"
rate_scale = 40
[failures.lemon]
fraction = 0.5
rate_multiplier = 3
cured_by_repair = 0.5
[maintenance]
every = "3 day"
duration = "1 h"
[[failures.cause]]
name = "extra"
rate_per_node = "0.1 /day"
detection = "1 min"
remedy = "replace"
reset_time = "10 min"
repair_time = "5 h"
replace_fraction = 0.5
)";

// What happens in its packet windows depends on the keys that the campaign above has no use for.
inline const std::string windows = cluster_text(4, "1 h") + R"(
nics_per_node = 2
[job]
step.time = "1 s"
checkpoint.mode = "none"
[failures]
profile = "none"
[storage]
servers = 2
nics_per_server = 1
[fabric.compute]
kind = "roce"
topology = "fat_tree"
nodes_per_leaf = 2
oversubscription = 2
routing = "ecmp"
[[fabric.compute.switch]]
name = "spine-0"
headroom = "150 kB"
[fabric.storage]
kind = "roce"
topology = "fat_tree"
nodes_per_leaf = 2
[[fabric.storage.switch]]
name = "spine-0"
headroom = "150 kB"
[[window.traffic]]
kind = "incast"
bytes = "1 MB"
[[window.traffic]]
kind = "ring"
bytes = "100 kB"
steps = 2
start = "10 us"
[[window.traffic]]
kind = "checkpoint"
bytes = "2 MB"
[[window.fault]]
kind = "slow_receiver"
nic = "node-0.nic-0"
rate = "50 Gbit/s"
start = "1 us"
duration = "50 us"
[[window.fault]]
kind = "bit_errors"
from = "leaf-0"
to = "spine-0"
bit_error_rate = 1e-7
[[window.fault]]
kind = "pause"
nic = "node-1.nic-0"
start = "15 us"
duration = "40 us"
[[window.fault]]
kind = "pause"
nic = "server-0.nic-0"
network = "storage"
start = "20 us"
duration = "30 us"
)";

// Storage servers on the compute network.
inline const char* const converged = R"(
[cluster]
nodes = 4
nics_per_node = 2
[run]
replicas = 1
duration = "1 h"
[job]
step.time = "1 s"
checkpoint.mode = "none"
[failures]
profile = "none"
[storage]
servers = 2
[fabric.compute]
kind = "roce"
topology = "fat_tree"
[[window.traffic]]
kind = "all_to_all"
[[window.traffic]]
kind = "checkpoint"
bytes = "4 MB"
)";

// Appended to the above for the keys of tiers.
inline const char* const tiers = R"(
[[job.checkpoint.tier]]
place = "local_nvme"
keep = 1
write_bandwidth = "2 GB/s"
read_bandwidth = "3 GB/s"
[[job.checkpoint.tier]]
place = "storage"
every = 2
keep_for = "2 h"
)";

// The usual one on a store whose parts fail, with another job on it.
inline const std::string failing = std::string(base) + R"(
[storage]
system = "weka"
servers = 8
server_read_bandwidth = "2 GB/s"
server_write_bandwidth = "1 GB/s"
[storage.failures]
drive_failure_rate = "0.02 /day"
server_failure_rate = "0.2 /day"
repair_sigma = 0.5
server_takes_data = 0.3
[[storage.failures.inject]]
at = "100.1 h"
part = "server"
index = 1
down_for = "5 h"
[[storage.failures.inject]]
at = "100 h"
part = "server"
index = 2
down_for = "8 h"
[[neighbour]]
name = "other"
nodes = 2
checkpoint = "500 GB"
files = 1000
every = "1 h"
start = "10 min"
reads = "5 GB/s"
)";
// The same on boxes of drives.
inline const std::string boxes = std::string(base) + R"(
[storage]
system = "vast"
[storage.vast]
dboxes = 4
[storage.failures]
box_failure_rate = "0.2 /day"
)";

// A step on packets.
inline const char* const packet_step = R"(
[run]
duration = "1 h"
replicas = 1
fidelity = "packet"
[cluster]
nodes = 4
nics_per_node = 2
[fabric.compute]
kind = "roce"
topology = "fat_tree"
nodes_per_leaf = 2
oversubscription = 2
routing = "ecmp"
[job]
model = "llama2_7b"
checkpoint.mode = "none"
[job.parallel]
tensor = 8
global_batch = 64
)";

// The usual one with parts that age, racks that fail together, slow parts, silent corruption and crews.
inline std::string less_often(std::string text) {
    const std::string often = "rate_scale = 40";
    return text.replace(text.find(often), often.size(), "rate_scale = 4");
}
inline const std::string unreliable = less_often(base) + R"(
[[failures.cause]]
name = "optic"
rate_per_node = "0.01 /day"
shape = 2.0
age = "5 day"
remedy = "reset"
reset_time = "3 h"
[[failures.cause]]
name = "breaker"
domain = "rack"
rate_per_domain = "0.05 /day"
further_domains = 1
further_every = "1 h"
remedy = "reset"
reset_time = "2 h"
[[failures.cause]]
name = "throttled"
slows = "gpu"
speed = 0.1
rate_per_node = "0.02 /day"
lasts = "20 h"
remedy = "reset"
reset_time = "1 h"
[[failures.cause]]
name = "sdc"
silent = true
rate_per_node = "0.01 /day"
detection = "5 h"
remedy = "replace"
repair_time = "5 h"
[[failures.cause]]
name = "crash"
rate_per_node = "0.01 /day"
burst = 1.0
burst_within = "3 h"
[failures.repair]
crews = 2
parts = 1
lead_time = "2 day"
fails_again = 0.3
burn_in = "2 h"
burn_in_finds = 0.5
[failures.quarantine]
failures = 3
within = "10 day"
inspection = "1 day"
[failures.search]
check_every = "6 h"
check_finds = 0.5
compare_after = "8 h"
compare_above = 0.01
[[inject]]
at = "100 h"
cause = "extra"
node = 3
duration = "7 h"
)";

// A job over two leaves of a network whose parts break.
inline const std::string broken_network = R"(
[run]
duration = "10 day"
fidelity = "flow"
[cluster]
nodes = 64
[fabric.compute]
topology = "fat_tree"
nodes_per_leaf = 4
oversubscription = 4
routing = "ecmp"
hash_seed = 1
[job]
model = "llama2_13b"
nodes = 8
[job.parallel]
tensor = 8
global_batch = 64
zero = 3
[job.checkpoint]
mode = "none"
[[failures.cause]]
name = "spines"
network_part = "spine"
rate_per_part = "0.1 /day"
remedy = "reset"
reset_time = "2 h"
[[inject]]
at = "100 h"
part = "spine-0"
duration = "7 h"
[[inject]]
at = "130 h"
from = "leaf-0"
to = "spine-0"
speed = 0.9
)";

// A measured step and what slows it.
inline const std::string measured = cluster_text(4, "20 day", 2) + R"(
[job]
step.time = "3 s"
checkpoint.mode = "none"
[[failures.cause]]
name = "one"
rate_per_node = "0 /day"
[[failures.cause]]
name = "two"
rate_per_node = "0 /day"
[[failures.cause]]
name = "three"
rate_per_node = "0 /day"
[[failures.cause]]
name = "throttled"
slows = "gpu"
slowdown = 0.2
rate_per_node = "0.1 /day"
lasts = "20 h"
)";

}  // namespace railyard
