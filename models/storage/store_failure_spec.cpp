#include "models/storage/store_failure_spec.h"

#include <fmt/format.h>

#include "sim/check.h"
#include "sim/text.h"

namespace railyard {

namespace {

const std::vector<std::string> store_part_names = {"drive", "server",
                                                   "box"};  // in the order of StorePart

const std::string& name_of(StorePart part) {
    return word_of(store_part_names, part);
}

std::string none_text(StorePart part) {
    return part == StorePart::drive
               ? "this store's drives are not modelled"
               : fmt::format("this store has no {}", part == StorePart::box ? "boxes" : "servers");
}

struct PartKeys {
    const char* entry;  // of the catalogue's infrastructure
    const char* rate;
    const char* repair;
};

class StoreFailureReader {
  public:
    StoreFailureReader(Section& storage, Catalogue& catalogue, const Protection& protection)
        : storage_(storage), catalogue_(catalogue), protection_(protection) {}

    std::optional<StoreFailureSpec> read();

  private:
    std::int64_t count(StorePart part) const;
    void read_part(Section& section, StoreFailureSpec::Part& out, StorePart part,
                   const PartKeys& keys, bool random);
    StoreStrike read_strike(Section& section, const StoreFailureSpec& spec);

    Section& storage_;
    Catalogue& catalogue_;
    const Protection& protection_;
};

std::int64_t StoreFailureReader::count(StorePart part) const {
    switch (part) {
        case StorePart::drive:
            return protection_.drive_capacity > Bytes{}
                       ? protection_.groups * protection_.group_drives
                       : 0;
        case StorePart::server:
            return protection_.servers;
        case StorePart::box:
            return protection_.boxes;
    }
    RY_UNREACHABLE("a store has no other parts");
}

void StoreFailureReader::read_part(Section& section, StoreFailureSpec::Part& out, StorePart part,
                                   const PartKeys& keys, bool random) {
    std::optional<Rate> rate;
    std::optional<Duration> repair;
    section.read(keys.rate, rate, "Failures per time of one",
                 {Bound::non_negative, "from the catalogue"});
    section.read(keys.repair, repair, "Mean time until it is back, or another is in its place",
                 {Bound::non_negative, "from the catalogue"});
    if (!section.present() || section.describing()) return;
    if (count(part) == 0) {
        warn_of_keys(section, {keys.rate, keys.repair}, "has no effect: " + none_text(part));
        return;
    }
    out.repair = repair ? *repair : catalogue_.time("infrastructure", keys.entry, "repair_time");
    if (!random) {
        if (rate) section.warning(keys.rate, "has no effect with random = false");
        return;
    }
    out.rate = rate ? *rate : catalogue_.rate("infrastructure", keys.entry, "annual_failure_rate");
    constexpr double per_second_max = 1;
    const double per_second = out.rate.per_second * real(count(part));
    if (per_second > per_second_max) {
        section.error(keys.rate,
                      fmt::format("the store's {} {}s would fail {:.3g} times a second",
                                  count(part), name_of(part), per_second),
                      "the rate is of one: \"0.01 /year\", say");
    }
}

StoreStrike StoreFailureReader::read_strike(Section& section, const StoreFailureSpec& spec) {
    StoreStrike strike;
    section.read("at", strike.at, "When, from the campaign's start",
                 {.bound = Bound::non_negative, .required = true});
    int part = 0;
    section.choose("part", part, store_part_names, "What breaks");
    strike.part = static_cast<StorePart>(part);
    section.read("index", strike.index, "Which, from 0", {Bound::non_negative});
    std::optional<Duration> down_for;
    section.read("down_for", down_for, "Until it is back, or another drive is in its place",
                 {Bound::non_negative, "such a part's mean repair time"});
    section.read("takes_data", strike.takes_data, "A server that holds data comes back without it");
    section.finish();
    if (section.describing()) return strike;

    const StoreFailureSpec::Part parts[] = {spec.drive, spec.server, spec.box};
    strike.down_for = down_for ? *down_for : parts[part].repair;
    const std::string& name = name_of(strike.part);
    if (count(strike.part) == 0) {
        section.error("part", none_text(strike.part));
    } else if (strike.index >= count(strike.part)) {
        section.error("index", fmt::format("this store has no {} {}", name, strike.index),
                      fmt::format("the last of its {0} is {0} {1}", name, count(strike.part) - 1));
    }
    if (strike.takes_data && (strike.part != StorePart::server || !protection_.servers_hold_data)) {
        section.error("takes_data",
                      "only a server whose drives no other server reaches takes data");
    }
    return strike;
}

std::optional<StoreFailureSpec> StoreFailureReader::read() {
    Section section = storage_.section("failures");
    StoreFailureSpec spec;
    bool random = true;
    section.read("random", random, "Parts fail at random; false: only as injected");
    read_part(section, spec.drive, StorePart::drive,
              {"nvme", "drive_failure_rate", "drive_replacement"}, random);
    read_part(section, spec.server, StorePart::server,
              {"storage_server", "server_failure_rate", "server_repair"}, random);
    read_part(section, spec.box, StorePart::box, {"drive_box", "box_failure_rate", "box_repair"},
              random);
    std::optional<double> sigma;
    section.read("repair_sigma", sigma, "Standard deviation of the logarithm of repair times",
                 {Bound::non_negative, "from the catalogue"});
    std::optional<double> takes_data;
    section.read("server_takes_data", takes_data,
                 "Share of the failed servers with data that come back without it",
                 {Bound::fraction, "from the catalogue"});
    for (Section& strike : section.sections("inject", "A part that fails at a known time")) {
        spec.strikes.push_back(read_strike(strike, spec));
    }
    section.finish();
    if (!section.present() || section.describing()) return {};

    spec.repair_sigma = sigma ? *sigma : catalogue_.number("distribution", "repair", "sigma");
    constexpr double sigma_max = 5;
    if (spec.repair_sigma > sigma_max) {
        section.error("repair_sigma",
                      fmt::format("expected at most {}, found {}", sigma_max, spec.repair_sigma));
    }
    if (protection_.servers_hold_data) {
        spec.server_takes_data =
            takes_data ? *takes_data
                       : catalogue_.number("infrastructure", "storage_server", "takes_data");
    } else if (takes_data) {
        section.warning("server_takes_data",
                        "has no effect: others reach the drives of a lost server");
    }
    return spec;
}

}  // namespace

std::optional<StoreFailureSpec> read_store_failures(Section& storage, Catalogue& catalogue,
                                                    const Protection& protection) {
    return StoreFailureReader(storage, catalogue, protection).read();
}

}  // namespace railyard
