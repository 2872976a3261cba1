// For tests: all values of a file against a truth.json of {"files": {file: {name: {shape,
// values}}}}.

#pragma once

#include <gtest/gtest.h>

#include <map>

#include "base/json.h"
#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff::test_truth {

inline void expect_all(const std::filesystem::path& folder, const std::string& file) {
  const Result<Json> truth = Json::parse(test_files::read_file(folder / "truth.json"));
  ASSERT_TRUE(truth.ok());
  const Result<Catalog> catalog = open_model((folder / file).string());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  std::map<std::string, const Tensor*> found;
  for (const Tensor& tensor : catalog.value().tensors) found[tensor.name] = &tensor;
  ASSERT_FALSE(truth.value()["files"][file].object().empty());
  for (const Json::Member& expected : truth.value()["files"][file].object()) {
    const std::string what = file + " " + expected.key;
    ASSERT_TRUE(found.contains(expected.key)) << what;
    const Tensor& tensor = *found.at(expected.key);
    ASSERT_EQ(tensor.fault, "") << what;
    Shape shape;
    for (const Json& size : expected.value["shape"].array()) shape.push_back(*size.u64());
    EXPECT_EQ(tensor.view.shape, shape) << what;
    const Result<Reader> reader = Reader::open(tensor.view);
    ASSERT_TRUE(reader.ok()) << what << ": " << reader.error().message();
    std::vector<double> values(tensor.elements() * (is_complex(tensor.view.dtype) ? 2 : 1));
    reader.value().components(0, tensor.elements(), values.data());
    std::vector<double> wanted;
    for (const Json& value : expected.value["values"].array()) wanted.push_back(*value.number());
    EXPECT_EQ(values, wanted) << what;
  }
}

}  // namespace tensordiff::test_truth
