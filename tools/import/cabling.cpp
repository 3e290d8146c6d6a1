#include "tools/import/cabling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "tools/import/text_file.h"
#include "tools/program/pattern.h"

namespace railyard {

Document Cabling::topology() {
    take_one_file("a second file: give one topology");
    read_lines(file_, diagnostics_);  // refuses templates
    diagnostics_.raise_if_any();
    return file_as_yaml();
}

SaidNics Cabling::read_rate(const std::string& form) {
    const Found found = match_pattern(options_.network, R"((\d{1,3})x(\d{1,4})G)");
    if (found.empty()) {
        error(fmt::format("{} does not say how fast a cable is", form),
              "--network 1x400G: each host's NICs; all cables are taken as fast");
        return {};
    }
    return {std::stoul(found[1]), fmt::format("{} Gbit/s", std::stoi(found[2]))};
}

bool Cabling::lacks_output() {
    if (!options_.output.empty()) return false;
    error("becomes two files, a part of a scenario and its network",
          "give -o mine.toml: the network goes to mine.network");
    return true;
}

void Cabling::find_tiers() {
    std::vector<std::string> reached;
    for (auto& [name, device] : devices) {
        if (!device.host) continue;
        device.tier = 0;
        reached.push_back(name);
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
        const CabledDevice& from = devices.at(reached[i]);
        for (const auto& [port, end] : from.ports) {
            CabledDevice& to = devices.at(end.peer);
            if (to.tier >= 0) continue;
            to.tier = from.tier + 1;
            reached.push_back(end.peer);
        }
    }
    constexpr int tiers_max = 3;
    for (const auto& [name, device] : devices) {
        if (device.tier < 0 || device.tier > tiers_max) {
            diagnostics_.error(device.file, {device.line, 1}, name,
                               "reaches no host within three tiers");
        }
        for (const auto& [port, end] : device.ports) {
            if (name > end.peer || std::abs(devices.at(end.peer).tier - device.tier) == 1) continue;
            diagnostics_.error(device.file, {device.line, 1}, name,
                               fmt::format("{} leads to {}, as many cables from the hosts as {} is",
                                           port, end.peer, name),
                               "a network here has cables between neighbouring tiers only");
        }
    }
}

void Cabling::find_hosts(std::size_t said) {
    for (const auto& [name, device] : devices) {
        if (device.host) hosts_.push_back(name);
    }
    if (hosts_.empty()) return error("no node is a host");
    const CabledDevice& first = devices.at(hosts_.front());
    nics_ = first.ports.size();
    if (nics_ > 0) nic_rate_ = first.ports.begin()->second.rate;
    for (const std::string& host : hosts_) {
        const CabledDevice& device = devices.at(host);
        for (const auto& [port, end] : device.ports) {
            if (end.rate == nic_rate_) continue;
            diagnostics_.error(device.file, {device.line, 1}, host,
                               fmt::format("{} carries {}, others {}", port, end.rate, nic_rate_),
                               "all NICs of a network here are as fast");
        }
        const bool right = device.ports.size() == nics_ && nics_ > 0;
        if (right && (said == 0 || nics_ == said)) continue;
        diagnostics_.error(device.file, {device.line, 1}, host,
                           said > 0 ? fmt::format("cables: {}; of {} {}, and --network says {}",
                                                  device.ports.size(), hosts_.front(), nics_, said)
                                    : fmt::format("cables: {}; of {} {}", device.ports.size(),
                                                  hosts_.front(), nics_),
                           "all hosts have as many NICs");
    }
    const auto leaf_of = [&](const std::string& host) {
        const CabledDevice& device = devices.at(host);
        return device.ports.empty() ? std::string() : device.ports.begin()->second.peer;
    };
    std::ranges::stable_sort(hosts_, {}, leaf_of);
}

void Cabling::arrange(std::size_t said) {
    find_hosts(said);
    find_tiers();
    diagnostics_.raise_if_any();
}

std::string Cabling::network(const std::string& form) const {
    std::string out;
    std::map<std::tuple<std::string, std::string, std::string>, int> cables;
    for (const auto& [name, device] : devices) {
        if (device.host) continue;
        out += fmt::format("[[switch]]  # {}:{}\nname = {}\ntier = {}\n", visible(device.file),
                           device.line, toml_text(name), device.tier);
        for (const auto& [port, end] : device.ports) {
            if (devices.at(end.peer).tier > device.tier) ++cables[{name, end.peer, end.rate}];
        }
    }
    for (const auto& [cable, count] : cables) {
        const auto& [from, to, rate] = cable;
        out += fmt::format("[[cable]]\nfrom = {}\nto = {}\ncount = {}\nbandwidth = \"{}\"\n",
                           toml_text(from), toml_text(to), count, rate);
    }
    for (std::size_t node = 0; node < hosts_.size(); ++node) {
        const CabledDevice& host = devices.at(hosts_[node]);
        std::size_t nic = 0;
        for (const auto& [port, end] : host.ports) {
            out += fmt::format(
                "[[attach]]  # {}:{} {}\nswitch = {}\nfirst_node = {}\nlast_node = {}\nnic = {}\n",
                visible(host.file), host.line, visible(port), toml_text(end.peer), node, node,
                nic++);
        }
    }
    const CabledDevice& first = devices.at(hosts_.front());
    return fmt::format("# {}, imported by railyard import {}\n", visible(first.file), form) + out;
}

void Cabling::add_part(const std::string& form, const std::string& rate_origin) {
    const auto beside = [&](const char* ending) {
        return std::filesystem::path(path_beside(options_.output, ending)).filename().string();
    };
    part_.beside(".network", network(form));
    part_.beside(".nodes", fmt::format("{}\n", fmt::join(hosts_, "\n")));
    part_.section("cluster");
    if (!options_.nodes.empty()) part_.quoted("node", options_.nodes.front(), "--node");
    part_.whole("nodes", hosts_.size(),
                fmt::format("{}: hosts; which is which is in {}", file_, beside(".nodes")));
    part_.whole("nics_per_node", nics_, "cables of a host");
    part_.section("fabric.compute");
    part_.quoted("kind", "roce", fmt::format("{}'s switches are Ethernet's", form));
    part_.quoted("topology", "custom", "as it is cabled");
    part_.quoted("file", beside(".network"), file_);
    part_.quoted("nic_bandwidth", nic_rate_, rate_origin);
    if (options_.nodes.empty()) part_.left_out("what the nodes are: cluster.node, or --node");
}

}  // namespace railyard
