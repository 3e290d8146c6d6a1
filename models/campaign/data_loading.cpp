#include <algorithm>

#include "models/campaign/sections.h"

namespace railyard {

namespace {

// What a store gives to readers.
DataSupply supply_of_data(const StoreLimits& limits) {
    DataSupply supply;
    supply.store_bandwidth = least(limits.read).bandwidth.bytes_per_second();
    supply.node_bandwidth = limits.client_read.bytes_per_second();
    if (limits.opens_per_s > 0) supply.opens_per_s = limits.opens_per_s;
    supply.open_latency = limits.open_latency;
    supply.first_byte = limits.first_byte;
    return supply;
}

DataPrices prices_of_data(const StorePrices& prices) {
    return {prices.per_egress_byte, prices.per_read_request,
            static_cast<double>(prices.read_part.count())};
}

DataContext context_of(const Scenario& s) {
    DataContext context;
    context.node = s.node.name;
    context.nodes = s.job.nodes;
    context.gpus_per_node = s.job.gpus_per_node;
    context.step = s.job.step.duration();
    context.tokens_per_step = s.tokens_per_step;
    return context;
}

// Nothing where the loaders always keep up.
std::optional<DataFeedSpec> feed_of(const Scenario& s) {
    const DataLoading& data = *s.data;
    const bool objects = data.source == DataSource::object_store;
    const std::size_t store = objects ? object_store_index : shared_store;
    const bool alone = data.source == DataSource::local || store >= s.stores.size();
    const bool shuffles = data.shuffle_buffers > Bytes{};
    if (alone && !shuffles) return {};
    DataFeedSpec feed{.loader = data.loader,
                      .supply = data.supply,
                      .store = store,
                      .weight = s.fair_by_job ? 1 : s.job.nodes,
                      .cold = data.supply,
                      .alone = alone};
    feed.cold.memory_share = feed.cold.local_share = 0;
    const auto epoch_steps =
        static_cast<std::int64_t>(std::min(9e15, data.dataset_bytes / data.bytes_per_step));
    if (data.hit_rate > 0 && !alone) feed.cold_steps = epoch_steps;
    if (shuffles && data.dataset_bytes > 0) {
        feed.epoch_steps = std::max<std::int64_t>(1, epoch_steps);
    }
    return feed;
}

}  // namespace

void join_data(Section& job, Catalogue& catalogue, const LossCauses& without, Scenario& s) {
    DataContext context = context_of(s);
    if (job.ok() && !job.describing() && job.has("data")) {
        const StoreSetup& shared = s.stores[shared_store];
        context.store = supply_of_data(shared.limits);
        if (shared.system) {
            context.store_prices = prices_of_data(shared.system->prices());
        }
        if (s.stores.size() > object_store_index) {
            const StoreSetup& objects = s.stores[object_store_index];
            context.objects = supply_of_data(objects.limits);
            context.object_prices = prices_of_data(objects.system->prices());
        }
    }
    s.data = read_data(job, catalogue, context);
    remove_from_data(s, without);
    if (!s.data) return;
    constexpr double wait_seconds_max = 1e7;  // 116 days: a mistake in the scenario
    s.job.step.data_wait = from_seconds(std::min(s.data->flow.data_wait_s, wait_seconds_max));
    if (!has(without, LossCause::storage)) s.job.data = feed_of(s);
}

}  // namespace railyard
