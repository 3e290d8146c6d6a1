// A network of the user's own, read from a file.

#include <fmt/format.h>

#include <algorithm>

#include "models/fabric/topology.h"

namespace railyard {

Topology Topology::read(Section& top, const TopologySpec& spec, Catalogue& catalogue) {
    Topology t;
    t.start(spec);
    const std::vector<std::string> known = [] {
        std::vector<std::string> names;
        for (const std::string& name : Catalogue::names("switch")) {
            if (Catalogue::entry("switch", name)->find("port_bandwidth")) names.push_back(name);
        }
        return names;
    }();
    const auto is_nic = [&](const std::string& name) {
        for (VertexId nic = 0; name.starts_with("node-") && nic < t.nic_count(); ++nic) {
            if (t.name(nic) == name) return true;
        }
        return false;
    };
    std::vector<std::string> names;
    std::vector<Section> switches = top.sections("switch", "A switch");
    for (Section& s : switches) {
        std::string name;
        std::int64_t tier = 1;
        std::string model = spec.leaf.name;
        s.read("name", name, "What cables call it", {.required = true});
        s.read("tier", tier, "1: a leaf, 2: a spine, 3: a core switch", {.bound = Bound::positive});
        s.name("model", model, known, "a switch in the catalogue", "What it is");
        s.finish();
        if (tier > 3) {
            s.error("tier", fmt::format("expected 1, 2 or 3, found {}", tier));
            tier = 3;
        }
        if (std::find(names.begin(), names.end(), name) != names.end()) {
            s.error("name", fmt::format("the switch '{}' appears twice", name));
        }
        if (is_nic(name)) s.error("name", "is the name of a NIC");
        names.push_back(name);
        t.add_switch(static_cast<int>(tier), read_switch(catalogue, model));
    }
    t.given_name_ = names;
    // The vertex of a switch by name; that of no switch, and an error, when there is none.
    const auto find = [&](Section& s, const char* key, const std::string& name) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end()) {
            if (!name.empty()) {
                s.error(key, fmt::format("there is no switch '{}'", name), suggest(name, names));
            }
            return static_cast<VertexId>(t.vertex_count());
        }
        return static_cast<VertexId>(t.nic_count() +
                                     static_cast<std::size_t>(found - names.begin()));
    };
    for (Section& s : top.sections("cable", "Cables between two switches of neighbouring tiers")) {
        std::string from;
        std::string to;
        std::int64_t count = 1;
        Bandwidth bandwidth = spec.nic_bandwidth;
        Metres length = spec.switch_cable;
        s.read("from", from, "A switch", {.required = true});
        s.read("to", to, "Another", {.required = true});
        s.read("count", count, "How many side by side", {.bound = Bound::count});
        s.read("bandwidth", bandwidth, "Of each, per direction", {.bound = Bound::positive});
        s.read("length", length, "Of each", {.bound = Bound::non_negative});
        s.finish();
        constexpr std::int64_t count_max = 1024;
        if (count > count_max) {
            s.error("count", fmt::format("expected at most {}, found {}", count_max, count));
            continue;
        }
        VertexId low = find(s, "from", from);
        VertexId high = find(s, "to", to);
        if (low == t.vertex_count() || high == t.vertex_count()) continue;
        if (t.level(low) > t.level(high)) std::swap(low, high);
        if (t.level(high) != t.level(low) + 1) {
            s.error(
                "to",
                fmt::format("{} is of tier {} and {} of tier {}: a cable joins neighbouring tiers",
                            from, t.level(low), to, t.level(high)));
            continue;
        }
        for (std::int64_t i = 0; i < count; ++i) t.add_cable(low, high, bandwidth, length);
    }
    std::vector<std::int64_t> ports(t.nic_count(), 0);
    const std::int64_t boxes = spec.nodes + spec.servers;
    if (spec.servers > 0 && spec.nics_per_server != spec.nics_per_node) {
        top.error(
            "",
            fmt::format("servers have {} NICs and nodes {}: a custom network takes only one number",
                        spec.nics_per_server, spec.nics_per_node));
        return t;
    }
    std::vector<Section> attached =
        top.sections("attach", "NICs of a run of nodes on one leaf, a port each");
    for (Section& s : attached) {
        std::string leaf;
        std::int64_t first = 0;
        std::int64_t last = boxes - 1;
        std::optional<std::int64_t> only;
        std::optional<Bandwidth> bandwidth;
        s.read("switch", leaf, "A leaf", {.required = true});
        s.read("first_node", first, "The first node, counted from 0",
               {.bound = Bound::non_negative});
        s.read("last_node", last, "The last node",
               {.bound = Bound::non_negative, .otherwise = "the last, storage servers included"});
        s.read("nic", only, "Which NIC of each node, counted from 0",
               {.bound = Bound::non_negative, .otherwise = "all of them"});
        s.read("bandwidth", bandwidth, "Of the port, per direction",
               {.bound = Bound::positive, .otherwise = "the NIC's line rate"});
        s.finish();
        const VertexId at = find(s, "switch", leaf);
        if (last >= boxes || first > last) {
            s.error("last_node",
                    fmt::format("expected {} to {}, found {}", first, boxes - 1, last));
            continue;
        }
        if (only && *only >= spec.nics_per_node) {
            s.error("nic", fmt::format("a node has NICs 0 to {}, found {}", spec.nics_per_node - 1,
                                       *only));
            continue;
        }
        if (at == t.vertex_count()) continue;
        if (t.level(at) != 1) {
            s.error("switch",
                    fmt::format("{} is of tier {}: NICs attach to leaves", leaf, t.level(at)));
            continue;
        }
        for (std::int64_t node = first; node <= last; ++node) {
            for (std::int64_t i = only.value_or(0); i <= only.value_or(spec.nics_per_node - 1);
                 ++i) {
                const VertexId nic = t.nic(node, i);
                ++ports[nic];
                t.add_cable(nic, at, bandwidth.value_or(spec.nic_bandwidth), spec.endpoint_cable);
            }
        }
    }
    t.finish();
    if (top.describing()) return t;
    std::uint32_t position = 0;
    std::vector<bool> placed(t.nic_count());
    for (auto leaf = static_cast<VertexId>(t.nic_count()); leaf < t.vertex_count(); ++leaf) {
        for (const LinkId l : t.down_links(leaf)) {
            const VertexId nic = t.links()[l].to;
            if (t.level(nic) > 0 || placed[nic]) continue;
            t.position_[nic] = position++;
            placed[nic] = true;
        }
    }
    // Ports: a cable takes as many of a switch's own as its rate is multiples of theirs.
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto v = static_cast<VertexId>(t.nic_count() + i);
        const SwitchModel& model = t.switch_model(v);
        double used = 0;
        for (const auto& links : {t.up_links(v), t.down_links(v)}) {
            for (const LinkId l : links) {
                used += t.links()[l].bytes_per_s / model.port_bandwidth.bytes_per_second();
            }
        }
        if (used > static_cast<double>(model.ports)) {
            switches[i].error(
                "", fmt::format("{} has {} cables worth {:.4g} ports of {}; {} has {}", names[i],
                                t.ports_used(v), used, line_rate_text(model.port_bandwidth),
                                model.name, model.ports));
        }
    }
    for (VertexId nic = 0; nic < t.nic_count(); ++nic) {
        if (ports[nic] > 0) continue;
        Section& last = attached.empty() ? top : attached.back();
        last.error("", fmt::format("{} is attached to no leaf, here or before", t.name(nic)),
                   "every NIC of every node needs an [[attach]]");
        break;
    }
    if (!top.ok()) return t;
    if (const std::vector<VertexId> cut = t.unreachable(); !cut.empty()) {
        const VertexId leaf = t.links()[t.up_links(cut[0])[0]].to;
        switches[leaf - t.nic_count()].error(
            "", fmt::format("{} and {} are not connected", t.name(0), t.name(cut[0])),
            fmt::format("no [[cable]] leads from {} to the others", t.name(leaf)));
    }
    return t;
}

}  // namespace railyard
