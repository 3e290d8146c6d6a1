#include "models/failure/cause_reader.h"

namespace railyard {

namespace {

void read_shop(Section& failures, RepairShopSpec& shop) {
    Section repair = failures.section("repair");
    repair.read("crews", shop.crews, "Repairs that are under way at once",
                {Bound::count, "as many as there are broken nodes"});
    repair.read("parts", shop.parts, "Spare parts in stock at the start; each repair takes one",
                {Bound::non_negative, "there is always one"});
    repair.read("lead_time", shop.lead_time,
                "Who asks for a part has another ordered, which comes so much later",
                {Bound::non_negative});
    repair.read("fails_again", shop.fails_again, "Share of repairs that leave the fault in",
                {Bound::fraction});
    repair.read("burn_in", shop.burn_in, "How long a repaired node is tried before it goes back",
                {Bound::non_negative});
    repair.read("burn_in_finds", shop.burn_in_finds,
                "Share of the remaining faults that burn-in finds; the others stop the job that "
                "gets the node",
                {Bound::fraction});
    repair.finish();
    if (repair.describing()) return;
    if (!shop.parts) {
        warn_of_keys(repair, {"lead_time"}, "has no effect without parts");
    } else if (shop.lead_time == Duration{}) {
        warn_of_keys(repair, {"parts"},
                     "has no effect without lead_time: the next is there at once");
    }
    if (repair.has("burn_in_finds") && (shop.fails_again == 0 || shop.burn_in == Duration{})) {
        repair.warning("burn_in_finds", "has no effect without fails_again and burn_in");
    }
    if (shop.fails_again == 1 && shop.burn_in > Duration{} && shop.burn_in_finds == 1) {
        repair.error("fails_again", "no repair would ever end", "a share below 1");
    }
}

void read_quarantine(Section& failures, QuarantineSpec& spec) {
    Section quarantine = failures.section("quarantine");
    quarantine.read("failures", spec.failures,
                    "A node that has failed so often within the time below is locked out",
                    {Bound::count, "none is"});
    quarantine.read("within", spec.within, "The time in which these count", {Bound::positive});
    quarantine.read("inspection", spec.inspection,
                    "After this it is back, a good node; without it, it never is",
                    {Bound::positive, "it never comes back"});
    quarantine.finish();
    if (quarantine.describing()) return;
    if (quarantine.has("failures") != quarantine.has("within")) {
        quarantine.error("", "failures and within go together: so many in how long");
    } else if (quarantine.has("inspection") && spec.failures == 0) {
        quarantine.warning("inspection", "has no effect without failures");
    }
}

void read_search(Section& failures, SearchSpec& spec, const WhatFails& what) {
    Section search = failures.section("search");
    search.read("check_every", spec.check_every, "Time between health checks of all nodes",
                {Bound::positive, "there are none"});
    search.read("check_finds", spec.check_finds, "Share of the slow parts that one check finds",
                {Bound::fraction});
    search.read("compare_after", spec.compare,
                "How long a slow rank shows before a comparison of ranks finds it",
                {Bound::positive, "nobody compares"});
    search.read("compare_above", spec.compare_above,
                "The comparison sees what slows a step by at least this share",
                {Bound::non_negative});
    search.finish();
    if (search.describing()) return;
    if (spec.check_every == Duration{}) {
        warn_of_keys(search, {"check_finds"}, "has no effect without check_every");
    }
    if (spec.compare == Duration{}) {
        warn_of_keys(search, {"compare_above"}, "has no effect without compare_after");
    }
    if (search.present() && !what.anything_slow) {
        failures.warning("search", "has no effect: no cause has slows");
    } else if (what.slow_for_good && spec.check_every == Duration{} && spec.compare == Duration{}) {
        failures.warning("search", "is missing: a part that has become slow stays so for ever",
                         "check_every or compare_after, or a cause's lasts");
    }
}

}  // namespace

void read_lemons(Section& failures, LemonNodes& lemons) {
    Section lemon = failures.section("lemon");
    lemon.read("fraction", lemons.fraction, "Nodes that fail more often", {Bound::fraction});
    lemon.read("rate_multiplier", lemons.rate_multiplier, "How much more often",
               {Bound::at_least_one});
    lemon.read("cured_by_repair", lemons.cured_by_repair,
               "Probability that a repair makes it a node like the others", {Bound::fraction});
    lemon.finish();
    if (lemon.has("rate_multiplier") && lemons.fraction == 0) {
        lemon.warning("rate_multiplier", "has no effect without failures.lemon.fraction");
        lemons.rate_multiplier = 1;
    } else if (lemon.has("fraction") && lemons.rate_multiplier == 1) {
        lemon.warning("fraction", "has no effect with rate_multiplier = 1: they fail as others do");
    } else if (lemons.fraction == 0) {
        warn_of_keys(lemon, {"cured_by_repair"}, "has no effect without failures.lemon.fraction");
    }
}

RepairSpec read_repair(Section& failures, const WhatFails& what) {
    RepairSpec spec;
    failures.read(
        "misdiagnosis", spec.misdiagnosis,
        "Share of diagnoses that blame another node: the job starts again and meets the broken one",
        {Bound::fraction});
    if (spec.misdiagnosis >= 1) {
        failures.error("misdiagnosis", "expected less than 1: somebody must find the node");
        spec.misdiagnosis = 0;
    }
    read_shop(failures, spec.shop);
    read_quarantine(failures, spec.quarantine);
    read_search(failures, spec.search, what);
    if (!what.anything_leaves && !failures.describing()) {
        warn_of_keys(
            failures, {"misdiagnosis", "quarantine", "repair", "repair_sigma"},
            "has no effect: no cause takes a node out (remedy = \"reset\" or \"replace\")");
    }
    return spec;
}

}  // namespace railyard
