// A network of the user's own, read from a file.

#include <fmt/format.h>

#include <algorithm>

#include "models/fabric/topology_builder.h"

namespace railyard {

namespace {

// Reads switches, then cables between them, then the NICs on them, and says what does not fit together.
class CustomReader {
  public:
    CustomReader(Section& top, const TopologySpec& spec, Catalogue& catalogue)
        : top_(top), spec_(spec), catalogue_(catalogue) {}

    Topology read();

  private:
    void read_switches();
    void read_cable(Section& s);
    void read_attachment(Section& s);
    // The vertex of a switch by name; that of no switch, and an error, when there is none.
    VertexId find(Section& s, const char* key, const std::string& name) const;
    bool is_nic(const std::string& name) const;
    void order_nics();
    void check_ports();
    bool attach(VertexId nic, VertexId leaf, Bandwidth rate);
    void check_attachments();
    void check_connections();

    Section& top_;
    const TopologySpec& spec_;
    Catalogue& catalogue_;
    TopologyBuilder t_;
    std::vector<Section> switches_;
    std::vector<std::string> names_;  // of the switches
    std::vector<Section> attached_;
    std::vector<std::int64_t> attached_rate_;  // of each NIC's ports together, in bit/s
};

bool CustomReader::is_nic(const std::string& name) const {
    for (VertexId nic = 0; name.starts_with("node-") && nic < t_.nic_count(); ++nic) {
        if (t_.name(nic) == name) return true;
    }
    return false;
}

VertexId CustomReader::find(Section& s, const char* key, const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
        if (!name.empty()) {
            s.error(key, fmt::format("there is no switch '{}'", name), suggest(name, names_));
        }
        return static_cast<VertexId>(t_.vertex_count());
    }
    return static_cast<VertexId>(t_.nic_count() + static_cast<std::size_t>(found - names_.begin()));
}

void CustomReader::read_switches() {
    std::vector<std::string> known;
    for (const std::string& name : catalogue_.all_names("switch")) {
        if (catalogue_.has("switch", name, "port_bandwidth")) known.push_back(name);
    }
    switches_ = top_.sections("switch", "A switch");
    for (Section& s : switches_) {
        std::string name;
        std::int64_t tier = 1;
        std::string model = spec_.leaf.name;
        s.read("name", name, "What cables call it", {.required = true});
        s.read("tier", tier, "1: a leaf, 2: a spine, 3: a core switch", {Bound::positive});
        s.name("model", model, known, "a switch in the catalogue", "What it is");
        s.finish();
        if (tier > 3) {
            s.error("tier", fmt::format("expected 1, 2 or 3, found {}", tier));
            tier = 3;
        }
        if (std::ranges::find(names_, name) != names_.end()) {
            s.error("name", fmt::format("the switch '{}' appears twice", name));
        }
        if (is_nic(name)) s.error("name", "is the name of a NIC");
        names_.push_back(name);
        t_.add_switch(static_cast<int>(tier), read_switch(catalogue_, model));
    }
    t_.set_names(names_);
}

void CustomReader::read_cable(Section& s) {
    std::string from;
    std::string to;
    std::int64_t count = 1;
    Bandwidth bandwidth = spec_.nic_bandwidth;
    Metres length = spec_.switch_cable;
    s.read("from", from, "A switch", {.required = true});
    s.read("to", to, "Another", {.required = true});
    s.read("count", count, "How many side by side", {Bound::count});
    s.read("bandwidth", bandwidth, "Bandwidth of each, per direction", {Bound::positive});
    s.read("length", length, "Length of each", {Bound::non_negative});
    s.finish();
    constexpr std::int64_t count_max = 1024;
    if (count > count_max) {
        s.error("count", fmt::format("expected at most {}, found {}", count_max, count));
        return;
    }
    VertexId low = find(s, "from", from);
    VertexId high = find(s, "to", to);
    if (low == t_.vertex_count() || high == t_.vertex_count()) return;
    if (t_.level(low) > t_.level(high)) std::swap(low, high);
    if (t_.level(high) != t_.level(low) + 1) {
        s.error("to",
                fmt::format("{} is of tier {} and {} of tier {}: a cable joins neighbouring tiers",
                            from, t_.level(low), to, t_.level(high)));
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) t_.add_cable(low, high, bandwidth, length);
}

void CustomReader::read_attachment(Section& s) {
    const std::int64_t boxes = spec_.nodes + spec_.servers;
    std::string leaf;
    std::int64_t first = 0;
    std::int64_t last = boxes - 1;
    std::optional<std::int64_t> only;
    std::optional<Bandwidth> bandwidth;
    s.read("switch", leaf, "A leaf", {.required = true});
    s.read("first_node", first, "The first node, counted from 0", {Bound::non_negative});
    s.read("last_node", last, "The last node",
           {Bound::non_negative, "the last, storage servers included"});
    s.read("nic", only, "Which NIC of each node, counted from 0",
           {Bound::non_negative, "all of them"});
    s.read("bandwidth", bandwidth, "Bandwidth of the port, per direction",
           {Bound::positive, "the NIC's line rate"});
    s.finish();
    const VertexId at = find(s, "switch", leaf);
    if (last >= boxes || first > last) {
        s.error("last_node", fmt::format("expected {} to {}, found {}", first, boxes - 1, last));
        return;
    }
    if (only && *only >= spec_.nics_per_node) {
        s.error("nic",
                fmt::format("a node has NICs 0 to {}, found {}", spec_.nics_per_node - 1, *only));
        return;
    }
    if (at == t_.vertex_count()) return;
    if (t_.level(at) != 1) {
        s.error("switch",
                fmt::format("{} is of tier {}: NICs attach to leaves", leaf, t_.level(at)));
        return;
    }
    std::optional<VertexId> beyond;  // the first NIC that has more than its rate
    for (std::int64_t node = first; node <= last; ++node) {
        for (std::int64_t i = only.value_or(0); i <= only.value_or(spec_.nics_per_node - 1); ++i) {
            const VertexId nic = t_.nic(node, i);
            const bool fits = attach(nic, at, bandwidth.value_or(spec_.nic_bandwidth));
            if (!fits && !beyond) beyond = nic;
        }
    }
    if (!beyond) return;
    const Bandwidth sum = Bandwidth::bits_per_second(attached_rate_[*beyond]);
    s.error("bandwidth",
            fmt::format("{} has ports of {} together, its line rate is {}", t_.name(*beyond),
                        line_rate_text(sum), line_rate_text(spec_.nic_bandwidth)),
            "a NIC on several leaves has a part of its rate on each");
}

// False: the NIC's ports are together faster than it is.
bool CustomReader::attach(VertexId nic, VertexId leaf, Bandwidth rate) {
    std::int64_t& sum = attached_rate_[nic];
    sum += rate.bits_per_second();
    t_.add_cable(nic, leaf, rate, spec_.endpoint_cable);
    return sum <= spec_.nic_bandwidth.bits_per_second();
}

// In the order in which leaves have them.
void CustomReader::order_nics() {
    std::uint32_t position = 0;
    std::vector<bool> placed(t_.nic_count());
    for (auto leaf = static_cast<VertexId>(t_.nic_count()); leaf < t_.vertex_count(); ++leaf) {
        for (const LinkId l : t_.down_links(leaf)) {
            const VertexId nic = t_.links()[l].to;
            if (t_.level(nic) > 0 || placed[nic]) continue;
            t_.set_position(nic, position++);
            placed[nic] = true;
        }
    }
}

// A cable takes as many of a switch's own ports as its rate is multiples of theirs.
void CustomReader::check_ports() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
        const auto v = static_cast<VertexId>(t_.nic_count() + i);
        const SwitchModel& model = t_.switch_model(v);
        double used = 0;
        for (const auto& links : {t_.up_links(v), t_.down_links(v)}) {
            for (const LinkId l : links) {
                used += ports_taken(model, t_.line_rate(l));
            }
        }
        if (used > real(model.ports) + port_rounding) {
            switches_[i].error(
                "", fmt::format("{} has {} cables worth {:.4g} ports of {}; {} has {}", names_[i],
                                t_.ports_used(v), used, line_rate_text(model.port_bandwidth),
                                model.name, model.ports));
        }
    }
}

