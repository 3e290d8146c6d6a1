#pragma once
// The knobs of schema_knobs.h and schema_many_jobs.h in other worlds than their own: many jobs under a
// scheduler, at a fidelity.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/schema_knobs.h"
#include "tests/models/schema_kube.h"
#include "tests/models/schema_many_jobs.h"

namespace railyard {

struct Tried {
    std::string text;
    std::vector<std::string> settings{};
    auto operator<=>(const Tried&) const = default;
};

inline void replace_once(std::string& text, const std::string& from, const std::string& to) {
    const std::size_t at = from.empty() ? std::string::npos : text.find(from);
    if (at != std::string::npos) text.replace(at, from.size(), to);
}

// A scenario of many jobs under another scheduler than its own.
inline std::string under(const std::string& scheduler, std::string text) {
    const std::string header = "[scheduler]\n";
    const std::size_t at = text.find(header) + header.size();
    const std::string own = "kind = \"";
    if (text.compare(at, own.size(), own) == 0) text.erase(at, text.find('\n', at) + 1 - at);
    return text.insert(at, "kind = \"" + scheduler + "\"\n");
}

// The same with models for all kinds of whole nodes, whose steps a network then carries.
inline std::string with_models(std::string text) {
    const bool one_kind_of_node = text.find("[[node_group]]") == std::string::npos;
    if (!one_kind_of_node || text.find("model = ") != std::string::npos) return text;
    const std::string table = "[[jobs.kind]]\n";
    for (std::size_t at = text.find(table); at != std::string::npos; at = text.find(table, at)) {
        at += table.size();
        const std::string kind = text.substr(at, text.find("\n[", at) - at);
        const std::size_t gpus = kind.find("gpus = ");
        if (gpus == std::string::npos || std::stoi(kind.substr(gpus + 7)) % 8 != 0) continue;
        if (kind.find("gpus_per_pod") != std::string::npos) continue;
        text.insert(at, "model = \"llama2_7b\"\nparallel.tensor = 8\n");
    }
    return text;
}

// Jobs that ask for no more than three hours.
inline const WorldKnob limited = {"priority = 1\n[[reservation]]",
                                  "priority = 1\nlimit_max = \"2 h\"\n[[reservation]]"};

inline const WorldKnob waits_for_nodes = {
    "restart = \"1 min\"", "restart = \"1 min\"\nshrink_after = \"1 min\"", kubernetes_scenario};

// Nodes that only a prolog finds broken.
inline const WorldKnob held_longer = [] {
    WorldKnob knob = {"[scheduler]\n", "[scheduler]\nprolog_hold = \"5 h\"\n"};
    replace_once(knob.scenario, "prolog_time = \"10 s\"", "epilog = false");
    return knob;
}();

// Where a key's own knob shows nothing under a scheduler because its scenario makes nothing of it there.
inline const std::map<std::pair<std::string, std::string>, WorldKnob> world_knobs_under = {
    {{"jobs.kind.restore", "kubernetes"},
     {"restart = \"1 min\"", "restart = \"1 min\"\nrestore = \"9 min\"", kubernetes_scenario}},
    {{"jobs.kind.shrink_after", "slurm"}, waits_for_nodes},
    {{"jobs.kind.shrink_after", "volcano"}, waits_for_nodes},
    {{"jobs.kind.shrink_after", "fifo"}, waits_for_nodes},
    {{"jobs.kind.shrink_after", "sjf"}, waits_for_nodes},
    {{"jobs.kind.shrink_after", "priority"}, waits_for_nodes},
    {{"jobs.kind.shrink_after", "easy"}, waits_for_nodes},
    {{"scheduler.qos", "priority"},
     {"name = \"mid\"\npriority = 1", "name = \"mid\"\npriority = 3"}},
    {{"scheduler.prolog_hold", "sjf"}, held_longer},
    {{"scheduler.prolog_hold", "easy"}, held_longer},
    {{"jobs.kind.gpus_per_pod", "volcano"},
     {"gpus_per_pod = 2", "gpus_per_pod = 4", volcano_scenario}},
    {{"scheduler.queue", "volcano"},
     {"[[jobs.kind]]\nname = \"of_a\"\nqueue = \"a\"",
      "[[scheduler.queue]]\nname = \"c\"\n[[jobs.kind]]\nname = \"of_a\"\nqueue = \"c\"",
      volcano_scenario}},
    {{"partition.limit_max", "kubernetes"}, limited},
    {{"partition.limit_max", "volcano"}, limited},
    {{"partition.limit_max", "kueue"}, limited},
    {{"scheduler.nodes_per_leaf", "kueue"},
     {"nodes_per_leaf = 2", "nodes_per_leaf = 3", kueue_scenario}},
};

// What many jobs are: they have a model, just take their time, are listed in a trace, or are like one.
enum class Jobs : std::uint8_t { modelled, plain, traced, published };

struct ManyJobs {
    std::string scheduler;
    std::string fidelity;
    Jobs jobs = Jobs::modelled;
};

// A scenario of one job with many in its place. What is about one job goes, unless it is what is tried.
inline std::string with_many_jobs(const std::string& text, const std::string& key,
                                  const ManyJobs& world) {
    std::string out;
    bool dropped = false;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
        const std::string line = text.substr(begin, end - begin);
        begin = end;
        if (line.starts_with("[")) {
            const std::string name = line.substr(line.find_first_not_of('['));
            dropped = false;
            for (const std::string section : {"job", "maintenance", "neighbour"}) {
                const bool it = name.starts_with(section + "]") || name.starts_with(section + ".");
                dropped = dropped || (it && !key.starts_with(section));
            }
        }
        if (!dropped) out += line;
    }
    // What slows a step follows from a part's speed, what slows other work must be said.
    const bool modelled = world.jobs == Jobs::modelled;
    replace_once(out, modelled ? "slowdown = 0.2\n" : "speed = 0.1\n",
                 modelled ? "speed = 0.5\n" : "slowdown = 0.1\n");
    out += "[scheduler]\nkind = \"" + world.scheduler + "\"\n";
    if (world.jobs == Jobs::traced) {
        out += "[jobs]\ntrace = \"" RAILYARD_ROOT "/tests/models/steady_trace.csv\"\n";
    }
    out +=
        "[[jobs.kind]]\nname = \"j\"\ncheckpoint_interval = \"1 h\"\ncheckpoint_stall = \"1 "
        "min\"\n";
    if (world.jobs == Jobs::traced) {
        out += "count = 0\n";
    } else if (world.jobs == Jobs::published) {
        out += "stream = \"philly\"\nrate = \"60 /day\"\n";
    } else if (world.fidelity == "packet" &&
               modelled) {  // few starts: packets of each set of nodes are run
        out += "gpus = 16\ncount = 4\nwork = \"200 h\"\n";
    } else {
        out += "gpus = 16\nrate = \"6 /day\"\nwork = \"10 h\"\n";
    }
    if (modelled) out += "model = \"llama2_7b\"\n[jobs.kind.parallel]\ntensor = 8\n";
    return out;
}

