// What a node is made of as its own programs see it: NCCL's or RCCL's topology (XML), or the matrix of
// 'nvidia-smi topo -m'. Above all: which GPU has lost something that the others have.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

struct SeenGpu {
    std::string name;
    std::string kind;  // its compute capability, or gcn
    int links = 0;
    int line = 0;
};

class NodeTopology : protected Importer {
  public:
    using Importer::Importer;

  protected:
    // Writes [cluster], and a fault for each GPU with fewer links than most.
    void add_node() {
        std::map<int, int> links;
        std::map<std::string, int> kinds;
        for (const SeenGpu& gpu : gpus_) {
            ++links[gpu.links];
            ++kinds[gpu.kind];
        }
        int usual = 0;
        int most = 0;
        for (const auto& [count, gpus] : links) {
            if (gpus >= most) {
                most = gpus;
                usual = count;
            }
        }
        if (kinds.size() > 1) {
            return error({first_line_, 1}, "",
                         fmt::format("GPUs of {} kinds in one node", kinds.size()),
                         "a node here has GPUs of one kind");
        }
        if (gpus_.size() == 1) {
            warning({first_line_, 1}, "", "one GPU: does a container hide the others?");
        }
        const std::string place = fmt::format("{}:{}", file_, first_line_);
        part_.section("cluster");
        if (!options_.nodes.empty()) {
            part_.quoted("node", options_.nodes.front(), "--node");
        } else {
            part_.left_out("what the node is: cluster.node, or --node");
        }
        part_.whole("gpus_per_node", gpus_.size(), place);
        if (nic_count_ > 0) {
            std::vector<std::string> rates;
            for (const auto& [rate, count] : nics_)
                rates.push_back(fmt::format("{} of {}", count, rate));
            part_.whole("nics_per_node", nic_count_,
                        fmt::format("{}: {}", place, fmt::join(rates, ", ")));
        } else {
            part_.left_out("NICs: none is in the input");
        }
        if (gpus_.size() > 1) {
            part_.value("nvlink", usual > 0 ? "true" : "false",
                        usual > 0 ? fmt::format("{}: {} links a GPU", place, usual)
                                  : fmt::format("{}: no link between GPUs but PCIe", place));
        }
        part_.left_out("nodes: how many there are");
        if (usual > 0) add_faults(usual);
    }

    std::vector<SeenGpu> gpus_;
    std::map<std::string, int> nics_;  // by rate
    int nic_count_ = 0;
    int first_line_ = 0;

  private:
    void add_faults(int usual) {
        for (std::size_t i = 0; i < gpus_.size(); ++i) {
            const SeenGpu& gpu = gpus_[i];
            if (gpu.links == usual) continue;
            if (gpu.links == 0) {
                const std::string what = fmt::format(
                    "has no link to other GPUs, the others {}: a broken GPU or a broken dump. NCCL "
                    "would go over PCIe, at a tenth or less",
                    usual);
                if (options_.skip_bad) {
                    warning({gpu.line, 1}, gpu.name, what, "left out");
                } else {
                    error({gpu.line, 1}, gpu.name, what,
                          "mend it, or --skip-bad takes it as sound");
                }
                continue;
            }
            if (gpu.links > usual) continue;
            warning({gpu.line, 1}, gpu.name,
                    fmt::format("has {} links, most have {}", gpu.links, usual),
                    "it is a [[cluster.fault]] of node 0");
            part_.entry("cluster.fault");
            part_.quoted("part", "nvlink", fmt::format("{}:{}: {}", file_, gpu.line, gpu.name));
            part_.value("node", "0", "the one that was looked at");
            part_.whole("index", i, gpu.name);
            part_.value("speed", fmt::format("{:.4g}", static_cast<double>(gpu.links) / usual),
                        fmt::format("{} of {} links", gpu.links, usual));
        }
    }
};

