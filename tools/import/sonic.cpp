// A switch's config_db.json under SONiC, nested or as redis has it: buffers, PFC, ECN and the watchdog of the
// priority that RDMA uses.

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "tools/import/importers.h"
#include "tools/import/json_tree.h"
#include "tools/import/text_file.h"

namespace railyard {

namespace {

// A field's text and its place.
struct Field {
    std::string text;
    int line = 0;
};
using Record = std::map<std::string, Field>;

// References are "[BUFFER_PROFILE|name]" before 202106, and "name" since.
std::string bare(std::string text) {
    if (text.starts_with('[') && text.ends_with(']')) {
        text = text.substr(1, text.size() - 2);
        text = text.substr(text.find('|') + 1);
    }
    return text;
}

bool covers(const std::string& range, int priority) {
    const std::size_t dash = range.find('-');
    const auto first = whole_value(std::string_view(range).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : whole_value(std::string_view(range).substr(dash + 1));
    return first && last && *first <= priority && priority <= *last;
}

class Sonic : private Importer {
  public:
    using Importer::Importer;

    void run() {
        take_one_file("a second switch: all are set up as one here", "give one");
        const std::vector<FileLine> lines = read_lines(file_, diagnostics_);
        diagnostics_.raise_if_any();
        read();
        diagnostics_.raise_if_any();
        const Field* sku = find("DEVICE_METADATA", "localhost", "hwsku");
        part_.section("fabric.compute");
        part_.quoted("kind", "roce",
                     sku != nullptr ? origin("DEVICE_METADATA hwsku", *sku) : file_);
        add_pfc();
        add_buffers();
        add_ecn();
        add_watchdog();
        say_cables();
        part_.left_out("DCQCN: it is the NICs' (mlxconfig, /sys/class/net/*/ecn)");
        part_.left_out("what the switches are, cabling, routing, latency");
    }

  private:
    void take(const std::string& table, const std::string& key, const Value& record) {
        Record& out = db_[table][key];
        for (const auto& [name, value] : record.members) out[name] = {value.text, value.at.line};
    }

    // {"PORT": {"Ethernet0": {...}}} or {"PORT|Ethernet0": {...}}.
    void read() {
        const std::string text = read_input(file_);
        const std::size_t first = text.find_first_not_of(" \t\r\n");
        if (first != std::string::npos && (text[first] == '<' || text[first] == '#')) {
            const bool graph = text[first] == '<';
            return error(graph
                             ? "a minigraph: one switch's cables and sessions, not its buffers"
                             : "a table of headroom by speed and cable, not what a switch has set",
                         "give the switch's /etc/sonic/config_db.json");
        }
        const Document document = parse_json(text, file_, diagnostics_);
        if (!diagnostics_.ok()) return;
        for (const auto& [name, value] : document.root.members) {
            if (value.kind != Value::Kind::table) continue;
            if (name.starts_with("SAMPLE_CONFIG_DB")) {
                return error(value.at, name, "is one of several configurations in a file",
                             "give the configuration of one switch: /etc/sonic/config_db.json");
            }
            const std::size_t bar = name.find('|');
            if (bar != std::string::npos) {
                take(name.substr(0, bar), name.substr(bar + 1), value);
                continue;
            }
            for (const auto& [key, record] : value.members) {
                if (record.kind == Value::Kind::table) take(name, key, record);
            }
        }
        if (!db_.contains("PORT")) error({1, 1}, "PORT", "is missing: is this a config_db.json?");
    }

    const Field* find(const std::string& table, const std::string& key, const char* field) const {
        const auto in = db_.find(table);
        if (in == db_.end()) return nullptr;
        const auto record = in->second.find(key);
        if (record == in->second.end()) return nullptr;
        const auto found = record->second.find(field);
        return found != record->second.end() ? &found->second : nullptr;
    }

    std::string origin(const std::string& path, const Field& field) const {
        return fmt::format("{}:{}: {} = {}", file_, field.line, path, field.text);
    }

    std::optional<double> number(const std::string& path, const Field* field, double least,
                                 double most) {
        if (field == nullptr) return std::nullopt;
        const auto value = real_value(field->text);
        if (value && *value >= least && *value <= most) return value;
        error({field->line, 1}, path,
              fmt::format("expected {:g} to {:g}, found '{}'", least, most, field->text));
        return std::nullopt;
    }

    // Writes a size that a record has; false: it has none, or a wrong one.
    bool add_bytes(const char* ours, const std::string& table, const std::string& key,
                   const char* theirs, double least = 0) {
        const std::string path = fmt::format("{}|{}", table, key);
        const Field* field = find(table, key, theirs);
        const auto bytes = number(path, field, least, bytes_max);
        if (!bytes) return false;
        part_.value(ours, fmt::format("\"{:.0f} B\"", *bytes),
                    origin(fmt::format("{} {}", path, theirs), *field));
        return true;
    }

    // The one that most ports have; says how many have others.
    std::string common(const std::string& table, const char* field, int priority,
                       const std::string& what) {
        std::map<std::string, int> seen;
        for (const auto& [key, record] : db_[table]) {
            const std::size_t bar = key.rfind('|');
            if (bar == std::string::npos || !covers(key.substr(bar + 1), priority)) continue;
            const auto found = record.find(field);
            if (found != record.end()) seen[bare(found->second.text)] += 1;
        }
        std::string best;
        int most = 0;
        for (const auto& [name, count] : seen) {
            if (count > most) {
                most = count;
                best = name;
            }
        }
        if (seen.size() > 1) {
            std::vector<std::string> others;
            for (const auto& [name, count] : seen)
                others.push_back(fmt::format("{} ({})", name, count));
            part_.note("Ports differ in {}: {}; that of most is taken.", what, some_of(others));
        }
        return best;
    }

    void add_pfc() {
        const Field* enabled = nullptr;
        std::string path;
        for (const auto& [port, record] : db_["PORT_QOS_MAP"]) {
            const auto found = record.find("pfc_enable");
            if (found == record.end() || found->second.text.empty()) continue;
            enabled = &found->second;
            path = "PORT_QOS_MAP|" + port;
            break;
        }
        part_.section("fabric.compute.pfc");
        if (enabled == nullptr) {
            warning(Position{}, "PORT_QOS_MAP",
                    "no port has pfc_enable: PFC is off, whatever BUFFER_PG says");
            part_.value("enabled", "false",
                        fmt::format("{}: no PORT_QOS_MAP has pfc_enable", file_));
            return;
        }
        const std::vector<std::string> priorities = split_text(enabled->text, ',');
        const auto first = whole_value(priorities.front());
        if (!first || *first < 0 || *first > 7) {
            return error({enabled->line, 1}, path,
                         fmt::format("expected priorities 0 to 7, found '{}'", enabled->text));
        }
        priority_ = static_cast<int>(*first);
        part_.value("enabled", "true", origin(path + " pfc_enable", *enabled));
        part_.whole("priority", priority_, origin(path + " pfc_enable", *enabled));
        if (priorities.size() > 1) {
            part_.note("Lossless are priorities {}; a job here uses one, {}.", enabled->text,
                       priority_);
        }
    }

    void add_buffers() {
        const std::string profile =
            common("BUFFER_PG", "profile", priority_, "the profile of their lossless class");
        const bool dynamic = profile == "NULL" || profile.empty();
        if (!dynamic && !db_["BUFFER_PROFILE"].contains(profile)) {
            return error(Position{}, "BUFFER_PG",
                         fmt::format("no BUFFER_PROFILE is called '{}'", profile));
        }
        if (dynamic) {
            warning(Position{}, "BUFFER_PG",
                    fmt::format("class {} has no profile: the switch computes its headroom "
                                "(buffer_model dynamic)",
                                priority_),
                    "dump APPL_DB, or give pg_profile_lookup.ini's numbers yourself: "
                    "fabric.compute.pfc.headroom");
            part_.left_out("headroom, resume offset and alpha: the switch computes them");
        } else {
            add_headroom(profile);
        }
        part_.section("fabric.compute.buffer");
        if (!add_bytes("size", "BUFFER_POOL", "ingress_lossless_pool", "size", 1)) {
            part_.left_out(
                "BUFFER_POOL|ingress_lossless_pool size: the switch's own, from the catalogue");
        }
        if (dynamic) return;
        const std::string path = "BUFFER_PROFILE|" + profile;
        const Field* exponent = find("BUFFER_PROFILE", profile, "dynamic_th");
        if (const auto th = number(path, exponent, -8, 8)) {
            part_.value("alpha", fmt::format("{}", std::exp2(std::round(*th))),
                        origin(path + " dynamic_th", *exponent) + ": 2 to that power");
        } else {
            part_.left_out("{} dynamic_th", path);
        }
        const Field* size = find("BUFFER_PROFILE", profile, "size");
        const Field* xoff = find("BUFFER_PROFILE", profile, "xoff");
        const auto reserved = number(path, size, 0, bytes_max);
        const auto headroom = number(path, xoff, 0, bytes_max);
        if (!reserved) return;
        if (!is_mellanox()) {
            part_.value("reserve", fmt::format("\"{:.0f} B\"", *reserved),
                        origin(path + " size", *size) + ", Broadcom's: without headroom");
        } else if (headroom && *reserved >= *headroom) {
            part_.value("reserve", fmt::format("\"{:.0f} B\"", *reserved - *headroom),
                        origin(path + " size", *size) + ", NVIDIA's: less the headroom in it");
        }
    }

    // xoff is what arrives after the pause: headroom, not a threshold.
    void add_headroom(const std::string& profile) {
        if (!add_bytes("headroom", "BUFFER_PROFILE", profile, "xoff")) {
            part_.left_out("BUFFER_PROFILE|{} xoff: headroom by SONiC's formula", profile);
        }
        if (!add_bytes("resume_offset", "BUFFER_PROFILE", profile, "xon_offset")) {
            part_.left_out("BUFFER_PROFILE|{} xon_offset", profile);
        }
    }

    void add_ecn() {
        const std::string profile =
            common("QUEUE", "wred_profile", priority_, "the WRED profile of their queue");
        const Field* ecn = find("WRED_PROFILE", profile, "ecn");
        if (profile.empty() || ecn == nullptr || ecn->text == "ecn_none") {
            return part_.left_out("ECN: no WRED_PROFILE marks queue {}", priority_);
        }
        part_.section("fabric.compute.ecn");
        const std::string path = "WRED_PROFILE|" + profile;
        add_bytes("kmin", "WRED_PROFILE", profile, "green_min_threshold");
        add_bytes("kmax", "WRED_PROFILE", profile, "green_max_threshold");
        const Field* drop = find("WRED_PROFILE", profile, "green_drop_probability");
        const auto percent = number(path, drop, 0, 100);
        if (percent) {
            part_.value("pmax", fmt::format("{:g}", *percent / 100),
                        origin(path + " green_drop_probability", *drop) + " %");
        } else {
            part_.value("pmax", "1", "no green_drop_probability: SONiC's default, 100 %");
        }
    }

    void add_watchdog() {
        const Record* port = nullptr;
        std::string path;
        for (const auto& [key, record] : db_["PFC_WD"]) {
            if (key == "GLOBAL" || !record.contains("detection_time")) continue;
            port = &record;
            path = "PFC_WD|" + key;
            break;
        }
        if (port == nullptr)
            return part_.left_out(
                "PFC_WD: no port has a watchdog; fabric.compute.watchdog.action = \"none\" says "
                "so");
        part_.section("fabric.compute.watchdog");
        const Field* poll = find("PFC_WD", "GLOBAL", "POLL_INTERVAL");
        if (const auto ms = number("PFC_WD|GLOBAL", poll, 1, 1e6)) {
            part_.value("poll", fmt::format("\"{:g} ms\"", *ms),
                        origin("PFC_WD|GLOBAL POLL_INTERVAL", *poll));
        }
        for (const auto& [ours, theirs] :
             {std::pair{"detection", "detection_time"}, {"restoration", "restoration_time"}}) {
            const auto found = port->find(theirs);
            if (found == port->end()) continue;
            if (const auto ms = number(path, &found->second, 1, 1e6)) {
                part_.value(ours, fmt::format("\"{:g} ms\"", *ms),
                            origin(path + " " + theirs, found->second));
            }
        }
        const auto action = port->find("action");
        if (action == port->end()) return;
        const std::string is = action->second.text;
        if (is != "drop" && is != "forward" && is != "alert") {
            return error({action->second.line, 1}, path,
                         fmt::format("expected drop, forward or alert, found '{}'", is));
        }
        part_.quoted("action", is, origin(path + " action", action->second));
    }

    void say_cables() {
        std::map<std::string, int> lengths;
        for (const auto& [key, record] : db_["CABLE_LENGTH"]) {
            for (const auto& [port, field] : record) ++lengths[field.text];
        }
        std::vector<std::string> all;
        for (const auto& [length, count] : lengths)
            all.push_back(fmt::format("{} ({})", length, count));
        if (!all.empty()) {
            part_.note(
                "CABLE_LENGTH has {}: classes that headroom is looked up by, not lengths of "
                "cables.",
                some_of(all));
        }
        std::map<std::string, int> speeds;
        for (const auto& [port, record] : db_["PORT"]) {
            const auto speed = record.find("speed");
            if (speed == record.end()) continue;
            const auto mbit = real_value(speed->second.text);
            if (mbit) ++speeds[fmt::format("{:g} Gbit/s", *mbit / 1000)];
        }
        all.clear();
        for (const auto& [speed, count] : speeds)
            all.push_back(fmt::format("{} of {}", count, speed));
        part_.note("Ports: {}.", some_of(all));
    }

    bool is_mellanox() const {
        for (const char* key : {"platform", "hwsku"}) {
            const Field* field = find("DEVICE_METADATA", "localhost", key);
            if (field == nullptr) continue;
            const std::string is = lower_case(field->text);
            for (const char* name : {"mlnx", "msn", "nvidia", "mellanox"}) {
                if (is.find(name) != std::string::npos) return true;
            }
        }
        return false;
    }

    static constexpr double bytes_max = 1e12;
    std::map<std::string, std::map<std::string, Record>> db_;
    int priority_ = 3;
};

}  // namespace

Import import_sonic = run_importer<Sonic>;

}  // namespace railyard
