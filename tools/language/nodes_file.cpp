#include "tools/language/nodes_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/text.h"
#include "tools/program/csv_table.h"

namespace railyard {

namespace {

class NodesFile {
  public:
    explicit NodesFile(const std::string& path) : path_(path), table_(read_csv_table(path)) {}

    std::vector<VirtualCluster> read(std::optional<std::int64_t> gpus_per_node) {
        const std::string name = need("which virtual cluster", {"vc", "partition", "name"});
        const std::string nodes = need("how many nodes it has", {"nodes", "node num"});
        const std::optional<std::string> gpus = column({"gpus_per_node"});
        if (!gpus && !gpus_per_node) {
            throw ScenarioError(fmt::format("{}: no column says how many GPUs a node has", path_),
                                "give --gpus-per-node or a column gpus_per_node");
        }
        std::vector<VirtualCluster> out;
        for (const CsvRow& row : table_.rows) {
            ++row_;
            VirtualCluster c{row.at(name), count(row, nodes, nodes_max), 0};
            c.gpus_per_node = gpus ? count(row, *gpus, gpus_per_node_max) : *gpus_per_node;
            const bool twice = std::ranges::any_of(
                out, [&](const VirtualCluster& other) { return other.name == c.name; });
            if (twice) error(name, fmt::format("'{}' has a row already", c.name));
            out.push_back(std::move(c));
        }
        diagnostics_.raise_if_any();
        if (out.empty()) throw ScenarioError(fmt::format("{} has no virtual cluster", path_));
        return out;
    }

  private:
    std::optional<std::string> column(const std::vector<std::string>& names) const {
        for (const std::string& name : names) {
            if (std::ranges::find(table_.columns, name) != table_.columns.end()) return name;
        }
        return std::nullopt;
    }
    std::string need(const char* what, const std::vector<std::string>& names) const {
        if (const auto found = column(names)) return *found;
        throw ScenarioError(fmt::format("{}: no column says {}: expected one called {}", path_,
                                        what, fmt::join(names, " or ")));
    }
    std::int64_t count(const CsvRow& row, const std::string& column, std::int64_t most) {
        const std::string& cell = row.at(column);
        const auto value = whole_value(cell);
        if (value && *value >= 1 && *value <= most) return *value;
        error(column, fmt::format("expected a whole number from 1 to {}, found '{}'", most, cell));
        return 1;
    }
    void error(const std::string& column, const std::string& message) {
        diagnostics_.error(fmt::format("{}: row {}", path_, row_), {}, column, message);
    }

    const std::string& path_;
    CsvTable table_;
    std::size_t row_ = 0;
    Diagnostics diagnostics_;
};

}  // namespace

std::vector<VirtualCluster> read_nodes_file(const std::string& path,
                                            std::optional<std::int64_t> gpus_per_node) {
    return NodesFile(path).read(gpus_per_node);
}

}  // namespace railyard