class NcclTopology : private NodeTopology {
  public:
    using NodeTopology::NodeTopology;
    void run() {
        text_ = read_input(file_);
        pugi::xml_document document;
        const pugi::xml_parse_result parsed = document.load_buffer(text_.data(), text_.size());
        if (!parsed) {
            return error({line_at(text_, parsed.offset), 1}, "",
                         fmt::format("no XML: {}", parsed.description()), "is the file whole?");
        }
        const pugi::xml_node system = document.child("system");
        if (!system) {
            return error({1, 1}, "system", "is missing: NCCL's topology has it outermost",
                         "NCCL_TOPO_DUMP_FILE=topo.xml writes one (not NCCL_GRAPH_DUMP_FILE)");
        }
        walk(system, 0);
        diagnostics_.raise_if_any();
        count_nics();
        if (gpus_.empty()) return error({1, 1}, "gpu", "there is none");
        if (hosts_.size() > 1) {
            return error({first_line_, 1}, "host_hash",
                         fmt::format("{} hosts in one file: several trays of one NVLink domain",
                                     hosts_.size()),
                         "dump it with NCCL_MNNVL_ENABLE=0, one host each");
        }
        if (slow_bridges_ > 0) {
            part_.note("{} PCIe bridges say 2.5 GT/s x1: virtual ones, not real.", slow_bridges_);
        }
        part_.note("{} GPUs, {}.", gpus_.size(), gpus_.front().kind);
        part_.note("Only GPUs of the ranks that dumped it are in such a file.");
        add_node();
    }

  private:
    void walk(const pugi::xml_node& node, int depth) {
        constexpr int deepest = 100;
        if (depth > deepest || !diagnostics_.ok()) return;
        for (const pugi::xml_node& child : node.children()) {
            const std::string_view name = child.name();
            if (name == "gpu") add_gpu(child);
            if (name == "net") nets_.push_back(child);
            if (name == "cpu" && child.attribute("host_hash"))
                hosts_.insert(child.attribute("host_hash").value());
            if (name == "pci" && std::string_view(child.attribute("link_width").value()) == "1" &&
                std::string_view(child.attribute("link_speed").value()).starts_with("2.5")) {
                ++slow_bridges_;
            }
            walk(child, depth + 1);
        }
    }

    void add_gpu(const pugi::xml_node& node) {
        SeenGpu gpu;
        gpu.line = line_of(node);
        gpu.name = fmt::format(
            "GPU {}", node.attribute("dev").as_string(node.parent().attribute("busid").value()));
        const pugi::xml_attribute gcn = node.attribute("gcn");
        gpu.kind = gcn.empty() ? fmt::format("sm {}", node.attribute("sm").value())
                               : fmt::format("gcn {}", gcn.value());
        for (const pugi::xml_node& link : node.children()) {
            const std::string_view name = link.name();
            if (name != "nvlink" && name != "xgmi") continue;
            const int count = link.attribute("count").as_int(0);
            if (count < 0 || count > 1000) {
                error({line_of(link), 1}, "count", "expected 0 to 1000 links");
                return;
            }
            gpu.links += count;
        }
        if (first_line_ == 0) first_line_ = gpu.line;
        gpus_.push_back(std::move(gpu));
    }

    // Whether a GPU is behind the same port of the CPU.
    static bool near_gpu(pugi::xml_node node) {
        while (node.parent() && std::string_view(node.parent().name()) != "cpu")
            node = node.parent();
        const auto is_gpu = [](const pugi::xml_node& n) {
            return std::string_view(n.name()) == "gpu";
        };
        return !node.find_node(is_gpu).empty();
    }

    // Where some NICs are behind the switches of GPUs, the others are for storage or the front end.
    void count_nics() {
        const std::size_t all = nets_.size();
        if (std::ranges::any_of(nets_, near_gpu)) std::erase_if(nets_, std::not_fn(near_gpu));
        for (const pugi::xml_node& net : nets_) add_net(net);
        if (nets_.size() == all) return;
        warning({first_line_, 1}, "net",
                fmt::format("{} of {} NICs are not behind a GPU's PCIe switch", all - nets_.size(),
                            all),
                "left out, as NICs of storage or the front end");
    }

    // In Mbit/s; what NCCL takes for nothing it takes for 10 Gbit/s.
    void add_net(const pugi::xml_node& node) {
        const int speed = node.attribute("speed").as_int(0);
        if (speed <= 0) {
            warning({line_of(node), 1}, node.attribute("name").as_string("net"),
                    "has no speed: NCCL takes it for 10 Gbit/s");
        }
        ++nic_count_;
        ++nics_[fmt::format("{} Gbit/s", (speed <= 0 ? 10000 : speed) / 1000.0)];
    }

    int line_of(const pugi::xml_node& node) const { return line_at(text_, node.offset_debug()); }

    std::string text_;
    std::set<std::string> hosts_;
    std::vector<pugi::xml_node> nets_;
    int slow_bridges_ = 0;
};

