// usage: railyard_drop_tail_ns3 TRAFFIC QUEUE_BYTES FILE [acks]
//
// The traffic of drop_tail.h as ns-3 carries it: nodes with an IPv4 stack, point-to-point devices with
// drop-tail queues, UDP sockets. Cables and paths are railyard's. With 0 for the queues nothing is lost. With
// `acks` a receiver answers each packet with a small one, which nobody waits for.

#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-route.h>
#include <ns3/ipv4-routing-protocol.h>
#include <ns3/node-container.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/queue.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/udp-socket-factory.h>
#include <ns3/uinteger.h>

#include <ctime>

#include "tests/bench/drop_tail.h"

namespace railyard {

namespace {

constexpr std::uint16_t port = 9;

ns3::Ipv4Address address_of(std::uint32_t nic) {
    return ns3::Ipv4Address((10U << 24) + 1 + nic);
}

// A node's way to each NIC, looked up by number: ns-3's own static routing searches a list.
class FixedRouting final : public ns3::Ipv4RoutingProtocol {
  public:
    explicit FixedRouting(ns3::Ipv4Address own) : own_(own) {}

    void add(std::uint32_t nic, std::uint32_t interface) {
        if (routes_.size() <= nic) routes_.resize(nic + 1);
        auto route = ns3::Create<ns3::Ipv4Route>();
        route->SetDestination(address_of(nic));
        route->SetSource(own_);
        route->SetGateway(ns3::Ipv4Address::GetZero());
        route->SetOutputDevice(ipv4_->GetNetDevice(interface));
        routes_[nic] = route;
    }

    ns3::Ptr<ns3::Ipv4Route> RouteOutput(ns3::Ptr<ns3::Packet>, const ns3::Ipv4Header& header,
                                         ns3::Ptr<ns3::NetDevice>,
                                         ns3::Socket::SocketErrno& error) override {
        error = ns3::Socket::ERROR_NOTERROR;
        return route_to(header);
    }
    bool RouteInput(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header,
                    ns3::Ptr<const ns3::NetDevice> device, UnicastForwardCallback forward,
                    MulticastForwardCallback, LocalDeliverCallback deliver,
                    ErrorCallback) override {
        if (header.GetDestination() == own_) {
            deliver(packet, header,
                    static_cast<std::uint32_t>(ipv4_->GetInterfaceForDevice(device)));
        } else {
            forward(route_to(header), packet, header);
        }
        return true;
    }
    void NotifyInterfaceUp(std::uint32_t) override {}
    void NotifyInterfaceDown(std::uint32_t) override {}
    void NotifyAddAddress(std::uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(std::uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void SetIpv4(ns3::Ptr<ns3::Ipv4> ipv4) override { ipv4_ = ipv4; }
    void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper>, ns3::Time::Unit) const override {}

  private:
    ns3::Ptr<ns3::Ipv4Route> route_to(const ns3::Ipv4Header& header) const {
        return routes_[header.GetDestination().Get() - address_of(0).Get()];
    }

    ns3::Ipv4Address own_;
    ns3::Ptr<ns3::Ipv4> ipv4_;
    std::vector<ns3::Ptr<ns3::Ipv4Route>> routes_;
};

class Network {
  public:
    Network(const Topology& topology, std::int64_t queue_bytes) {
        nodes_.Create(static_cast<std::uint32_t>(topology.vertex_count()));
        ns3::InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.Install(nodes_);
        for (std::uint32_t v = 0; v < nodes_.GetN(); ++v) {
            routing_.push_back(ns3::Create<FixedRouting>(address_of(v)));
            nodes_.Get(v)->GetObject<ns3::Ipv4>()->SetRoutingProtocol(routing_.back());
        }
        ns3::PointToPointHelper cable;
        cable.DisableFlowControl();  // else a queue without room for an MTU takes nothing
        cable.SetDeviceAttribute("DataRate", ns3::StringValue("400Gbps"));
        cable.SetDeviceAttribute("Mtu", ns3::UintegerValue(9000));
        cable.SetChannelAttribute("Delay",
                                  ns3::TimeValue(ns3::PicoSeconds(DropTail::link_latency_ps)));
        const std::int64_t most = queue_bytes > 0 ? queue_bytes : std::int64_t{1} << 31;
        cable.SetQueue("ns3::DropTailQueue", "MaxSize",
                       ns3::StringValue(std::to_string(most) + "B"));
        for (LinkId l = 0; l < topology.links().size(); l += 2) {
            const Link& link = topology.links()[l];
            const ns3::NetDeviceContainer ends =
                cable.Install(nodes_.Get(link.from), nodes_.Get(link.to));
            for (std::uint32_t end = 0; end < 2; ++end) {
                devices_.push_back(ends.Get(end)->GetObject<ns3::PointToPointNetDevice>());
                interface_.push_back(attach(devices_.back()));
            }
        }
    }

