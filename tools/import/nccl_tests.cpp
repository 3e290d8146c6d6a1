// What nccl-tests and rccl-tests print, as rows of the table that 'railyard verify' holds collectives
// against.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "tools/import/importers.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

constexpr const char* nccl_description = R"(title = "nccl-tests"

[table]
row = "{id} {op} {bytes} B"

[table.otherwise]
network = "not said"

[table.nccl_tests]
device = "{device}"
network = "{network}"
collective = "{op}"
algorithm = "{algo}"
nodes = "{nodes}"
gpus = "{gpus}"
bytes = "{bytes}"

[[table.when]]
if = "time_oop_us <= 0"
skip = true

[[table.expect]]
quantity = "us, below 1 MiB"
if = "bytes < 2^20"
published = "time_oop_us"
simulated = "1e6 * time"

[[table.expect]]
quantity = "us, from 1 MiB"
if = "bytes >= 2^20"
published = "time_oop_us"
simulated = "1e6 * time"
)";

struct NcclRow {
    int line = 0;
    std::string bytes;
    std::string redop;
    std::string root;
    std::vector<double> figures;  // time, algbw, busbw of each placement
};

class NcclTests : private Importer {
  public:
    using Importer::Importer;

    void run() {
        for (const std::string& text : {options_.collective, options_.network}) {
            if (text.find_first_of(",\"\n") == std::string::npos) continue;
            throw ScenarioError(fmt::format("'{}': a comma or a quote can't be in it", text));
        }
        take_one_file("a second log: give one, and join the tables");
        read(options_.files.front());
        diagnostics_.raise_if_any();
        check_ranks();
        diagnostics_.raise_if_any();
        part_.note(
            "GB/s are 1e9 bytes/s, out of place and in place; a size is what its collective calls "
            "so.");
        part_.note(
            "With -o mine.csv, mine.toml says what the columns are, for 'railyard verify "
            "mine.csv'.");
        part_.left_out("algorithm and protocol (NCCL_DEBUG=INFO, TUNING), other traffic, channels");
        if (hosts_.size() > 1 && options_.network.empty())
            part_.left_out("NICs of the nodes: --network 8x400G");
        part_.row(
            "id,device,nodes,gpus,op,algo,network,nccl,bytes,time_oop_us,busbw_oop_GBps,time_ip_us,"
            "busbw_ip_GBps,busbw_over_formula,flag,source");
        add_rows();
        part_.beside(".toml", nccl_description);
    }

  private:
    void read(const std::string& file) {
        file_ = file;
        for (const FileLine& line : read_lines(file, diagnostics_)) {
            const std::string_view text = trimmed(line.text);
            const std::size_t starting = line.text.find("Collective test starting:");
            const bool head = starting != std::string::npos || text.starts_with("# nThread");
            if (head && !rows_.empty()) {
                return error(line.at(), "",
                             "a second test begins here, and one has its collective and its ranks",
                             "give each test's output as a file");
            }
            if (starting != std::string::npos) {
                said_ = trimmed(std::string_view(line.text).substr(starting + 25));
                said_ = said_.substr(0, said_.find("_perf"));
            } else if (text.find("nccl-library=") != std::string_view::npos) {
                library_ = text.substr(text.find("nccl-library=") + 13);
            } else if (text.starts_with('#') && text.find("Rank ") != std::string_view::npos) {
                read_rank(line);
            } else if (!text.empty() && text[0] >= '0' && text[0] <= '9' &&
                       !line.text.starts_with(text[0]) &&
                       whole_value(split_text(text, ' ').front())) {
                read_row(line);
            }
            if (diagnostics_.errors().size() > 20) return;
        }
    }

    // "#  Rank  0 Group  0 Pid 475813 on HOST device  0 [0x8f] NVIDIA H200"
    void read_rank(const FileLine& line) {
        const std::vector<std::string> words = split_text(line.text, ' ');
        const auto rank = std::ranges::find(words, "Rank");
        const auto on = std::ranges::find(words, "on");
        const auto device = std::ranges::find(words, "device");
        if (rank + 1 >= words.end() || on + 1 >= words.end() || device == words.end()) return;
        const auto number = whole_value(*(rank + 1));
        if (!number) return;
        ++rank_lines_;
        if (first_rank_line_ == 0) first_rank_line_ = line.number;
        ranks_.insert(*number);
        hosts_.insert(*(on + 1));
        const auto group = std::ranges::find(words, "Group");
        if (group + 1 < words.end() && whole_value(*(group + 1)).value_or(0) > 0) {
            error(line.at(), "Group",
                  "several groups at once (NCCL_TESTS_SPLIT): the figures are of one of them",
                  "run it without a split");
        }
        std::string name;
        for (auto word = device + 1; word != words.end(); ++word) {
            if (word == device + 1 || word->starts_with('[')) continue;
            name += (name.empty() ? "" : " ") + *word;
        }
        devices_.insert(name);
    }