void CustomReader::check_attachments() {
    for (VertexId nic = 0; nic < t_.nic_count(); ++nic) {
        if (attached_rate_[nic] > 0) continue;
        Section& last = attached_.empty() ? top_ : attached_.back();
        last.error("", fmt::format("{} is attached to no leaf, here or before", t_.name(nic)),
                   "every NIC of every node needs an [[attach]]");
        break;
    }
}

void CustomReader::check_connections() {
    const std::vector<VertexId> cut = unreachable(t_);
    if (cut.empty()) return;
    const VertexId leaf = t_.links()[t_.up_links(cut[0])[0]].to;
    switches_[leaf - t_.nic_count()].error(
        "", fmt::format("{} and {} are not connected", t_.name(0), t_.name(cut[0])),
        fmt::format("no [[cable]] leads from {} to the others", t_.name(leaf)));
}

Topology CustomReader::read() {
    t_.start(spec_);
    read_switches();
    for (Section& s : top_.sections("cable", "Cables between two switches of neighbouring tiers")) {
        read_cable(s);
    }
    attached_rate_.assign(t_.nic_count(), 0);
    if (spec_.servers > 0 && spec_.nics_per_server != spec_.nics_per_node) {
        top_.error(
            "",
            fmt::format("servers have {} NICs and nodes {}: a custom network takes only one number",
                        spec_.nics_per_server, spec_.nics_per_node));
        return std::move(t_);
    }
    attached_ = top_.sections("attach", "NICs of a run of nodes on one leaf, a port each");
    for (Section& s : attached_) read_attachment(s);
    t_.finish();
    if (top_.describing()) return std::move(t_);
    order_nics();
    check_ports();
    check_attachments();
    if (top_.ok()) check_connections();
    return std::move(t_);
}

}  // namespace

Topology Topology::read(Section& top, const TopologySpec& spec, Catalogue& catalogue) {
    return CustomReader(top, spec, catalogue).read();
}

}  // namespace railyard
