#include "tools/verify/tables.h"

#include "tools/verify/arithmetic.h"
#include "tools/verify/described_table.h"
#include "tools/verify/fleets.h"
#include "tools/verify/megatron_text.h"
#include "tools/verify/nccl.h"
#include "tools/verify/networks.h"
#include "tools/verify/packets.h"
#include "tools/verify/published_runs.h"
#include "tools/verify/reliability.h"
#include "tools/verify/schedules.h"
#include "tools/verify/storage.h"
#include "tools/verify/stores.h"
#include "tools/verify/streams.h"

namespace railyard {

std::vector<VerifiedTable> verify_table(const CsvTable& table, const VerifyOptions& options) {
    const std::optional<std::string> description =
        options.description.empty() ? description_of(table) : options.description;
    if (description) return {verify_described(table, *description, options.settings)};
    const Value* overrides = options.overrides;
    if (auto runs = verify_published_runs(table, overrides)) return {std::move(*runs)};
    // A run's limits are known from others of the same table.
    if (table.name.starts_with("50")) return {verify_mlperf_storage(table, overrides)};
    if (table.name.starts_with("03")) return {verify_megatron_text(table, overrides)};
    if (auto stores = verify_stores(table, overrides)) return {std::move(*stores)};
    if (auto schedules = verify_schedules(table)) return {std::move(*schedules)};
    if (auto fleets = verify_fleets(table, overrides)) return {std::move(*fleets)};
    if (auto streams = verify_streams(table, overrides)) return {std::move(*streams)};
    if (auto networks = verify_networks(table)) return {std::move(*networks)};
    if (auto packets = verify_packets(table)) return {std::move(*packets)};
    if (auto reliability = verify_reliability(table)) return {std::move(*reliability)};
    std::vector<VerifiedTable> out;
    for (const auto& formats : {nccl_tables(), arithmetic_tables()}) {
        for (const TableFormat& format : formats) {
            if (!table.name.starts_with(format.number)) continue;
            VerifiedTable each{table.name, format.what, table.rows.size()};
            Bench bench(overrides);
            each_row(table, each.unused, [&](const Fields& f) {
                if (const RowResult result = format.row(bench, f))
                    each.expressed.push_back(*result);
            });
            bench.check();
            out.push_back(std::move(each));
        }
    }
    return out;
}

}  // namespace railyard
