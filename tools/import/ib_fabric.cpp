#include "tools/import/ib_fabric.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard {

namespace {

// Lanes times Gbit/s: "4xNDR". 0: unknown.
double gbps_of(std::string_view text) {
    const std::size_t x = text.find('x');
    if (x == std::string_view::npos) return 0;
    const auto lanes = whole_value(text.substr(0, x));
    constexpr std::pair<std::string_view, double> rates[] = {
        {"SDR", 2.5}, {"DDR", 5},  {"QDR", 10},  {"FDR10", 10}, {"FDR", 14},
        {"EDR", 25},  {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};
    for (const auto& [name, rate] : rates) {
        if (text.substr(x + 1) == name && lanes && *lanes >= 1 && *lanes <= 12) {
            return static_cast<double>(*lanes) * rate;
        }
    }
    return 0;
}

// What stands between the first two quotes from `at` on, which goes behind them.
std::string quoted(const std::string& text, std::size_t& at) {
    const std::size_t open = text.find('"', at);
    const std::size_t close = open == std::string::npos ? open : text.find('"', open + 1);
    if (close == std::string::npos) {
        at = text.size();
        return {};
    }
    at = close + 1;
    return text.substr(open + 1, close - open - 1);
}

int bracketed(const std::string& text, std::size_t at) {
    const std::size_t open = text.find('[', at);
    const std::size_t close = open == std::string::npos ? open : text.find(']', open);
    if (close == std::string::npos) return 0;
    const auto value = whole_value(std::string_view(text).substr(open + 1, close - open - 1));
    return value && *value > 0 && *value < 1000 ? static_cast<int>(*value) : 0;
}

class Reader {
  public:
    Reader(const std::string& file, Diagnostics& diagnostics)
        : file_(file), diagnostics_(diagnostics) {}
    IbFabric read(const std::vector<FileLine>& lines) {
        for (const FileLine& line : lines) {
            const std::string_view text = trimmed(line.text);
            if (text.empty() || text.starts_with('#')) continue;
            if (text.starts_with("devid=")) device_ = text.substr(6);
            if (text.starts_with("Switch") || text.starts_with("Ca\t") || text.starts_with("Ca ") ||
                text.starts_with("Rt")) {
                begin(line);
            } else if (text.starts_with('[') && node_ != nullptr) {
                add_port(line);
            } else if ((text.starts_with("CA ") || text.starts_with("SW ")) &&
                       text.find(" 0x") != text.npos) {
                diagnostics_.error(
                    file_, {line.number, 1}, "", "the list of ports that -p prints",
                    "give what ibnetdiscover prints without -p: it says which ports are whose");
                break;
            } else if (text.starts_with("<") || text.starts_with(">")) {
                diagnostics_.error(file_, {line.number, 1}, "",
                                   "a difference (--diff), not a fabric");
                break;
            }
            if (diagnostics_.errors().size() > 20) break;
        }
        return std::move(fabric_);
    }

  private:
    void begin(const FileLine& line) {
        std::size_t at = 0;
        IbNode node;
        node.id = quoted(line.text, at);
        const std::size_t hash = line.text.find('#', at);
        std::size_t from = hash == std::string::npos ? line.text.size() : hash;
        node.description = std::string(trimmed(quoted(line.text, from)));
        node.device = device_;
        node.line = line.number;
        const std::vector<std::string> words = split_text(line.text, ' ');
        if (words.size() > 1) node.ports = static_cast<int>(whole_value(words[1]).value_or(0));
        if (node.id.size() < 3 || node.id[1] != '-') {
            return diagnostics_.error(file_, {line.number, 1}, "",
                                      "expected a GUID in quotes: cut off?");
        }
        const auto [place, fresh] = fabric_.emplace(node.id, node);
        if (!fresh) {
            return diagnostics_.error(
                file_, {line.number, 1}, node.id,
                fmt::format("is there twice, first in line {}", place->second.line),
                "two scans in one file? Give one");
        }
        node_ = &place->second;
    }

    void add_port(const FileLine& line) {
        IbPort port;
        port.line = line.number;
        port.port = bracketed(line.text, 0);
        std::size_t at = 0;
        port.peer = quoted(line.text, at);
        port.peer_port = bracketed(line.text, at);
        const std::vector<std::string> words = split_text(line.text, ' ');
        for (auto word = words.rbegin(); word != words.rend() && port.gbps == 0; ++word) {
            port.gbps = gbps_of(*word);
            if (word->find('"') != std::string::npos) break;
        }
        if (port.port == 0 || port.peer.size() < 3 || port.peer_port == 0) {
            return diagnostics_.error(file_, {line.number, 1}, node_->id,
                                      "expected [port] \"PEER\"[port]: cut off?");
        }
        if (port.gbps == 0) {
            return diagnostics_.error(
                file_, {line.number, 1}, node_->id,
                "no width and speed such as 4xNDR: newer than the tool that wrote this?",
                "scan with newer infiniband-diags");
        }
        node_->links.push_back(std::move(port));
    }

    const std::string& file_;
    Diagnostics& diagnostics_;
    IbFabric fabric_;
    IbNode* node_ = nullptr;
    std::string device_;
};

}  // namespace

IbFabric read_ib_fabric(const std::string& file, const std::vector<FileLine>& lines,
                        Diagnostics& diagnostics) {
    IbFabric out = Reader(file, diagnostics).read(lines);
    if (!diagnostics.ok()) return out;
    const bool switches =
        std::ranges::any_of(out, [](const auto& node) { return node.second.is_switch(); });
    if (out.empty()) {
        diagnostics.error(file, {}, "", "has no record of ibnetdiscover");
    } else if (!switches) {
        diagnostics.error(
            file, {out.begin()->second.line, 1}, "",
            fmt::format("{} CAs and no switch: the scan stopped at its own port", out.size()),
            "scan from a host whose port is up, or from the subnet manager's");
    }
    return out;
}

IbHost ib_host(const std::string& description) {
    const std::vector<std::string> words = split_text(description, ' ');
    if (words.size() != 2 || lower_case(words[0]) == "localhost" || words[0] == "ubuntu") return {};
    const std::string& device = words[1];
    std::optional<std::int64_t> number;
    if (device.starts_with("HCA-")) number = whole_value(device.substr(4));
    if (number) --*number;
    if (device.starts_with("mlx5_")) number = whole_value(device.substr(5));
    if (!number || *number < 0 || *number > 255) return {};
    return {words[0], static_cast<int>(*number)};
}

}  // namespace railyard
