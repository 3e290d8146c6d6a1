// The library from outside: reads a scenario, runs its replicas, prints the mean goodput.

#include <cstdio>

#include "models/campaign/campaign.h"

int main(int count, char** arguments) {
    if (count != 2) return 2;
    try {
        const railyard::Scenario scenario = railyard::load_scenario_file(arguments[1]);
        const railyard::CampaignResult result = railyard::run_campaign(scenario, {});
        for (const railyard::MetricSummary& metric : result.metrics) {
            if (metric.name == "goodput") std::printf("%.17g\n", metric.summary.mean);
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
    return 0;
}
