#include "models/fabric/materials.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/fabric/topology_builder.h"
#include "sim/check.h"

namespace railyard {

namespace {

// What a cable is made of, by its rate and its length.
class Media {
  public:
    explicit Media(Catalogue& catalogue) : catalogue_(catalogue) {}
    const char* of(const CableKind& c) {
        // 1000BASE-T: a management port has no cage for anything else.
        const bool twisted = c.bandwidth.bits_per_second() <= 1'000'000'000;
        if (twisted) return reaches(c, "cat6") ? "cat6" : "optic_400g";
        for (const char* kind : {"dac", "aoc", "optic_400g", "optic_lr"}) {
            if (reaches(c, kind)) return kind;
        }
        return "optic_zr";
    }

  private:
    bool reaches(const CableKind& c, const char* kind) {
        return c.length.value <= catalogue_.metres("cable", kind, "reach").value;
    }
    Catalogue& catalogue_;
};

const char* medium_of(std::string_view kind) {
    if (kind == "cat6") return "Cat6, RJ45";
    if (kind == "dac") return "DAC";
    if (kind == "aoc") return "AOC";
    if (kind == "optic_lr") return "long optics and fibre";
    return kind == "optic_zr" ? "coherent optics and fibre" : "optics and fibre";
}

// By the planes that a NIC's cable serves and the kind of optics that the scenario has for it; and its
// transceivers. A long cable between buildings is none of these.
void choose_medium(const std::string& optics, std::int64_t planes, Catalogue& catalogue,
                   CableOrder& order) {
    order.medium = medium_of(order.kind);
    bool fibre = order.kind.starts_with("optic");
    if (order.between_buildings()) {
        order.transceivers = 2 * order.count;
        return;
    }
    if (planes > 1) {
        order.kind = "optic_400g";
        order.medium = "split optics and fibre";
        order.bandwidth = order.bandwidth * real(planes);
        order.count /= planes;
        fibre = true;
    }
    order.optics = optics;
    if (!optics.empty()) {
        order.medium = catalogue.text("optics", optics, "name");
        fibre = catalogue.flag("optics", optics, "fibre");
    }
    if (fibre) order.transceivers = 2 * order.count;
}

std::vector<CableOrder> cables_of(const Topology& topology, Catalogue& catalogue) {
    std::vector<CableOrder> out;
    // A NIC's ports leave by one module, whose fibres part on their way to the planes: bought by the module.
    const auto planes = topology.spec().kind == "custom"
                            ? std::int64_t{1}
                            : static_cast<std::int64_t>(topology.up_links(0).size());
    Media media(catalogue);
    std::vector<CableKind> cables = topology.cables();
    std::ranges::stable_sort(
        cables, [](const CableKind& a, const CableKind& b) { return a.low_level < b.low_level; });
    for (const CableKind& c : cables) {
        CableOrder order{
            .where = fmt::format("{} to {}", level_name(c.low_level), level_name(c.low_level + 1)),
            .kind = media.of(c),
            .medium = {},
            .length = c.length,
            .bandwidth = c.bandwidth,
            .count = c.count};
        choose_medium(topology.optics(c.low_level), planes, catalogue, order);
        out.push_back(order);
    }
    return out;
}

// How many more cables of the fastest rate that a switch has find a port there.
std::int64_t free_ports(const Topology& topology, VertexId v, Bandwidth fastest) {
    const SwitchModel& model = topology.switch_model(v);
    if (fastest.bits_per_second() <= 0) return model.ports - topology.ports_used(v);
    auto left = real(model.ports);
    for (const auto& links : {topology.up_links(v), topology.down_links(v)}) {
        for (const LinkId l : links) left -= ports_taken(model, topology.line_rate(l));
    }
    RY_CHECK(left > -port_rounding);
    return static_cast<std::int64_t>(left / ports_taken(model, fastest) + port_rounding);
}

}  // namespace

Materials materials_of(const Topology& topology, Catalogue& catalogue) {
    Materials out;
    out.nics = static_cast<std::int64_t>(topology.nic_count());
    struct Sum {
        double up = 0;
        double down = 0;
    };
    std::vector<Sum> sums;
    for (auto v = static_cast<VertexId>(topology.nic_count()); v < topology.vertex_count(); ++v) {
        const SwitchModel& model = topology.switch_model(v);
        const std::string tier = level_name(topology.level(v));
        auto row = std::ranges::find_if(out.switches, [&](const SwitchOrder& s) {
            return s.tier == tier && s.model == model.name;
        });
        if (row == out.switches.end()) {
            row = out.switches.insert(row, SwitchOrder{.tier = tier, .model = model.name});
            sums.emplace_back();
        }
        Sum& sum = sums[row - out.switches.begin()];
        Bandwidth fastest;
        for (const auto& [links, total] : {std::pair(topology.up_links(v), &sum.up),
                                           std::pair(topology.down_links(v), &sum.down)}) {
            for (const LinkId l : links) {
                *total += topology.line_rate(l).bytes_per_second();
                fastest = std::max(fastest, topology.line_rate(l));
            }
        }
        ++row->count;
        row->ports += topology.ports_used(v) + free_ports(topology, v, fastest);
        row->ports_used += topology.ports_used(v);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i].up > 0) out.switches[i].oversubscription = sums[i].down / sums[i].up;
    }
    out.cables = cables_of(topology, catalogue);
    for (VertexId nic = 0; nic < topology.nic(topology.nodes() / 2, 0); ++nic) {
        for (const LinkId l : topology.up_links(nic)) {
            out.half_of_nics_bytes_per_s += topology.line_rate(l).bytes_per_second();
        }
    }
    return out;
}

}  // namespace railyard
