// What `tensordiff check` says of files that open well, and of those that do not open.

#include "formats/audit.h"

#include <gtest/gtest.h>

#include "formats/test_writers.h"

namespace tensordiff {
namespace {

using namespace test_writers;

std::string told(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& found : problems) out += found.where + ": " + found.message + ";";
  return out;
}
std::string audited(std::string name, std::string file) {
  return told(audit_input(input(std::move(file), std::move(name))));
}

const Arrays kModel = {{"w", {2}, {1, 2}}, {"v", {2}, {3, 4}}};

TEST(Audit, HasNothingToSayOfGoodFiles) {
  for (const FileWriter& writer : kWriters)
    EXPECT_EQ(audited(std::string(writer.file), writer.write(kModel)), "") << writer.file;
}

TEST(Audit, TellsOfWrongExtensions) {
  EXPECT_EQ(audited("d/model.safetensors", as_pickle(kModel)),
            ": wrong extension: its name says safetensors, its content is pickle;");
  EXPECT_EQ(audited("model.GGUF", as_npz(kModel)),
            ": wrong extension: its name says gguf, its content is npz;");
  EXPECT_EQ(audited("checkpoint.pth.tar", as_torch_zip(kModel)), "");
  EXPECT_EQ(audited("model.weights", as_gguf(kModel)), "");  // No format's.
  EXPECT_EQ(audited("v1.2.safetensors", as_safetensors(kModel)), "");
  // Whoever names the format does not go by the name.
  EXPECT_EQ(told(audit_input(input(as_pickle(kModel), "x.safetensors"), "pickle")), "");
}

// A stored member whose bytes were changed, in every kind of zip.
TEST(Audit, TriesTheChecksumsOfStoredMembers) {
  const auto changed = [](std::string file, std::string_view bytes) {
    file[file.find(bytes)] ^= 1;
    return file;
  };
  const std::string four = f32(3) + f32(4);
  const std::string npz =
      zip({stored("w.npy", as_npy(kModel[0])), stored("v.npy", as_npy(kModel[1]))});
  const std::string dump =
      zip({stored("d/w.npy", as_npy(kModel[0])), stored("d/v.npy", as_npy(kModel[1]))});
  for (const auto& [auditor, file] : {std::pair(&audits::torch_zip, as_torch_zip(kModel)),
                                      {&audits::npz, npz},
                                      {&audits::zip, dump}}) {
    EXPECT_EQ(told(auditor->audit(input(file))), "") << auditor->format->name;
    const std::string words = told(auditor->audit(input(changed(file, four))));
    EXPECT_NE(words.find(": its checksum is "), std::string::npos) << words;
  }
  std::string program = read_file(data_path("../torch/export.pt2"));
  EXPECT_EQ(told(audits::torch_export.audit(input(program))), "");
}

TEST(Audit, LooksIntoMembers) {
  const std::string dump = zip({stored("a/one.gguf", as_pickle(kModel))});
  EXPECT_EQ(told(audits::zip.audit(input(dump))),
            "a/one.gguf: wrong extension: its name says gguf, its content is pickle;");
  EXPECT_EQ(told(audits::tar.audit(input(tar({{"a/one.gguf", as_pickle(kModel)}})))),
            "a/one.gguf: wrong extension: its name says gguf, its content is pickle;");
}

TEST(Audit, TellsOfStoragesThatNoTensorUses) {
  using namespace test_pickles;
  const std::string one = tensor({test_pickles::storage("FloatStorage", "0", 1), 0, {1}, {1}});
  EXPECT_EQ(told(audits::torch_zip.audit(
                input(torch_zip(dict({{"w", one}}), {{"0", f32(1)}, {"7", "hidden"}})))),
            "m/data/7: its 6 bytes belong to no tensor;");
}

TEST(Audit, TellsOfCodeInPicklesThatAreNotRead) {
  using namespace test_pickles;
  const std::string code = call(global("os", "system"), {test_pickles::text("id")});
  const std::string told_code = "holds a reference to 'os.system', which was not run;";
  const std::string beside =
      zip({stored("m/data.pkl", kProto2 + "}."), stored("m/other.pkl", kProto2 + code + ".")});
  EXPECT_EQ(told(audits::torch_zip.audit(input(beside))), "other.pkl: " + told_code);
  const std::string broken = zip({stored("m/data.pkl", kProto2 + code)});
  EXPECT_EQ(told(audits::torch_zip.audit(input(broken))), "data.pkl: " + told_code);
  EXPECT_EQ(told(audits::torch_legacy.audit(input(as_torch_legacy(kModel)))), "");
}

TEST(Audit, LooksAtPadding) {
  std::string file = as_gguf(kModel);
  EXPECT_EQ(told(audits::gguf.audit(input(file))), "");
  file[file.size() - 12] = 'x';  // Between the two tensors.
  EXPECT_EQ(told(audits::gguf.audit(input(file))), ": the padding before tensor 'v' is not zeros;");
  EXPECT_EQ(told(audits::gguf.audit(input(as_gguf(kModel) + std::string(64, '\0')))),
            ": 40 bytes after the last tensor belong to none;");
}

}  // namespace
}  // namespace tensordiff