    ns3::Ptr<ns3::Socket> socket(std::uint32_t nic) const {
        return ns3::Socket::CreateSocket(nodes_.Get(nic), ns3::UdpSocketFactory::GetTypeId());
    }
    std::uint64_t packets_sent() const {
        std::uint64_t sum = 0;
        for (const auto& d : devices_) sum += d->GetQueue()->GetTotalReceivedPackets();
        return sum;
    }

    void add_path(const Topology& topology, const std::vector<LinkId>& path, std::uint32_t to) {
        for (const LinkId l : path) routing_[topology.links()[l].from]->add(to, interface_[l]);
    }

  private:
    // The interface that a link goes out by.
    static std::uint32_t attach(const ns3::Ptr<ns3::NetDevice>& device) {
        const auto ipv4 = device->GetNode()->GetObject<ns3::Ipv4>();
        const std::uint32_t interface = ipv4->AddInterface(device);
        ipv4->AddAddress(interface, {address_of(device->GetNode()->GetId()), "255.255.255.255"});
        ipv4->SetUp(interface);
        ipv4->SetForwarding(interface, true);
        return interface;
    }

    ns3::NodeContainer nodes_;
    std::vector<ns3::Ptr<FixedRouting>> routing_;                // of each node
    std::vector<ns3::Ptr<ns3::PointToPointNetDevice>> devices_;  // of each link, at its sending end
    std::vector<std::uint32_t> interface_;                       // likewise
};

// Sends a flow at line rate.
struct Sender {
    ns3::Ptr<ns3::Socket> socket;
    std::int64_t bytes_left = 0;

    void send() {
        const std::int64_t bytes = std::min(bytes_left, DropTail::payload_bytes);
        socket->Send(ns3::Create<ns3::Packet>(static_cast<std::uint32_t>(bytes)));
        bytes_left -= bytes;
        if (bytes_left == 0) return;
        constexpr std::int64_t ps_per_byte = 20;
        ns3::Simulator::Schedule(ns3::PicoSeconds((bytes + DropTail::header_bytes) * ps_per_byte),
                                 &Sender::send, this);
    }
};

// Takes what reaches a NIC. Each sender sends one flow.
struct Receiver {
    std::vector<Arrivals>& arrivals;
    const std::vector<std::size_t>& flow_of;  // of each sending NIC
    bool acks;

    void receive(ns3::Ptr<ns3::Socket> socket) {
        ns3::Address from;
        while (socket->RecvFrom(from)) {
            const std::uint32_t nic =
                ns3::InetSocketAddress::ConvertFrom(from).GetIpv4().Get() - address_of(0).Get();
            Arrivals& a = arrivals[flow_of[nic]];
            ++a.packets;
            a.last_ps = ns3::Simulator::Now().GetPicoSeconds();
            constexpr std::uint32_t ack_payload_bytes = 64 - DropTail::header_bytes;
            if (acks) socket->SendTo(ns3::Create<ns3::Packet>(ack_payload_bytes), 0, from);
        }
    }
    static void take_ack(ns3::Ptr<ns3::Socket> socket) { socket->Recv(); }
};

void run(const std::string& name, std::int64_t queue_bytes, const std::string& file, bool acks) {
    const double before_mb = peak_megabytes();
    const DropTail asked(name);
    ns3::Time::SetResolution(ns3::Time::PS);
    Network network(asked.topology, queue_bytes);
    std::vector<Arrivals> arrivals(asked.path.size());
    std::vector<std::size_t> flow_of(static_cast<std::size_t>(asked.traffic.hosts()));
    Receiver receiver{arrivals, flow_of, acks};
    for (std::uint32_t nic = 0; nic < flow_of.size(); ++nic) {
        const auto socket = network.socket(nic);
        socket->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
        socket->SetRecvCallback(ns3::MakeCallback(&Receiver::receive, &receiver));
    }
    std::vector<Sender> senders(asked.path.size());
    for (std::size_t f = 0; f < senders.size(); ++f) {
        const Flow& flow = asked.traffic.flows[f];
        const auto from = static_cast<std::uint32_t>(flow.from);
        const auto to = static_cast<std::uint32_t>(flow.to);
        network.add_path(asked.topology, asked.path[f], to);
        network.add_path(asked.topology, asked.path_back[f], from);
        flow_of[from] = f;
        senders[f] = {network.socket(from), asked.bytes(f)};
        senders[f].socket->Connect(ns3::InetSocketAddress(address_of(to), port));
        senders[f].socket->SetRecvCallback(ns3::MakeCallback(&Receiver::take_ack));
        ns3::Simulator::Schedule(ns3::PicoSeconds(DropTail::start_ps(f)), &Sender::send,
                                 &senders[f]);
    }
    ns3::Simulator::Run();
    report(file, arrivals, static_cast<double>(std::clock()) / CLOCKS_PER_SEC, before_mb,
           network.packets_sent());
}

}  // namespace

}  // namespace railyard

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    railyard::run(argv[1], std::atoll(argv[2]), argv[3], argc > 4);
    return 0;
}
