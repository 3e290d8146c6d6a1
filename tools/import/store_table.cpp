#include "tools/import/store_table.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/import/text_file.h"

namespace railyard {

namespace {

// A field of a CSV: what it has of commas, quotes and ends of lines goes.
std::string table_field(std::string text) {
    std::erase_if(text, [](char c) { return c == ',' || c == '"'; });
    return visible(text);
}

// A save as large as 10 s of the measured rate, and a job that does nothing but read.
constexpr const char* store_description = R"([run]
duration = "24 h"
replicas = 1

# The store that was measured: say which it is and what of it there is, as in
# [storage]
# system = "weka"
# servers = 8

[job]
step.time = "1 ms"
checkpoint.mode = "none"

[job.data]  # next to nothing, beside a save
sample_size = "1 kB"

[table]
row = "{id}, {hosts} hosts"

[table.set]
"cluster.nodes" = "{hosts}"

[[table.when]]
column = "operation"
is = ["write"]
set."job.checkpoint.mode" = "sync"
set."job.checkpoint.size" = "{10 * GBps} GB"
set."job.checkpoint.interval" = "6 h"

[[table.when]]
column = "operation"
contains = ["read"]
set = { "job.data.sample_size" = "1 GB", "job.data.samples_per_file" = 1 }

[[table.expect]]
quantity = "GB/s written"
column = "operation"
is = ["write"]
published = "GBps"
simulated = "10 * GBps / checkpoint_time_to_safe"

[[table.expect]]
quantity = "GB/s read"
column = "operation"
is = ["read"]
published = "GBps"
simulated = "1e-9 * data_fetched / wall_time"

[[table.expect]]
quantity = "GB/s read, at least"
column = "operation"
is = ["read_at_least"]
published = "GBps"
simulated = "1e-9 * data_fetched / wall_time"
as = "at_least"
)";

}  // namespace

void StoreTable::add(const StoreRun& run) {
    if (!(run.bytes_per_s > 0) || !std::isfinite(run.bytes_per_s)) {
        return error(Position{}, run.id, "expected a rate of more than 0",
                     "has the run ended well?");
    }
    const char* operation = run.operation == StoreOperation::write ? "write"
                            : run.at_least                         ? "read_at_least"
                                                                   : "read";
    rows_.push_back(fmt::format("{},{},{},{},{:.6g},{}", table_field(run.id), program_, operation,
                                run.hosts, run.bytes_per_s * 1e-9, table_field(run.source)));
}

void StoreTable::pass_over(const std::string& what, const std::string& why) {
    passed_over_.push_back(fmt::format("{}: {}", what, why));
}

std::int64_t StoreTable::hosts(std::int64_t said) {
    const std::int64_t count = options_.hosts.value_or(said);
    if (count < 1) {
        error("nothing says how many nodes took part", "--hosts 10");
    }
    if (options_.hosts && said > 0 && said != count) {
        warning(fmt::format("says that {} nodes took part, --hosts {}", said, count));
    }
    return count;
}

void StoreTable::finish(const std::string& else_missing) {
    diagnostics_.raise_if_any();
    if (rows_.empty()) {
        error("has nothing that the program has a figure for",
              passed_over_.empty() ? "" : some_of(passed_over_));
        diagnostics_.raise_if_any();
    }
    part_.note("GBps are 1e9 bytes/s, of all nodes together.");
    part_.note(
        "With -o mine.csv, mine.toml says what the columns are, for 'railyard verify mine.csv'; "
        "say in "
        "it which store it was.");
    part_.left_out("the store: what it is, its servers, drives, protection and caches");
    if (!else_missing.empty()) part_.left_out("{}", else_missing);
    for (const std::string& what : passed_over_) part_.note("Not a row: {}", what);
    part_.row("id,program,operation,hosts,GBps,source");
    for (const std::string& row : rows_) part_.row(row);
    const std::string node =
        options_.nodes.empty()
            ? ""
            : fmt::format("\n[cluster]\nnode = {}\n", toml_text(options_.nodes.front()));
    part_.beside(".toml", fmt::format("title = {}\n\n{}{}", toml_text(program_ + " of a store"),
                                      store_description, node));
}

}  // namespace railyard
