// The Python module tensordiff._engine: compare() of the C++ API, for the Python code beside it.
//
// Tensors come as addresses, which python/tensordiff/arrays.py takes from arrays that it keeps
// alive during the call. The report goes back as the JSON of `-o report`.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "tensordiff/tensordiff.h"

namespace nb = nanobind;
namespace td = tensordiff::api;

namespace {

// Name, dtype, shape, strides in elements, address.
using Array =
    std::tuple<std::string, std::string, std::vector<uint64_t>, std::vector<int64_t>, uintptr_t>;
using Side = std::variant<std::string, std::vector<Array>>;

td::Input input_of(const Side& side) {
  if (const auto* path = std::get_if<std::string>(&side)) return *path;
  std::vector<td::Tensor> tensors;
  for (const auto& [name, dtype, shape, strides, address] : std::get<std::vector<Array>>(side))
    tensors.push_back({name, dtype, shape, reinterpret_cast<const void*>(address), strides});
  return tensors;
}

// Options that only Python code sets, by their names in td::Options.
td::Options options_of(const nb::dict& given) {
  td::Options options;
  options.json = true;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "atol") options.atol = nb::cast<std::optional<double>>(value);
    if (name == "rtol") options.rtol = nb::cast<std::optional<double>>(value);
    if (name == "equal_nan") options.equal_nan = nb::cast<bool>(value);
    if (name == "diagnose") options.diagnose = nb::cast<bool>(value);
    if (name == "threads") options.threads = nb::cast<std::size_t>(value);
    if (name == "paths") options.paths = nb::cast<std::vector<std::string>>(value);
    if (name == "ignore_regex") options.ignore_regex = nb::cast<std::string>(value);
    if (name == "noise") options.noise = input_of(nb::cast<Side>(value));
    if (name == "weights") options.weights = input_of(nb::cast<Side>(value));
  }
  return options;
}

// Returns the report and an error, one of which is empty.
std::tuple<std::string, std::string> compare(const Side& a, const Side& b, const nb::dict& given) {
  td::Options options = options_of(given);
  std::stop_source stop;
  options.stop = stop.get_token();
  // Ctrl-C is seen between two steps of the work: Python handles signals only when it is asked to.
  options.progress = [&stop](uint64_t, uint64_t) {
    const nb::gil_scoped_acquire python;
    if (!stop.stop_requested() && PyErr_CheckSignals() != 0) stop.request_stop();
    // The exception stays with this thread's state until the call returns to Python, below.
  };
  td::Outcome outcome;
  {
    const td::Input input_a = input_of(a), input_b = input_of(b);
    const nb::gil_scoped_release others_may_run;
    outcome = td::compare(input_a, input_b, options);
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (outcome.cancelled) throw nb::builtin_exception(nb::exception_type::runtime_error, "stopped");
  return {outcome.report_json, outcome.error};
}

}  // namespace

NB_MODULE(_engine, module) {
  module.def("compare", &compare, nb::arg("a"), nb::arg("b"), nb::arg("options"));
  module.def("use_program", &td::use_program, nb::arg("path"));
  module.def("version", &td::version);
}
