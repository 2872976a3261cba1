// Which name of B a name of A stands for, learnt from pairs: told only where all pairs agree on it.

#pragma once

#include <map>
#include <set>
#include <string>

namespace tensordiff {

class OneToOne {
 public:
  void learn(const std::string& a, const std::string& b) {
    b_of_a_[a].insert(b);
    a_of_b_[b].insert(a);
  }

  // Null for a name that was never seen, and for one that had several partners, or shared one.
  const std::string* partner(const std::string& a) const {
    const auto found = b_of_a_.find(a);
    if (found == b_of_a_.end() || found->second.size() != 1) return nullptr;
    const std::string& b = *found->second.begin();
    return a_of_b_.at(b).size() == 1 ? &b : nullptr;
  }

 private:
  std::map<std::string, std::set<std::string>> b_of_a_, a_of_b_;
};

}  // namespace tensordiff
