#include "tools/report/topology_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace railyard {

namespace {

// Cables between the same two, NICs of a node as one.
struct Bundle {
    std::int64_t cables = 0;
    std::int64_t broken = 0;
    double load = 0;  // of its busiest cable, either way
};
// By (lower, upper): a node is its first NIC.
using Bundles = std::map<std::pair<VertexId, VertexId>, Bundle>;

Bundles bundles_of(const Topology& t, const std::vector<double>& load = {}) {
    Bundles out;
    for (LinkId l = 0; l < t.links().size(); l += 2) {
        const Link& link = t.links()[l];
        VertexId low = link.from;
        if (t.level(low) == 0) low = t.nic(static_cast<std::int64_t>(low) / t.nics_per_node(), 0);
        Bundle& bundle = out[{low, link.to}];
        ++bundle.cables;
        if (!load.empty()) bundle.load = std::max({bundle.load, load[l], load[reverse_link(l)]});
        bundle.broken += link.bytes_per_s < t.line_rate(l).bytes_per_second();
    }
    return out;
}

std::string node_name(const Topology& t, VertexId nic) {
    return fmt::format("node-{}", static_cast<std::int64_t>(nic) / t.nics_per_node());
}

std::string escaped(const std::string& text, bool xml) {
    std::string out;
    for (const char c : text) {
        if (xml && c == '&') {
            out += "&amp;";
        } else if (xml && c == '<') {
            out += "&lt;";
        } else if (!xml && (c == '"' || c == '\\')) {
            out += std::string("\\") + c;
        } else {
            out += c;
        }
    }
    return out;
}

std::string label(const Topology& t, VertexId v, bool xml) {
    return escaped(t.level(v) == 0 ? node_name(t, v) : t.name(v), xml);
}

// The end of a line's element: its colour from blue (idle) over grey to red (the busiest).
std::string load_style(const Bundle& bundle) {
    const double hot = std::clamp(bundle.load, 0.0, 1.0);
    const auto mix = [&](double cold, double middle, double most) {
        return static_cast<int>(hot < 0.5 ? cold + (middle - cold) * hot * 2
                                          : middle + (most - middle) * (hot * 2 - 1));
    };
    return fmt::format(
        " stroke=\"rgb({},{},{})\" stroke-opacity=\"{:.2f}\"{}><title>{:.0f} % of the busiest "
        "link's load</title></line>",
        mix(120, 230, 200), mix(160, 170, 30), mix(210, 60, 30), 0.35 + 0.65 * hot,
        bundle.broken > 0 ? " stroke-dasharray=\"4 3\"" : "", 100 * hot);
}

constexpr std::size_t lines_max = 4000;
constexpr double width = 1200;
constexpr double row_height = 150;
constexpr double top = 60;

// Where the vertices stand: a row for each level, of which nodes are the lowest; one NIC stands for a node.
struct Rows {
    explicit Rows(const Topology& t) : of_level(static_cast<std::size_t>(t.levels()) + 1) {
        for (VertexId v = 0; v < t.vertex_count(); ++v) {
            if (t.level(v) > 0 || v % t.nics_per_node() == 0) {
                of_level[static_cast<std::size_t>(t.level(v))].push_back(v);
            }
        }
        x.resize(t.vertex_count());
        for (const auto& row : of_level) {
            for (std::size_t i = 0; i < row.size(); ++i) {
                x[row[i]] =
                    width * (static_cast<double>(i) + 0.5) / static_cast<double>(row.size());
            }
        }
    }
    double y(int level) const {
        return top + row_height * (static_cast<int>(of_level.size()) - 1 - level);
    }

