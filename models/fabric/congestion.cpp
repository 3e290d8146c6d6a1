#include "models/fabric/congestion.h"

#include "sim/check.h"
#include "sim/text.h"

namespace railyard {

namespace {

using Kind = NetworkKind;
using Given = const CongestionGiven&;

class None final : public Congestion {
  public:
    void identify(Fingerprint& print) const override { print.add("none"); }
    void start(std::uint32_t, const FlowStart& given, Pace& pace) override {
        pace.bits_per_s = given.line_bits_per_s;
    }
    void acknowledged(std::uint32_t, const Acknowledgement&, Pace&) override {}
    bool follows_marks_alone() const override { return true; }
};

}  // namespace

std::unique_ptr<Congestion> no_congestion_control() {
    return std::make_unique<None>();
}

const std::vector<CongestionKind>& congestion_kinds() {
    static const std::vector<CongestionKind> kinds = {
        {"none",
         "line rate; PFC alone holds the queues",
         {{Kind::infiniband, Kind::roce, Kind::ultra_ethernet, Kind::efa}, false},
         [](Catalogue&, Given) { return no_congestion_control(); }},
        {"dcqcn",
         "rate cut on marked packets (RoCE)",
         {{Kind::roce}, true},
         [](Catalogue& c, Given g) { return dcqcn(read_dcqcn(c, g.set, g.line)); }},
        {"hpcc",
         "rate and window from telemetry in the packets",
         {{Kind::roce}, false},
         [](Catalogue& c, Given g) { return hpcc(read_hpcc(c, g.line, g.base_rtt)); }},
        {"tcp",
         "kernel sockets: slow start, half a window per loss, timeouts",
         {{Kind::tcp}, false},
         [](Catalogue& c, Given) { return tcp(read_tcp(c)); }},
        {"receiver_window",
         "receivers clear senders in turn",
         {{Kind::infiniband, Kind::roce}, false},
         [](Catalogue& c, Given) { return receiver_window(read_receiver_window(c)); }},
        {"nscc",
         "a window from marks and delay (Ultra Ethernet)",
         {{Kind::ultra_ethernet}, true},
         [](Catalogue& c, Given g) { return nscc(read_nscc(c, g)); }},
        {"rccc",
         "credits that receivers pace (Ultra Ethernet)",
         {{Kind::ultra_ethernet}, false},
         [](Catalogue& c, Given g) { return receiver_credits(read_rccc(c, g)); }},
        {"nscc_rccc",
         "both: credits, and a window that must permit it too (Ultra Ethernet)",
         {{Kind::ultra_ethernet}, true},
         [](Catalogue& c, Given g) {
             return receiver_credits(read_rccc(c, g), nscc(read_nscc(c, g)));
         }},
        {"infiniband_cc",
         "gaps between packets from a table: FECN, BECN, CCT (InfiniBand)",
         {{Kind::infiniband}, true},
         [](Catalogue& c, Given g) {
             return infiniband_congestion(read_infiniband_congestion(c, g));
         }},
        {"srd",
         "a window from delay over many paths (EFA; an estimate)",
         {{Kind::efa}, false},
         [](Catalogue& c, Given g) { return delay_control(read_delay_control(c, "srd", g)); }},
        {"spectrum_x",
         "a window from the NIC's round trips (Spectrum-X; an estimate)",
         {{Kind::roce}, false},
         [](Catalogue& c, Given g) {
             return delay_control(read_delay_control(c, "spectrum_x", g));
         }},
    };
    return kinds;
}

const CongestionKind& congestion_kind(const std::string& name) {
    const CongestionKind* found = find_named(congestion_kinds(), name);
    RY_CHECK(found != nullptr);
    return *found;
}

}  // namespace railyard