// Keys of the ways that flows take show where some of them meet: jobs of more nodes than a leaf has, and
// a hash that puts two flows on a link.
inline const std::set<std::string> about_paths = {
    "fabric.compute.routing", "fabric.compute.queue_pairs", "fabric.compute.hash_seed",
    "fabric.compute.hash_polarized", "run.network_draws"};
// Two flows on a link have half of it, and a slower cable must not hide that.
inline const std::vector<std::string> crossing_packets = {
    "cluster.nodes=12", "cluster.nics_per_node=2", "fabric.compute.topology=fat_tree",
    "fabric.compute.nodes_per_leaf=3", "fabric.compute.fault.0.capacity=0.9"};
inline std::vector<std::string> crossing(const ManyJobs& world) {
    std::vector<std::string> out = {"run.failures=false", "jobs.kind.0.rate=0.5 /day"};
    const std::vector<std::string> flows = {"cluster.nodes=80", "fabric.compute.nodes_per_leaf=8",
                                            "fabric.compute.fault.0.capacity=0.9",
                                            "jobs.kind.0.gpus=512"};
    const bool packets = world.fidelity == "packet";
    const auto& shape = packets ? crossing_packets : flows;
    out.insert(out.end(), shape.begin(), shape.end());
    if (packets) out.insert(out.end(), {"fabric.compute.hash_seed=7", "jobs.kind.0.gpus=64"});
    return out;
}

// These show only where nodes have all of their NICs.
inline bool of_nics(const std::string& key) {
    return key == "cluster.nics_per_node" || key == "fabric.compute.topology" ||
           key.starts_with("facility.breaker") || key.starts_with("job.data.");
}

