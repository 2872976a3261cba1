// What names of code mean for whoever loads them.

#include "formats/pickle/danger.h"

#include <gtest/gtest.h>

namespace tensordiff::pickle {
namespace {

TEST(Danger, IsKnownByName) {
  for (const std::string_view name : {"os.system",
                                      "posix.system",
                                      "nt.system",
                                      "subprocess.Popen",
                                      "builtins.eval",
                                      "__builtin__.eval",
                                      "builtins.exec",
                                      "builtins.getattr",
                                      "runpy._run_code",
                                      "sys.modules",
                                      "importlib.import_module",
                                      "socket.socket",
                                      "webbrowser.open",
                                      "pickle.loads",
                                      "torch.load",
                                      "torch.hub.load",
                                      "torch.jit.unsupported_tensor_ops.execWrapper",
                                      "functools.partial",
                                      "operator.methodcaller",
                                      "types.CodeType",
                                      "io.open"})
    EXPECT_EQ(severity_of(name), Severity::dangerous) << name;
}

TEST(Danger, IsNotSeenInNamesThatHoldValues) {
  for (const std::string_view name :
       {"torch.nn.modules.linear.Linear", "torch.nn.parameter.Parameter", "torch.optim.adam.Adam",
        "collections.OrderedDict", "__builtin__.set", "builtins.int", "numpy.dtype",
        "numpy.core.multiarray._reconstruct", "numpy._core.multiarray.scalar",
        "torch._utils._rebuild_tensor_v2", "torch.FloatStorage", "argparse.Namespace",
        "datetime.datetime", "pathlib.PosixPath", "_codecs.encode"})
    EXPECT_EQ(severity_of(name), Severity::note) << name;
}

TEST(Danger, IsPossibleInUnknownNames) {
  for (const std::string_view name :
       {"mine.Model", "torch.nnx.f", "osx.system", "torch.utils.other", "builtins.print", "", "."})
    EXPECT_EQ(severity_of(name), Severity::suspicious) << name;
}

}  // namespace
}  // namespace tensordiff::pickle
