// What lasts beyond this run, in SQLite: sources, sessions, notes, order, runs, results, uploads.
//
// Each change is a transaction of its own in a write-ahead log, so that a killed server loses at
// most the change it was making. The only file that knows SQLite is its .cpp.

#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace tensordiff::serve {

class Store {
 public:
  // Makes the file, for us alone, and its tables where they are not there. ":memory:" lasts as long
  // as the Store.
  static Result<Store> open(const std::string& path);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) = delete;
  ~Store();

  struct Blob {
    std::string_view bytes;
  };
  using Value = std::variant<int64_t, std::string_view, Blob>;

  class Row {
   public:
    int64_t number(int column) const;
    std::string text(int column) const;  // Also of a blob.

   private:
    friend class Store;
    explicit Row(void* statement) : statement_(statement) {}
    void* statement_;
  };

  // Whether the database failed this thread while this lived: the disk is full, the file cannot be
  // written, or it is damaged. Tells such an error from those that a request makes.
  class Faults {
   public:
    Faults();
    ~Faults();
    Faults(const Faults&) = delete;
    Faults& operator=(const Faults&) = delete;
    bool seen() const { return seen_; }

   private:
    friend class Store;
    bool seen_ = false;
    Faults* outer_;
  };

  // Runs one statement; `?` in it stand for the values. From any thread.
  Result<void> run(const char* sql, std::initializer_list<Value> values = {});
  Result<void> read(const char* sql, std::initializer_list<Value> values,
                    const std::function<void(const Row&)>& each);

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tensordiff::serve
