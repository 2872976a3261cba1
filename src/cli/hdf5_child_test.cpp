// What the process that runs the HDF5 library leaves out, and how it sees element types.

#include "cli/hdf5_child.h"

#include <gtest/gtest.h>

#include <map>

#include "cli/hdf5_driver.h"
#include "cli/hdf5_type.h"
#include "formats/test_files.h"

namespace tensordiff {
namespace {

using namespace test_files;

TEST(Hdf5Refused, IsWhatLiesElsewhere) {
  const Result<Catalog> catalog = open_model(data_path("../hdf5/refused.h5").string());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  std::map<std::string, std::string> told;
  for (const Tensor& tensor : catalog.value().tensors) told[tensor.name] = tensor.fault;
  for (const Problem& problem : catalog.value().problems) told[problem.where] = problem.message;
  const std::map<std::string, std::string> expected = {
      {"good", ""},
      {"link", "an external link, which is not followed"},
      {"nowhere", "a link that leads nowhere"},
      {"outside", "its data lies in other files, which are not read"},
      {"virtual", "a virtual dataset, whose data lies in other files"},
      {"packed", "packed with the filter 32000 (lzf), which is not supported"},
      {"pairs", "compound elements, which are not read"},
  };
  EXPECT_EQ(told, expected);
}

std::string told_type(hid_t type) {
  const Result<hdf5::Element> element = hdf5::element_of(type);
  if (!element.ok()) return element.error().message();
  return fmt::format("{}{}", name_of(element.value().dtype),
                     element.value().swapped ? " swapped" : "");
}

// Types alone are no danger: no file is opened here.
TEST(Hdf5Type, IsOneOfOursOrNamed) {
  H5open();
  EXPECT_EQ(told_type(H5T_IEEE_F32LE), "f32");
  EXPECT_EQ(told_type(H5T_IEEE_F64BE), "f64 swapped");
  EXPECT_EQ(told_type(H5T_STD_I16LE), "i16");
  EXPECT_EQ(told_type(H5T_STD_U8BE), "u8");
  EXPECT_EQ(told_type(H5T_STD_B32LE), "u32");
  EXPECT_EQ(told_type(H5T_STD_REF_OBJ), "references to other objects, which are not read");
  const hdf5::Handle odd(H5Tcopy(H5T_STD_I32LE), H5Tclose);
  H5Tset_precision(odd.id(), 20);
  EXPECT_EQ(told_type(odd.id()), "integers of 20 bits in 4 bytes");
  const hdf5::Handle brain(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(brain.id(), 15, 7, 8, 0, 7);
  H5Tset_size(brain.id(), 2);
  H5Tset_ebias(brain.id(), 127);
  EXPECT_EQ(told_type(brain.id()), "bf16");
  const hdf5::Handle lists(H5Tvlen_create(H5T_IEEE_F32LE), H5Tclose);
  EXPECT_EQ(told_type(lists.id()), "lists of various lengths, which are not read");
}

}  // namespace
}  // namespace tensordiff