    // Size, count and type, with them redop and root or not; then time, algbw, busbw and errors, twice.
    void read_row(const FileLine& line) {
        const std::vector<std::string> words = split_text(line.text, ' ');
        constexpr std::size_t measured = 8;
        if (words.size() < measured + 3 || words.size() > measured + 5) {
            return error(line.at(), "",
                         fmt::format("{} columns, expected 11 to 13: -I, -S and forks add some",
                                     words.size()),
                         "run it without them");
        }
        const std::size_t lead = words.size() - measured;
        NcclRow row;
        row.line = line.number;
        row.bytes = words[0];
        if (lead > 3) row.redop = words[3];
        if (lead > 4) row.root = words[4];
        for (std::size_t i = 0; i < measured; ++i) {
            if (i % 4 == 3) {
                const std::string& wrong = words[lead + i];
                if (wrong != "N/A" && real_value(wrong).value_or(0) > 0) {
                    return error(
                        line.at(), "#wrong",
                        fmt::format("{} values were wrong: a network that errs is not measured",
                                    wrong),
                        "leave the line out, and find what is broken");
                }
                continue;
            }
            const auto value = real_value(words[lead + i]);
            if (!value || *value < 0) {
                return error(line.at(), "",
                             fmt::format("expected a number, found '{}'", words[lead + i]));
            }
            row.figures.push_back(*value);
        }
        rows_.push_back(std::move(row));
    }

    void check_ranks() {
        if (rows_.empty()) {
            return error("has no row of nccl-tests",
                         "what all_reduce_perf prints: size, count, type, ... time, algbw, busbw");
        }
        if (ranks_.empty()) {
            return error({rows_.front().line, 1}, "", "no line says which ranks there were",
                         "give the head of the output, too: '#  Rank  0 ...'");
        }
        if (rank_lines_ > 1 && ranks_.size() == 1) {
            return error({first_rank_line_, 1}, "Rank",
                         fmt::format("{} processes all call themselves rank {}: nccl-tests was "
                                     "built without MPI=1, and these are {} tests of one GPU",
                                     rank_lines_, *ranks_.begin(), rank_lines_),
                         "make MPI=1");
        }
        const std::int64_t count = *ranks_.rbegin() + 1;
        if (std::ssize(ranks_) != count) {
            error({first_rank_line_, 1}, "Rank",
                  fmt::format("{} of {} ranks are listed: is something left out?", ranks_.size(),
                              count),
                  "give the whole output");
        }
        if (devices_.size() > 1) {
            error({first_rank_line_, 1}, "device", fmt::format("GPUs of {} kinds", devices_.size()),
                  "one kind is expressed");
        }
    }

    std::string collective() {
        if (!options_.collective.empty()) return options_.collective;
        if (!said_.empty()) return said_;
        const NcclRow& row = rows_.back();
        const double ratio = row.figures[1] > 0 ? row.figures[2] / row.figures[1] : 0;
        const auto is = [&](const char* op) { return std::abs(ratio / factor(op) - 1) < 0.03; };
        const bool reduces = row.redop == "sum" || row.redop == "avg" || row.redop == "prod" ||
                             row.redop == "min" || row.redop == "max";
        const bool rootless = row.root.empty() || row.root == "-1";
        if (reduces && rootless && is("all_reduce")) return "all_reduce";
        if (reduces && rootless && is("reduce_scatter")) return "reduce_scatter";
        error({row.line, 1}, "", "nothing says which collective it is", "--collective all_gather");
        return {};
    }

    // Bus bandwidth over algorithm bandwidth.
    double factor(const std::string& op) const {
        const auto n = static_cast<double>(ranks_.size());
        if (op == "all_reduce") return 2 * (n - 1) / n;
        if (op == "all_gather" || op == "reduce_scatter" || op == "alltoall") return (n - 1) / n;
        return 1;
    }

    void add_rows() {
        const std::string op = collective();
        if (!diagnostics_.ok()) return;
        const std::string stem = std::filesystem::path(file_).stem().string();
        std::string device = devices_.empty() ? "" : *devices_.begin();
        std::erase(device, ',');
        for (const NcclRow& row : rows_) {
            const double bus = row.figures[1] * factor(op);
            if (std::abs(row.figures[2] - bus) > 0.02 * bus + 0.02) {
                warning({row.line, 1}, "busbw",
                        fmt::format("{} GB/s are not {} times algbw, as of {} on {} ranks",
                                    row.figures[2], factor(op), op, ranks_.size()));
            }
            part_.row(fmt::format("{},{},{},{},{},default,{},{},{},{},{},{},{},1.000,,{}:{}",
                                  visible(stem), visible(device), hosts_.size(), ranks_.size(),
                                  visible(op), visible(options_.network),
                                  visible(library_.empty() ? "unknown" : library_),
                                  visible(row.bytes), row.figures[0], row.figures[2],
                                  row.figures[3], row.figures[5], visible(file_), row.line));
        }
    }

    std::string said_;  // by "Collective test starting: all_reduce_perf"
    std::string library_;
    std::set<std::int64_t> ranks_;
    std::set<std::string> hosts_;
    std::set<std::string> devices_;
    std::int64_t rank_lines_ = 0;
    int first_rank_line_ = 0;
    std::vector<NcclRow> rows_;
};

}  // namespace

Import import_nccl_tests = run_importer<NcclTests>;

}  // namespace railyard
