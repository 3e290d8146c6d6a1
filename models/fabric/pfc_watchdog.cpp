#include "models/fabric/pfc_watchdog.h"

#include "sim/check.h"

namespace railyard {

PfcWatchdog::Change PfcWatchdog::poll(const WatchdogSpec& spec, const Counters& now) {
    const Picoseconds paused = now.paused - last_.paused;
    const bool stuck = now.waiting && now.packets_sent == last_.packets_sent &&
                       paused > spec.poll - spec.poll / 100;
    last_ = now;
    if (!stormed_) {
        stuck_for_ = stuck ? stuck_for_ + spec.poll : Picoseconds{};
        if (stuck_for_ < spec.detection) return Change::none;
        stormed_ = true;
        quiet_for_ = {};
        return Change::detected;
    }
    quiet_for_ = paused.count() == 0 ? quiet_for_ + spec.poll : Picoseconds{};
    if (quiet_for_ < spec.restoration) return Change::none;
    stormed_ = false;
    stuck_for_ = {};
    return Change::restored;
}

WatchdogSpec read_watchdog(Catalogue& catalogue, const std::string& name, std::int64_t ports) {
    const std::string action = catalogue.text("pfc_watchdog", name, "action");
    WatchdogSpec spec;
    if (action == "none") return spec;
    if (action == "drop") {
        spec.action = WatchdogAction::drop;
    } else if (action == "forward") {
        spec.action = WatchdogAction::forward;
    } else if (action == "alert") {
        spec.action = WatchdogAction::alert;
    } else {
        RY_UNREACHABLE("an action that the catalogue's own test would have refused");
    }
    std::int64_t scale = 1;
    if (catalogue.has("pfc_watchdog", name, "ports_scale")) {
        const std::int64_t step = catalogue.integer("pfc_watchdog", name, "ports_scale");
        scale = (ports + step - 1) / step;
    }
    const auto time = [&](const char* key) -> Picoseconds {
        return catalogue.time("pfc_watchdog", name, key) * scale;
    };
    spec.poll = time("poll_interval");
    spec.detection = time("detection_time");
    spec.restoration = time("restoration_time");
    return spec;
}

}  // namespace railyard