std::string without_escapes(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\x1b') {
            while (i < text.size() && text[i] != 'm') ++i;
            continue;
        }
        out += text[i];
    }
    return out;
}

bool is_device(std::string_view name) {
    return name.starts_with("GPU") || name.starts_with("NIC") || name.starts_with("mlx") ||
           name.starts_with("bnxt") || name.starts_with("rocep") || name.starts_with("ib");
}

// Cells like NV18, PIX, SYS; the header is underlined, a terminal's escape sequence, in a file too.
class SmiTopology : private NodeTopology {
  public:
    using NodeTopology::NodeTopology;
    void run() {
        for (const FileLine& line : read_lines(file_, diagnostics_)) {
            const std::string text = without_escapes(line.text);
            const std::string_view code = trimmed(text);
            if (code.starts_with("Legend")) break;
            if (header_.empty()) {
                if (code.starts_with("GPU0")) header_ = split_text(code, ' ');
            } else if (is_device(code)) {
                read_row(line);
            }
        }
        diagnostics_.raise_if_any();
        if (gpus_.empty()) return error("has no row of a GPU", "nvidia-smi topo -m");
        const auto named = std::ranges::count_if(header_, [](const std::string& name) {
            return name.starts_with("GPU") && name.size() > 3;
        });
        if (static_cast<std::size_t>(named) != gpus_.size()) {
            return error(
                {first_line_, 1}, "",
                fmt::format("{} GPUs in the header, {} rows: cut off?", named, gpus_.size()));
        }
        nic_count_ = static_cast<int>(near_.size());
        if (nic_count_ > 0) nics_["PIX or PXB of a GPU"] = nic_count_;
        if (all_nics_.size() > near_.size()) {
            part_.note(
                "{} of {} NICs are near no GPU (NODE, SYS, PHB): for storage, or a virtual "
                "machine hides the bridges. They are not counted.",
                all_nics_.size() - near_.size(), all_nics_.size());
        }
        part_.note("NV18 between all is NVSwitch: links of a GPU, not of a pair.");
        add_node();
    }

  private:
    void read_row(const FileLine& line) {
        const std::vector<std::string> cells = split_text(without_escapes(line.text), ' ');
        std::size_t devices = 0;
        while (devices < header_.size() && is_device(header_[devices]) && header_[devices] != "GPU")
            ++devices;
        if (cells.size() < devices + 1) {
            return error(
                line.at(), cells.empty() ? "" : cells.front(),
                fmt::format("{} cells where the header has {} devices", cells.size() - 1, devices),
                "were tabs lost in copying? Write the output to a file");
        }
        if (!cells.front().starts_with("GPU")) return;
        SeenGpu gpu;
        gpu.name = cells.front();
        gpu.line = line.number;
        if (first_line_ == 0) first_line_ = line.number;
        for (std::size_t i = 0; i < devices; ++i) {
            const std::string& cell = cells[i + 1];
            const std::string& other = header_[i];
            if (cell == "OK" || cell == "NS" || cell == "CNS" || cell == "GNS" || cell == "TNS") {
                return error(
                    line.at(), gpu.name,
                    fmt::format("'{}' is what 'topo -p2p' prints: it is no topology", cell),
                    "nvidia-smi topo -m");
            }
            const bool known = cell == "X" || cell == "PIX" || cell == "PXB" || cell == "PHB" ||
                               cell == "NODE" || cell == "SYS";
            const auto bonded = cell.starts_with("NV") ? whole_value(cell.substr(2)) : std::nullopt;
            if (!known && (!bonded || *bonded < 1 || *bonded > 1000)) {
                return error(line.at(), gpu.name,
                             fmt::format("'{}' to {} is no connection", cell, other),
                             "were tabs lost in copying? Write the output to a file");
            }
            if (bonded) gpu.links = std::max(gpu.links, static_cast<int>(*bonded));
            if (other.starts_with("GPU")) continue;
            all_nics_.insert(other);
            if (cell == "PIX" || cell == "PXB") near_.insert(other);
        }
        gpus_.push_back(std::move(gpu));
    }

    std::vector<std::string> header_;
    std::set<std::string> near_;  // NICs that a GPU reaches within its PCIe switch
    std::set<std::string> all_nics_;
};

}  // namespace

Import import_nccl_topology = run_importer<NcclTopology>;
Import import_nvidia_smi_topo = run_importer<SmiTopology>;

}  // namespace railyard
