#pragma once
// Who is cabled to whom, by names of nodes and their ports, made a custom network: hosts, and switches whose
// tier is how many cables they are from one.

#include <map>
#include <string>
#include <vector>

#include "sim/config.h"
#include "tools/import/importers.h"

namespace railyard {

struct CabledPort {
    std::string peer;
    std::string rate;  // "400 Gbit/s"
};

struct CabledDevice {
    bool host = false;
    int tier = -1;  // cables to the nearest host; a host's is 0
    std::string file;
    int line = 0;
    std::map<std::string, CabledPort> ports;
};

// "1x400G": how many NICs a host has, and what each carries.
struct SaidNics {
    std::size_t count = 0;
    std::string rate;
};

class Cabling : private Importer {
  public:
    using Importer::Importer;

    std::map<std::string, CabledDevice> devices;

    // The only file of an import, in YAML. Throws ScenarioError on a second one, and on what is no YAML.
    Document topology();

    // What --network says; `form` is the file's, which does not. Nothing, and an error, where it does not.
    SaidNics read_rate(const std::string& form);
    // Whether all hosts have as many NICs (as `said`, if that is not 0) and all cables lead from one tier to
    // the next. Throws ScenarioError where they don't.
    void arrange(std::size_t said);
    // The scenario's part and the files beside it. Needs arrange() and a name for the output.
    void add_part(const std::string& form, const std::string& rate_origin);
    // Reports, and gives true, when the part would go to nobody's file.
    bool lacks_output();

  private:
    void find_hosts(std::size_t said);
    void find_tiers();
    std::string network(const std::string& form) const;

    std::vector<std::string> hosts_;  // those of a leaf side by side
    std::size_t nics_ = 0;            // of a host
    std::string nic_rate_;
};

}  // namespace railyard
