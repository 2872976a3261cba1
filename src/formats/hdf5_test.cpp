// HDF5 files, through the real process: every value against what h5py reads, and what is refused.
// tests/data/hdf5/make.py made the files.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <map>

#include "base/json.h"
#include "base/sandbox.h"
#include "formats/test_files.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using namespace test_files;

std::filesystem::path hdf5_data(std::string_view name) { return data_path("../hdf5") / name; }

std::vector<double> values_of(const Tensor& tensor) {
  const Result<Reader> reader = Reader::open(tensor.view);
  EXPECT_TRUE(reader.ok()) << tensor.name << ": " << reader.error().message();
  std::vector<double> values(tensor.elements() * (is_complex(tensor.view.dtype) ? 2 : 1));
  if (reader.ok() && !values.empty())
    reader.value().components(0, tensor.elements(), values.data());
  return values;
}

std::string short_name(std::string_view numpy_name) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"complex128", "c128"}, {"complex64", "c64"}, {"float", "f"}, {"uint", "u"}, {"int", "i"}};
  for (const auto& [theirs, ours] : names)
    if (numpy_name.starts_with(theirs))
      return std::string(ours) + std::string(numpy_name.substr(theirs.size()));
  return std::string(numpy_name);
}

class Hdf5 : public testing::TestWithParam<std::string> {};

TEST_P(Hdf5, IsReadValueByValue) {
  const Result<Json> truth = Json::parse(read_file(hdf5_data("truth.json")));
  ASSERT_TRUE(truth.ok());
  const Result<Catalog> catalog = open_model(hdf5_data(GetParam()).string());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  std::map<std::string, const Tensor*> found;
  for (const Tensor& tensor : catalog.value().tensors) found[tensor.name] = &tensor;
  for (const Json::Member& expected : truth.value()["files"][GetParam()].object()) {
    ASSERT_TRUE(found.contains(expected.key)) << expected.key;
    const Tensor& tensor = *found.at(expected.key);
    ASSERT_EQ(tensor.fault, "") << expected.key;
    EXPECT_EQ(name_of(tensor.view.dtype), short_name(expected.value["dtype"].string()))
        << expected.key;
    Shape shape;
    for (const Json& size : expected.value["shape"].array()) shape.push_back(*size.u64());
    EXPECT_EQ(tensor.view.shape, shape) << expected.key;
    std::vector<double> values;
    for (const Json& value : expected.value["values"].array()) values.push_back(*value.number());
    EXPECT_EQ(values_of(tensor), values) << expected.key;
  }
  EXPECT_TRUE(catalog.value().problems.empty());
}

INSTANTIATE_TEST_SUITE_P(Files, Hdf5,
                         testing::Values("earliest.h5", "latest.h5", "keras2.h5", "v73.mat"),
                         [](const auto& file) {
                           return file.param.substr(0, file.param.find('.'));
                         });

TEST(Hdf5Code, OfKerasIsNamed) {
  const Result<Catalog> catalog = open_model(hdf5_data("lambda.h5").string());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  ASSERT_EQ(catalog.value().problems.size(), 1U);
  const Problem& found = catalog.value().problems[0];
  EXPECT_EQ(found.where, "model_config");
  EXPECT_EQ(found.message, "'evil' is a Lambda of marshalled Python code, which was not run");
  EXPECT_EQ(found.severity, Severity::dangerous);
}

// On a system that does not let a process give up rights, the library is not run.
TEST(Hdf5DeathTest, IsNotReadWithoutASandbox) {
  const auto read_without = [] {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {6, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      _exit(99);
    const Result<Catalog> catalog = open_model(hdf5_data("keras2.h5").string());
    std::fputs(catalog.ok() ? "it was read" : catalog.error().message().c_str(), stderr);
    _exit(0);
  };
  EXPECT_EXIT(read_without(), testing::ExitedWithCode(0),
              "the HDF5 library: needs a sandbox, which is missing here: seccomp is not "
              "available: Invalid argument");
}

TEST(Hdf5Archive, OfKerasIsOpened) {
  const Result<Catalog> catalog = open_model(hdf5_data("model.keras").string());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message();
  ASSERT_EQ(catalog.value().tensors.size(), 2U);
  EXPECT_EQ(catalog.value().tensors[0].name, "layers/dense/vars/0");
  EXPECT_EQ(values_of(catalog.value().tensors[1]), (std::vector<double>{0, 0.25}));
}

TEST(Hdf5Library, IsNotOurs) {
  EXPECT_TRUE(error_of(formats::hdf5, "\x89HDF\r\n\x1a\n" + std::string(100, 'x'))
                  .starts_with("the HDF5 library: not a whole HDF5 file: "));
  EXPECT_EQ(error_of(formats::hdf5, "something else"), "the signature of HDF5 is missing");
  set_sandbox_program("/bin/false");
  EXPECT_EQ(error_of(formats::hdf5, read_file(hdf5_data("small.h5"))),
            "the HDF5 library: it ended early, with status 1");
  // Nobody says where the program is: it lies beside the tests.
  set_sandbox_program("");
  EXPECT_EQ(error_of(formats::hdf5, read_file(hdf5_data("small.h5"))), "");
  set_sandbox_program(test_files::program());
}

TEST(Hdf5Library, HasAnOptionForMoreTime) {
  set_sandbox_program("/usr/bin/yes");  // Never ends, and never answers.
  OpenOptions options;
  options.limits.hdf5_seconds_max = 1;
  const Result<Catalog> catalog = open_model(hdf5_data("small.h5").string(), options);
  set_sandbox_program(test_files::program());
  ASSERT_FALSE(catalog.ok());
  EXPECT_NE(catalog.error().message().find("it took longer than 1 s"), std::string::npos);
  EXPECT_NE(catalog.error().message().find("hdf5-seconds"), std::string::npos)
      << catalog.error().message();
}

}  // namespace
}  // namespace tensordiff
