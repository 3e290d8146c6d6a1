#pragma once
// A decision as one page that prints well: what was found, in sentences and tables. Static HTML, all text
// escaped; its policy allows nothing but its own style.

#include <string>
#include <vector>

namespace railyard {

struct DecisionTable {
    std::vector<std::string> columns;  // ">title": of numbers, which stand on the right
    std::vector<std::vector<std::string>> rows;
};

struct DecisionSection {
    std::string title;
    std::vector<std::string> sentences;  // above the table
    DecisionTable table;                 // without rows: none
    std::vector<std::string> notes;      // below it
};

struct Decision {
    std::string title;
    std::string verdict;  // a sentence or two
    std::vector<DecisionSection> sections;
    std::string footer;  // version, file
};

std::string decision_page(const Decision& decision);

}  // namespace railyard
