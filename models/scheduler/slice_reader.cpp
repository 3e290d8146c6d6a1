// Reads slices of GPUs: how nodes are cut, and what jobs ask for.

#include <fmt/format.h>

#include <algorithm>

#include "models/scheduler/reader_names.h"
#include "models/scheduler/scheduler_reader.h"
#include "sim/text.h"

namespace railyard {

namespace {

enum class Cut : std::uint8_t { off, fixed, dynamic };

// "4g.40gb,2g.20gb" of one GPU.
void read_layout(Section& section, const std::string& text, const NodeGroup& group, MigSpec& mig) {
    const std::vector<std::string> names = mig_names(group.gpu.memory);
    std::vector<ProfileIndex> profiles;
    for (const std::string& name : split_text(text, ',')) {
        const auto found = std::ranges::find(names, name);
        if (found == names.end()) {
            section.error("mig_layout",
                          fmt::format("'{}' is no profile of {}", name, group.gpu.kind),
                          suggest(name, names));
            return;
        }
        profiles.push_back(static_cast<ProfileIndex>(found - names.begin()));
    }
    // More than one for each slice never fit, and needn't be tried.
    const auto layout = profiles.size() > mig_compute_slices ? std::nullopt : mig_layout(profiles);
    if (!layout) {
        section.error("mig_layout",
                      fmt::format("{} do not fit on a GPU together: it has {} compute slices and "
                                  "{} of memory, and each profile its places",
                                  text, mig_compute_slices, mig_memory_slices));
        return;
    }
    mig.layout = *layout;
}

}  // namespace

void read_slices(Section& section, Catalogue& catalogue, NodeGroup& group) {
    Cut cut = Cut::off;
    section.choose("mig", cut, {"off", "static", "dynamic"},
                   "Whether its GPUs are cut into slices: as mig_layout says, or as jobs come");
    std::string layout;
    section.read("mig_layout", layout, "The slices of each GPU: \"4g.40gb,2g.20gb,1g.10gb\"",
                 {.otherwise = "static needs it"});
    MigPlacement placement = MigPlacement::best;
    section.choose(
        "mig_placement", placement, {"best", "first"},
        "Where a dynamic slice goes: the place that strands and blocks least, or the first");
    if (cut != Cut::fixed) {
        refuse_keys(section, {"mig_layout"}, "has no effect without mig = \"static\"");
    }
    if (cut != Cut::dynamic) {
        refuse_keys(section, {"mig_placement"}, "has no effect without mig = \"dynamic\"");
    }
    if (cut == Cut::off) return;
    if (group.gpu.kind.empty()) return;  // the node is no node
    if (!catalogue.has("gpu", group.gpu.kind, "mig_compute_slices")) {
        section.error("mig", fmt::format("{} cannot be cut into slices", group.gpu.kind));
        return;
    }
    group.mig = MigSpec{.placement = placement};
    if (cut == Cut::fixed) {
        if (layout.empty()) section.error("mig_layout", "mig = \"static\" needs it");
        read_layout(section, layout, group, *group.mig);
    }
    group.list_slices();
}

void check_slices(Section& top, const WorldSpec& spec) {
    if (spec.scheduler != "slurm") return;
    for (const NodeGroup& group : spec.groups) {
        if (!group.mig || !group.mig->layout.empty()) continue;
        top.error(
            "scheduler",
            fmt::format(
                "slurm takes slices as it finds them; [[node_group]] '{}' has mig = \"dynamic\"",
                group.name),
            "mig = \"static\" with a mig_layout, or another kind of scheduler");
    }
}

std::vector<std::string> slices_of(const WorldSpec& spec) {
    std::vector<std::string> names;
    for (const NodeGroup& group : spec.groups) {
        for (std::string& name : mig_names(group.gpu.memory)) {
            const bool known = std::ranges::find(names, name) != names.end();
            if (!known) names.push_back(std::move(name));
        }
    }
    return names;
}

void read_slice_request(Section& section, Section& kind_section, const WorldSpec& spec,
                        GpuRequest& request) {
    section.name("slice", request.slice, own_names(section, slices_of(spec)),
                 "a slice of the cluster's GPUs",
                 "Instead of a whole GPU, an instance of this MIG profile",
                 {.otherwise = "whole GPUs"});
    if (request.slice.empty()) return;
    refuse_keys(kind_section, {"gpus", "nodes", "size", "gpus_per_pod", "model", "stream"},
                "has no effect with requires.slice: such a job has one slice");
}

}  // namespace railyard
