#pragma once
// Accounts and their shares, as 'sacctmgr -P show assoc' prints them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/import/text_file.h"

namespace railyard {

struct SlurmAccount {
    std::string name;
    std::int64_t shares = 1;
    std::string place;
};

bool is_slurm_account_table(std::string_view header);
// Those right below the root: shares of accounts within accounts and of users are noted as warnings.
std::vector<SlurmAccount> read_slurm_accounts(const std::string& file,
                                              const std::vector<FileLine>& lines,
                                              Diagnostics& diagnostics);

}  // namespace railyard
