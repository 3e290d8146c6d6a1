#pragma once
// The knobs of schema_knobs.h and schema_fleets.h in other worlds than their own: many jobs under a
// scheduler, at a fidelity.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/schema_fleets.h"
#include "tests/models/schema_knobs.h"
#include "tests/models/schema_kube.h"

namespace railyard {

struct Tried {
    std::string text;
    std::vector<std::string> settings{};
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

// Jobs that ask for no more than three hours.
inline const FleetKnob limited = {"priority = 1\n[[reservation]]",
                                  "priority = 1\nlimit_max = \"2 h\"\n[[reservation]]"};

// Where a key's own knob shows nothing under a scheduler because its scenario makes nothing of it there.
inline const std::map<std::pair<std::string, std::string>, FleetKnob> fleet_knobs_under = {
    {{"jobs.kind.restore", "kubernetes"},
     {"restart = \"1 min\"", "restart = \"1 min\"\nrestore = \"9 min\"", kubernetes_scenario}},
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

struct ManyJobs {
    std::string scheduler;
    std::string fidelity;
    bool modelled = true;  // the jobs have a model, or just take their time
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
    replace_once(out, world.modelled ? "slowdown = 0.2\n" : "speed = 0.1\n",
                 world.modelled ? "speed = 0.5\n" : "slowdown = 0.1\n");
    out +=
        "[scheduler]\nkind = \"" + world.scheduler + "\"\n[[jobs.kind]]\nname = \"j\"\n" +
        (world.fidelity == "packet" ? "count = 2\n" : "rate = \"6 /day\"\n") +
        "gpus = 16\nwork = \"10 h\"\ncheckpoint_interval = \"1 h\"\ncheckpoint_stall = \"1 min\"\n";
    if (world.modelled) out += "model = \"llama2_7b\"\n[jobs.kind.parallel]\ntensor = 8\n";
    return out;
}

// A key's knob there, before and after it is turned. What its own world needs of [job] is not there.
inline std::pair<Tried, Tried> in_many_jobs(const std::string& key, const Knob& knob,
                                            const ManyJobs& world) {
    const bool of_a_list = key.find("checkpoint.tier") != std::string::npos ||
                           key.find(".cause") != std::string::npos ||
                           key.find(".fault") != std::string::npos;
    Tried first{knob.base ? knob.base : base};
    for (const std::string& setting : knob.given) {
        if (!setting.starts_with("job.")) first.settings.push_back(setting);
    }
    first.settings.push_back("run.fidelity=" + world.fidelity);
    const bool rare = key.starts_with("failures.") || key.starts_with("facility.");
    const char* replicas = key.starts_with("inject") ? "12" : rare ? "4" : "1";
    if (key != "run.replicas") {
        first.settings.push_back(std::string("run.replicas=") + replicas);
    }
    if (key.starts_with("inject")) first.settings.emplace_back("failures.random=false");
    Tried second = first;
    if (key == "run.fidelity") {
        second.settings.push_back(world.fidelity == "flow" ? "run.fidelity=analytic"
                                                           : "run.fidelity=flow");
    } else if (key == "facility.throttle_temperature") {  // these jobs' GPUs draw less
        second.settings.push_back("facility.throttle_temperature=50 degC");
    } else if (of_a_list && knob.base == nullptr) {
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

}  // namespace railyard
