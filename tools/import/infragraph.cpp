// A network as InfraGraph has it: kinds of devices, how many there are of each, and edges between slices of
// them. A device with an accelerator (xpu) is a host, one with a switch is one.

#include <fmt/format.h>

#include "tools/import/cabling.h"
#include "tools/import/json_tree.h"
#include "tools/program/pattern.h"

namespace railyard {

namespace {

// A port of a device: "host.0", "nic.3".
using PortPlace = std::pair<std::string, std::string>;

class InfraGraph : private Importer {
  public:
    using Importer::Importer;

    void run() {
        const Document document = cabling_.topology();
        // Its own tools write the infrastructure with and without this word over it.
        const Value* below = at_path(&document.root, {"infrastructure"});
        const Value& infra = below != nullptr ? *below : document.root;
        if (const Value* old = at_path(&infra, {"connections"})) {
            return error(
                *old, "connections",
                "InfraGraph in the superseded 'connections' syntax, which its own schema refuses",
                "write edges, with ep1, ep2, scheme and link");
        }
        if (at_path(&infra, {"instances"}) == nullptr) {
            return error(document.root, "infrastructure", "has no instances: it is no InfraGraph");
        }
        if (cabling_.lacks_output()) return;
        read_devices(infra);
        diagnostics_.raise_if_any();
        read_instances(infra);
        read_rates(infra);
        diagnostics_.raise_if_any();
        read_edges(infra);
        diagnostics_.raise_if_any();
        cabling_.arrange(0);
        part_.note("A device with an xpu is a host; edges inside of devices are the nodes' own.");
        cabling_.add_part("infragraph", "the link of its NICs, taken as full duplex");
        part_.left_out("lengths, latencies, buffers, PFC and ECN, routing");
        part_.left_out("storage and management networks");
    }

  private:
    struct Kind {
        bool host = false;
        std::map<std::string, std::int64_t> components;  // how many there are of each
    };
    struct Instance {
        std::string device;
        std::int64_t count = 0;
    };

    const std::vector<Value>& list(const Value& table, const char* key, bool needed = true) {
        static const std::vector<Value> none;
        const Value* found = at_path(&table, {key});
        if (found != nullptr && found->kind == Value::Kind::array) return found->items;
        if (found != nullptr || needed) {
            error(found != nullptr ? *found : table, key, "expected a list of them");
        }
        return none;
    }

    std::int64_t count_of(const Value& entry, const std::string& path) {
        constexpr std::int64_t count_max = 1'000'000;
        const Value* count = at_path(&entry, {"count"});
        if (count != nullptr && count->kind == Value::Kind::integer && count->integer > 0 &&
            count->integer <= count_max) {
            return count->integer;
        }
        error(count != nullptr ? *count : entry, path + ".count",
              count != nullptr
                  ? fmt::format("expected 1 to {}, found {}", count_max, count->describe())
                  : "is not there: how many are there?");
        return 0;
    }

    void read_devices(const Value& infra) {
        for (const Value& device : list(infra, "devices")) {
            const std::string name = text_in(device, "name");
            Kind kind;
            bool switches = false;
            for (const Value& component : list(device, "components")) {
                const std::string choice = text_in(component, "choice");
                kind.host |= choice == "xpu";
                switches |= choice == "switch";
                kind.components[text_in(component, "name")] = count_of(component, name);
            }
            if (kind.host && switches && kind.components.size() < 2) kind.host = false;
            if (!kind.host && !switches) {
                error(device, name, "has neither an xpu nor a switch: host or switch?");
            }
            if (!kinds_.emplace(name, std::move(kind)).second) {
                error(device, name, "another device has this name");
            }
        }
    }

    void read_instances(const Value& infra) {
        constexpr std::int64_t devices_max = 100'000;
        for (const Value& instance : list(infra, "instances")) {
            const std::string name = text_in(instance, "name");
            const std::string device = text_in(instance, "device");
            const auto kind = kinds_.find(device);
            if (kind == kinds_.end()) {
                error(instance, name, fmt::format("no device is called '{}'", visible(device)));
                continue;
            }
            const std::int64_t count = count_of(instance, name);
            if (!instances_.emplace(name, Instance{device, count}).second) {
                error(instance, name, "another instance has this name");
            }
            if (std::ssize(cabling_.devices) + count > devices_max) {
                return error(instance, name, fmt::format("more than {} devices", devices_max));
            }
            for (std::int64_t i = 0; i < count; ++i) {
                cabling_.devices[fmt::format("{}.{}", name, i)] = {
                    kind->second.host, -1, file_, instance.at.line, {}};
            }
        }
    }

    void read_rates(const Value& infra) {
        for (const Value& link : list(infra, "links", false)) {
            const std::string name = text_in(link, "name");
            const Value* bandwidth = at_path(&link, {"physical", "bandwidth"});
            const std::string unit = bandwidth != nullptr ? text_in(*bandwidth, "choice") : "";
            const double bits = unit == "gigabits_per_second"    ? 1
                                : unit == "gigabytes_per_second" ? 8
                                                                 : 0;
            const Value* rate = bits > 0 ? at_path(bandwidth, {unit.c_str()}) : nullptr;
            const bool number = rate != nullptr && (rate->kind == Value::Kind::integer ||
                                                    rate->kind == Value::Kind::real);
            const double gigabits = number ? rate->real * bits : 0;
            if (unit == "gigatransfers_per_second") {
                error(*bandwidth, name, "transfers are no bytes: how fast is it?",
                      "gigabits_per_second or gigabytes_per_second");
            } else if (!(gigabits >= 0.001 && gigabits <= 1e6)) {
                error(bandwidth != nullptr ? *bandwidth : link, name,
                      "no physical.bandwidth in gigabits_per_second or gigabytes_per_second");
            }
            rates_[name] = fmt::format("{:.10g} Gbit/s", gigabits);
        }
    }