    std::vector<std::vector<VertexId>> of_level;
    std::vector<double> x;  // of each vertex
};

// One line in `every`, and all that are broken.
std::string lines_svg(const Topology& t, const Rows& rows, const Bundles& bundles,
                      std::size_t every, bool loaded) {
    std::string out = "<g stroke=\"#8aa\" stroke-opacity=\"0.5\">\n";
    std::size_t index = 0;
    for (const auto& [ends, bundle] : bundles) {
        const bool broken = bundle.broken > 0;
        if (index++ % every != 0 && !broken) continue;
        out += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" stroke-width=\"{:.1f}\"{}\n",
            rows.x[ends.first], rows.y(t.level(ends.first)), rows.x[ends.second],
            rows.y(t.level(ends.second)),
            0.6 + 0.2 * static_cast<double>(std::min<std::int64_t>(bundle.cables, 16)),
            !loaded ? (broken ? " stroke=\"#c00\" stroke-opacity=\"1\"/>" : "/>")
                    : load_style(bundle));
    }
    return out + "</g>\n";
}

std::string boxes_svg(const Topology& t, const Rows& rows) {
    std::string out;
    constexpr const char* fills[] = {"#e8eef7", "#b7d3b0", "#f2d29b", "#e3b1b1"};
    for (std::size_t level = 0; level < rows.of_level.size(); ++level) {
        const auto& row = rows.of_level[level];
        const double box = std::min(
            86.0, 0.86 * width / static_cast<double>(std::max<std::size_t>(1, row.size())));
        for (const VertexId v : row) {
            out += fmt::format(
                "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"24\" rx=\"3\" fill=\"{}\" "
                "stroke=\"#555\" stroke-width=\"0.5\"><title>{}</title></rect>\n",
                rows.x[v] - box / 2, rows.y(static_cast<int>(level)) - 12, box,
                fills[std::min<std::size_t>(level, 3)], label(t, v, true));
            if (box > 40) {
                out +=
                    fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                                rows.x[v], rows.y(static_cast<int>(level)) + 4, label(t, v, true));
            }
        }
        const char* what = level == 0   ? "nodes"
                           : level == 1 ? "leaves"
                           : level == 2 ? "spines"
                                        : "core switches";
        out += fmt::format("<text x=\"10\" y=\"{}\" fill=\"#444\">{} {}</text>\n",
                           rows.y(static_cast<int>(level)) - 20, row.size(), what);
    }
    return out;
}

}  // namespace

std::string topology_svg(const Topology& t, const std::string& title,
                         const std::vector<double>& load) {
    const Rows rows(t);
    const Bundles bundles = bundles_of(t, load);
    const std::size_t every = bundles.size() / lines_max + 1;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<title>{}</title>\n<rect width=\"100%\" "
        "height=\"100%\" fill=\"#fff\"/>\n"
        "<text x=\"10\" y=\"20\" font-size=\"15\">{}</text>\n",
        width, rows.y(0) + 60, escaped(title, true), escaped(title, true));
    if (every > 1) {
        out += fmt::format(
            "<text x=\"{}\" y=\"20\" text-anchor=\"end\" fill=\"#666\">one line in {} is "
            "drawn</text>\n",
            width - 10, every);
    }
    out += lines_svg(t, rows, bundles, every, !load.empty());
    return out + boxes_svg(t, rows) + "</svg>\n";
}

std::string topology_dot(const Topology& t, const std::string& title) {
    std::string out = fmt::format("graph \"{}\" {{\n  rankdir = BT;\n  node [shape = box];\n",
                                  escaped(title, false));
    for (const auto& [ends, bundle] : bundles_of(t)) {
        std::string attributes =
            bundle.cables > 1 ? fmt::format("label = \"{}\"", bundle.cables) : "";
        if (bundle.broken > 0)
            attributes += std::string(attributes.empty() ? "" : ", ") + "color = red";
        out += fmt::format("  \"{}\" -- \"{}\"{};\n", label(t, ends.first, false),
                           label(t, ends.second, false),
                           attributes.empty() ? "" : " [" + attributes + "]");
    }
    return out + "}\n";
}

}  // namespace railyard
