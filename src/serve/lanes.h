// How many requests of each kind are worked on at once, and how many wait for their turn: a few
// slow searches do not keep the page waiting, and whoever asks for too much is told so.

#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

namespace tensordiff::serve {

// What a request costs.
enum class Lane {
  quick,    // Looks at what is in memory or in the database.
  values,   // Reads a part of two tensors, and may have to unpack them first.
  search,   // Reads all of two tensors.
  opening,  // Opens or removes files.
  compare,  // Starts a comparison, or waits for one.
};

class Lanes {
 public:
  struct Limit {
    std::size_t at_once = 0, waiting = 0;
  };
  static constexpr std::size_t kCount = 5;
  // In the order of Lane. Searches take a core each, and what is read for values can be as large as
  // two unpacked tensors; 64 clients that all want the same kind are not turned away.
  static constexpr std::array<Limit, kCount> kLimits = {
      {{64, 128}, {8, 128}, {2, 64}, {4, 64}, {8, 64}}};

  explicit Lanes(const std::array<Limit, kCount>& limits = kLimits) : limits_(limits) {}

  // A place among those that are worked on; it is given back when this ends.
  class Place {
   public:
    Place(Lanes& lanes, Lane lane) : lanes_(&lanes), lane_(lane) {}
    Place(Place&& other) noexcept : lanes_(other.lanes_), lane_(other.lane_) {
      other.lanes_ = nullptr;
    }
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    Lanes* lanes_;
    Lane lane_;
  };
  // Waits for one. Nothing where too many wait already, or when the work was called off.
  std::optional<Place> enter(Lane lane);

 private:
  struct Count {
    std::size_t working = 0, waiting = 0;
  };

  const std::array<Limit, kCount> limits_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::array<Count, kCount> counts_;
};

}  // namespace tensordiff::serve
