#include "models/fabric/congestion.h"

namespace railyard {

namespace {

class None final : public Congestion {
  public:
    void identify(Fingerprint& print) const override { print.add("none"); }
    void start(std::uint32_t, const FlowStart& given, Pace& pace) override {
        pace.bits_per_s = given.line_bits_per_s;
    }
    void acknowledged(std::uint32_t, const Acknowledgement&, Pace&) override {}
    bool follows_marks_alone() const override { return true; }
    void timer(std::uint32_t, Picoseconds, Pace&) override {}
};

}  // namespace

std::unique_ptr<Congestion> no_congestion_control() {
    return std::make_unique<None>();
}

const std::vector<CongestionKind>& congestion_kinds() {
    static const std::vector<CongestionKind> kinds = {
        {"none", "line rate; PFC alone holds the queues",
         [](Catalogue&, const std::string&, Bandwidth, Picoseconds) {
             return no_congestion_control();
         }},
        {"dcqcn", "rate cut on marked packets (RoCE)",
         [](Catalogue& catalogue, const std::string& set, Bandwidth line, Picoseconds) {
             return dcqcn(read_dcqcn(catalogue, set, line));
         }},
        {"hpcc", "rate and window from telemetry in the packets",
         [](Catalogue& catalogue, const std::string&, Bandwidth line, Picoseconds base_rtt) {
             return hpcc(read_hpcc(catalogue, line, base_rtt));
         }},
        {"tcp", "kernel sockets: slow start, half a window per loss, timeouts",
         [](Catalogue& catalogue, const std::string&, Bandwidth, Picoseconds) {
             return tcp(read_tcp(catalogue));
         }},
        {"receiver_window", "receivers clear senders in turn",
         [](Catalogue& catalogue, const std::string&, Bandwidth, Picoseconds) {
             return receiver_window(read_receiver_window(catalogue));
         }},
    };
    return kinds;
}

}  // namespace railyard
