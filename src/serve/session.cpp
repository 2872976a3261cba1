#include "serve/session.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "serve/sources.h"

namespace tensordiff::serve {
namespace {

const std::string kNone;

std::size_t rows_of(const Results& results) {
  const Report& report = results.report;
  return report.pairs.size() + report.only_a.size() + report.only_b.size() + results.singles.size();
}

}  // namespace

std::string_view name_of(Phase phase) {
  constexpr std::string_view kNames[] = {"matching", "comparing", "explaining",
                                         "done",     "failed",    "cancelled"};
  return kNames[static_cast<std::size_t>(phase)];
}

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::optional<double> Progress::bytes_per_second() const {
  if (bytes == 0 || seconds <= 0) return std::nullopt;
  return static_cast<double>(bytes) / seconds;
}

std::optional<double> Progress::eta_ms() const {
  const std::optional<double> rate = bytes_per_second();
  if (!rate || bytes > bytes_total) return std::nullopt;
  return 1000 * static_cast<double>(bytes_total - bytes) / *rate;
}

const std::string& Row::name_a() const {
  if (pair) return pair->a.name;
  return kind == Kind::only_b ? kNone : alone->id.name;
}

const std::string& Row::name_b() const {
  if (pair) return pair->b.name;
  return kind == Kind::only_b ? alone->id.name : kNone;
}

std::size_t SessionState::row_count() const { return rows_of(results); }

Row SessionState::row(std::size_t id) const {
  Row row;
  row.id = static_cast<uint32_t>(id);
  row.order = order.empty() ? row.id : order[id];
  const Report& report = results.report;
  if (id < report.pairs.size()) {
    row.pair = &report.pairs[id];
    row.pending = !measured[id];
  } else if (id -= report.pairs.size(); id < report.only_a.size()) {
    row.kind = Row::Kind::only_a;
    row.alone = &report.only_a[id];
  } else if (id -= report.only_a.size(); id < report.only_b.size()) {
    row.kind = Row::Kind::only_b;
    row.alone = &report.only_b[id];
  } else {
    row.kind = Row::Kind::single;
    row.alone = &results.singles[id - report.only_b.size()];
  }
  if (notes.empty()) return row;
  const auto note = notes.find({row.name_a(), row.name_b()});
  if (note != notes.end()) row.note = note->second;
  return row;
}

void SessionState::set_results(Results made, bool measured_all) {
  const uint64_t next = rev + 1;
  std::vector<uint64_t> revs(rows_of(made), next);
  std::vector<bool> marks(made.report.pairs.size(), measured_all);
  results = std::move(made);
  row_revs = std::move(revs);
  measured = std::move(marks);
  order.clear();
  run_rev = rev = next;
  ++run;
}

void SessionState::forget_results() {
  results = {};
  row_revs = {};
  measured = {};
  order = {};
  pairing = nullptr;
  progress = {};
  run_rev = ++rev;
  ++run;
}

// Those that are named first, in that order; the others after them as they were.
void SessionState::set_order(const std::vector<uint32_t>& first) {
  const std::size_t count = row_count();
  std::vector<uint32_t> places(count, UINT32_MAX);
  uint32_t place = 0;
  for (const uint32_t id : first)
    if (id < count && places[id] == UINT32_MAX) places[id] = place++;
  for (uint32_t& each : places)
    if (each == UINT32_MAX) each = place++;
  order = first.empty() ? std::vector<uint32_t>() : std::move(places);
  ++rev;
  row_revs.assign(count, rev);
}

Session::Session(std::string id, Settings settings) : id_(std::move(id)) {
  state_.settings = std::move(settings);
  state_.created = state_.updated = now_ms();
}

void Session::wait(uint64_t rev, std::chrono::milliseconds time) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return state_.rev > rev; });
}

std::string names_fingerprint(const Catalog& a, const Catalog& b) {
  Hash hash;
  for (const Catalog* side : {&a, &b}) {
    hash.add(uint64_t{side->tensors.size()});
    for (const Tensor& tensor : side->tensors) {
      hash.add(tensor.name);
      hash.add(name_of(tensor.view.dtype));
      for (const uint64_t size : tensor.view.shape) hash.add(size);
    }
  }
  return hash.text();
}

}  // namespace tensordiff::serve