// A key's knob there, before and after it is turned. What its own world needs of [job] is not there.
inline std::pair<Tried, Tried> in_many_jobs(const std::string& key, const Knob& knob,
                                            const ManyJobs& world) {
    const bool of_a_list = key.find("checkpoint.tier") != std::string::npos ||
                           key.find(".cause") != std::string::npos ||
                           key.find(".fault") != std::string::npos;
    Tried first{knob.base.empty() ? base : knob.base};
    for (const std::string& setting : knob.given) {
        if (!setting.starts_with("job.")) first.settings.push_back(setting);
    }
    first.settings.push_back("run.fidelity=" + world.fidelity);
    const bool rare = key.starts_with("failures.") || key.starts_with("facility.");
    const bool packets = world.fidelity == "packet";
    const char* replicas =
        key.starts_with("inject") || (rare && (packets || world.jobs == Jobs::traced)) ? "12"
        : rare || about_paths.contains(key)                                            ? "4"
                                                                                       : "1";
    // Packets of each set of nodes that a job gets are run: few of them, unless the key is about them.
    if (packets && !of_nics(key)) {
        first.settings.emplace_back("cluster.nics_per_node=1");
    }
    if (packets && key.starts_with("fabric.")) first.settings.emplace_back("run.failures=false");
    if (packets && key == "switch") first.settings.emplace_back("cluster.nodes=40");
    if (about_paths.contains(key) && world.jobs == Jobs::modelled) {
        for (const std::string& each : crossing(world)) first.settings.push_back(each);
    }
    if (key != "run.replicas") {
        first.settings.push_back(std::string("run.replicas=") + replicas);
    }
    if (key.starts_with("inject")) first.settings.emplace_back("failures.random=false");
    Tried second = first;
    if (key == "run.fidelity") {
        second.settings.push_back(world.fidelity == "flow" ? "run.fidelity=analytic"
                                                           : "run.fidelity=flow");
    } else if (key == "fabric.compute.routing") {
        second.settings.emplace_back("fabric.compute.routing=ecmp");
    } else if (key == "facility.throttle_temperature") {  // these jobs' GPUs draw less
        second.settings.push_back("facility.throttle_temperature=50 degC");
    } else if (key == "inject.node" && world.jobs == Jobs::traced) {  // one that has another job
        second.settings.emplace_back("inject.0.node=0");
    } else if (of_a_list && knob.base.empty()) {
        replace_once(second.text, knob.change[0], knob.change[1]);
    } else {
        replace_once(second.text, knob.text, knob.by);
        for (const std::string& setting : knob.change) {
            if (!setting.starts_with("job.") || key.starts_with("job.")) {
                second.settings.push_back(setting);
            }
        }
    }
    first.text = with_many_jobs(first.text, key, world);
    second.text = with_many_jobs(second.text, key, world);
    return {first, second};
}

// How long one job's step takes: its model says it, or it is given, with a model or without.
enum class Step : std::uint8_t { modelled, given, plain };

// The same with one job.
inline std::pair<Tried, Tried> in_one_job(const std::string& key, const Knob& knob,
                                          const std::string& fidelity, Step kind) {
    const bool tier = key.find("checkpoint.tier") != std::string::npos;
    Tried first{knob.base.empty() ? base : knob.base};
    if (knob.base.empty() && tier) first.text += tiers;
    std::string& text = first.text;
    const bool is_step = key == "job.step.time" || key.starts_with("job.trace");
    const bool of_step = is_step || key == "job.model" || key.starts_with("job.parallel");
    if (kind == Step::plain && !of_step) {
        const std::size_t at = text.find("[job.parallel]");
        if (at != std::string::npos) text.erase(at, text.find("[job.checkpoint]") - at);
        replace_once(text, "model = \"llama2_13b\"\n", "");
        replace_once(text, "[job.checkpoint]\n", "[job.checkpoint]\nsize = \"200 GB\"\n");
    }
    if (kind != Step::modelled && !is_step) {
        replace_once(text, "[job]\nnodes = 8\n", "[job]\nnodes = 8\nstep.time = \"1 s\"\n");
        replace_once(text, "speed = 0.1\n", "slowdown = 0.1\n");
    }
    const bool rare = key.starts_with("failures.") || key.starts_with("facility.") ||
                      key.starts_with("inject") || about_paths.contains(key);
    if (key != "run.replicas") {
        first.settings.emplace_back(rare ? "run.replicas=4" : "run.replicas=1");
    }
    first.settings.insert(first.settings.end(), knob.given.begin(), knob.given.end());
    if (key != "run.fidelity") first.settings.push_back("run.fidelity=" + fidelity);
    if (fidelity == "flow" && !about_paths.contains(key)) {
        first.settings.emplace_back("run.network_draws=1");
    }
    const bool packets = fidelity == "packet" && kind == Step::modelled;
    if (packets && !of_nics(key)) first.settings.emplace_back("cluster.nics_per_node=1");
    if (packets && key.starts_with("fabric.")) first.settings.emplace_back("run.failures=false");
    const bool drawn = key == "run.network_draws";
    if (packets && (drawn || key == "fabric.compute.routing")) {
        first.settings.insert(first.settings.end(), crossing_packets.begin(),
                              crossing_packets.end());
        if (!drawn) first.settings.emplace_back("fabric.compute.hash_seed=7");
    }
    Tried second = first;
    const bool in_text = knob.base.empty() && knob.change.size() == 2 &&
                         text.find(knob.change[0]) != std::string::npos;
    replace_once(second.text, in_text ? knob.change[0] : knob.text,
                 in_text ? knob.change[1] : knob.by);
    if (packets && drawn) {  // on packets one is usual
        second.settings.emplace_back("run.network_draws=4");
    } else if (key == "fabric.compute.routing") {
        second.settings.emplace_back("fabric.compute.routing=ecmp");
    } else if (key == "facility.throttle_temperature") {
        second.settings.emplace_back("facility.throttle_temperature=50 degC");
    } else if (key == "job.checkpoint.files_per_rank" && fidelity != "analytic") {
        second.settings.emplace_back("job.checkpoint.files_per_rank=1000");  // each is a flow
    } else if (!in_text) {
        second.settings.insert(second.settings.end(), knob.change.begin(), knob.change.end());
    }
    return {first, second};
}

}  // namespace railyard
