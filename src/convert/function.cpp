#include "convert/function.h"

#include <cmath>

#include "tensor/reader.h"

namespace tensordiff {
namespace {

double value_of(Function function, double x) {
  switch (function) {
    case Function::none:
      return x;
    case Function::plus_one:
      return x + 1;
    case Function::minus_one:
      return x - 1;
    case Function::negated:
      return -x;
    case Function::negative_exp:
      return -std::exp(x);
    case Function::log_negated:
      return std::log(-x);
  }
  return x;
}

Result<Bytes> computed(Function function, const View& view) {
  const Reader reader = TRY(Reader::open(view));
  std::vector<double> values(view.elements());
  reader.values(0, values.size(), values.data());
  if (!reader.intact()) return Error("the file was cut short while it was read");
  for (double& value : values) value = value_of(function, value);
  std::string bytes(values.size() * sizeof(float), '\0');
  encode(DType::f32, values.data(), values.size(), reinterpret_cast<std::byte*>(bytes.data()));
  return bytes_of(std::move(bytes));
}

}  // namespace

View with_function(Function function, const View& view) {
  ByteSource source(view.elements() * sizeof(float),
                    [function, view] { return computed(function, view); });
  return View{DType::f32,
              false,
              view.shape,
              {{Shape(view.shape.size(), 0), view.shape, contiguous_strides(view.shape), 0,
                std::move(source)}}};
}

std::string_view text_of(Function function) {
  switch (function) {
    case Function::none:
      return "A";
    case Function::plus_one:
      return "A + 1";
    case Function::minus_one:
      return "A - 1";
    case Function::negated:
      return "-A";
    case Function::negative_exp:
      return "-exp(A)";
    case Function::log_negated:
      return "log(-A)";
  }
  return "A";
}

}  // namespace tensordiff
