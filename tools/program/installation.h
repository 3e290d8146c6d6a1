#pragma once
// Where the files that come with the program are: its tables, studies and the report's page.

#include <string>
#include <string_view>

namespace railyard {

// The path of a file or folder that comes with the program, named as in the checkout ("tests/validation"). An
// installed program has them in ../share/railyard beside its folder; one that was built in a checkout, there.
std::string shipped_file(std::string_view name);

// The report's page without its data, which npm bundles when the program is built.
std::string report_page_file();

}  // namespace railyard