    void read_edges(const Value& infra) {
        for (const Value& edge : list(infra, "edges")) {
            const std::string scheme = text_in(edge, "scheme");
            if (scheme != "one2one") {
                error(edge, "edges.scheme",
                      fmt::format("'{}' does not say which port a cable ends in", visible(scheme)),
                      "one2one");
                continue;
            }
            const auto rate = rates_.find(text_in(edge, "link"));
            if (rate == rates_.end()) {
                error(edge, "edges.link", "no link of the infrastructure has this name");
                continue;
            }
            const std::vector<PortPlace> from = ports_of(edge, "ep1");
            const std::vector<PortPlace> to = ports_of(edge, "ep2");
            if (from.size() != to.size()) {
                if (!from.empty() && !to.empty()) {
                    error(edge, "edges",
                          fmt::format("{} ports on one end and {} on the other", from.size(),
                                      to.size()));
                }
                continue;
            }
            for (std::size_t i = 0; i < from.size(); ++i) join(edge, from[i], to[i], rate->second);
        }
    }

    void join(const Value& edge, const PortPlace& a, const PortPlace& b, const std::string& rate) {
        if (a.first == b.first) return error(edge, a.first, "a cable from a device to itself");
        for (const auto& [own, other] : {std::pair(a, b), std::pair(b, a)}) {
            CabledDevice& device = cabling_.devices.at(own.first);
            if (!device.ports.emplace(own.second, CabledPort{other.first, rate}).second) {
                error(edge, own.first, fmt::format("{} has two cables", own.second));
            }
        }
    }

    std::vector<PortPlace> ports_of(const Value& edge, const char* end) {
        const auto part = [&](const char* key) {
            const Value* found = at_path(&edge, {end, key});
            return match_pattern(found != nullptr ? found->text : "",
                                 R"(([^\[\]]+)(?:\[([^\[\]]*)\])?)");
        };
        const Found instance = part("instance");
        const Found component = part("component");
        const auto known =
            instance.empty() ? instances_.end() : instances_.find(std::string(instance[1]));
        if (known == instances_.end() || component.empty()) {
            error(edge, fmt::format("edges.{}", end),
                  "expected an instance that there is, and a component",
                  "instance: \"host[0:2]\", component: \"nic[0]\"");
            return {};
        }
        const Kind& kind = kinds_.at(known->second.device);
        const std::string name(component[1]);
        const auto parts = kind.components.find(name);
        if (parts == kind.components.end()) {
            error(edge, fmt::format("edges.{}", end),
                  fmt::format("{} has no component '{}'", known->second.device, visible(name)));
            return {};
        }
        const auto numbers = [&](const Found& found, std::int64_t count) {
            const std::string inside(found[2]);
            return taken(edge, inside.empty() ? ":" : inside, count);
        };
        constexpr std::size_t ports_max = 1'000'000;
        std::vector<PortPlace> out;
        const std::vector<std::int64_t> places = numbers(instance, known->second.count);
        const std::vector<std::int64_t> ports = numbers(component, parts->second);
        if (places.size() * ports.size() > ports_max) {
            error(edge, fmt::format("edges.{}", end), fmt::format("more than {} ports", ports_max));
            return {};
        }
        for (const std::int64_t i : places) {
            for (const std::int64_t k : ports) {
                out.emplace_back(fmt::format("{}.{}", known->first, i),
                                 fmt::format("{}.{}", name, k));
            }
        }
        return out;
    }

    // The numbers that a slice takes of so many. Python's slices: all, [3], [0:2] without its end, [:].
    std::vector<std::int64_t> taken(const Value& at, const std::string& inside,
                                    std::int64_t count) {
        const Found range = match_pattern(inside, R"((\d{0,7})(:?)(\d{0,7}))");
        const bool known = !range.empty() && (range[2] == ":" || !std::string(range[1]).empty());
        std::int64_t first = 0;
        std::int64_t end = count;
        if (known) {
            const std::string from(range[1]);
            const std::string to(range[3]);
            if (!from.empty()) first = std::stoll(from);
            if (range[2] != ":") end = first + 1;
            if (!to.empty()) end = std::stoll(to);
        }
        if (!known || first >= end || end > count) {
            error(at, "edges", fmt::format("[{}] is no slice of {}", visible(inside), count),
                  "as Python's: [0], [0:2] for 0 and 1, [:] for all");
            return {};
        }
        std::vector<std::int64_t> out;
        for (std::int64_t i = first; i < end; ++i) out.push_back(i);
        return out;
    }

    Cabling cabling_{options_, part_, diagnostics_};
    std::map<std::string, Kind> kinds_;
    std::map<std::string, Instance> instances_;
    std::map<std::string, std::string> rates_;  // "400 Gbit/s" of each link
};

}  // namespace

Import import_infragraph = run_importer<InfraGraph>;

}  // namespace railyard
