#include "digest/digest.h"

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "digest/against.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Catalog model(std::vector<std::pair<std::string, View>> tensors) {
  Catalog catalog;
  catalog.path = "model";
  catalog.format = "safetensors";
  for (auto& [name, view] : tensors) catalog.tensors.push_back({name, view, ""});
  return catalog;
}

Digest digest_of(const Catalog& catalog) { return make_digest(catalog, {}).value(); }

std::string fault_of(std::string_view text) {
  const Result<Digest> digest = read_digest(as_bytes(text));
  return digest.ok() ? "none" : digest.error().message();
}

Catalog small_model(unsigned seed) {
  return model({{"model.layers.0.self_attn.q_proj.weight", noise_view({8, 8}, seed)},
                {"model.layers.0.mlp.up_proj.weight", noise_view({16, 8}, seed + 1)},
                {"model.norm.weight", noise_view({8}, seed + 2)}});
}

TEST(Digest, IsReadAsItWasWritten) {
  const std::string file = write_digest(digest_of(small_model(1)));
  const Result<Digest> digest = read_digest(as_bytes(file));
  ASSERT_TRUE(digest.ok()) << digest.error().message();
  EXPECT_EQ(write_digest(digest.value()), file);
  EXPECT_EQ(digest.value().tensors[1].shape, (Shape{16, 8}));
  EXPECT_TRUE(is_digest(as_bytes(file)));
}

TEST(Digest, ThatIsTornOrChangedIsRefused) {
  const std::string file = write_digest(digest_of(small_model(1)));
  EXPECT_EQ(fault_of(""), "not a digest of tensordiff");
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(fault_of(std::string_view(file).substr(0, size)), "none") << size;
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x11);
    EXPECT_NE(fault_of(changed), "none") << at;
  }
}

// A file with the right hash, as somebody hostile would write it.
std::string with_hash(const std::string& body) {
  std::string hex;
  for (const char each : sha256(body))
    hex += fmt::format("{:02x}", static_cast<unsigned char>(each));
  return fmt::format("{{\"schema\":\"tensordiff.digest/1\",\"sha256\":\"{}\",\n\"digest\":{}}}\n",
                     hex, body);
}

TEST(Digest, OfSomebodyWhoKnowsTheHashIsCheckedToo) {
  const std::string good = R"({"tensors":[{"name":"w","dtype":"f32","shape":[2],)"
                           R"("ranks":["000000003f800000000000003f800000"],"stats":{}}]})";
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string body = good;
    return with_hash(body.replace(body.find(from), from.size(), to));
  };
  EXPECT_EQ(fault_of(with_hash(good)), "none");
  EXPECT_EQ(fault_of(with("f32", "f33")), "tensor 'w': 'f33' is not a dtype");
  EXPECT_EQ(fault_of(with("[2]", "[-2]")), "tensor 'w': its shape is impossible");
  EXPECT_EQ(fault_of(with("[2]", "[99999999,99999999]")),
            "tensor 'w': its shape has too many elements");
  EXPECT_EQ(fault_of(with("3f800000\"]", "3f80000g\"]")), "tensor 'w': its hash is malformed");
  EXPECT_EQ(fault_of(with("\"000000003f800000000000003f800000\"", "")),
            "tensor 'w': it has no hash");
  const std::string body = good;
  for (std::size_t at = 0; at < body.size(); ++at) {
    std::string changed = body;
    changed[at] = static_cast<char>(changed[at] ^ 0x01);
    const Result<Digest> digest = read_digest(as_bytes(with_hash(changed)));
    EXPECT_TRUE(!digest.ok() || digest.value().tensors.size() <= 1) << at;
  }
}

// "q_proj same, norm missing"
std::string states(const Digest& a, const Catalog& b, const Digest* earlier = nullptr) {
  const Result<DigestComparison> found = compare_digest(a, b, earlier, {});
  if (!found.ok()) return found.error().message();
  std::string text;
  for (const TensorState& each : found.value().tensors)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", each.a.empty() ? each.b : each.a,
                        name_of(each.state), each.note.empty() ? "" : " (" + each.note + ")");
  return text;
}

TEST(DigestAgainst, TellsWhatIsSameChangedMissingAndExtra) {
  const Digest a = digest_of(small_model(1));
  EXPECT_EQ(states(a, small_model(1)),
            "model.layers.0.self_attn.q_proj.weight same, model.layers.0.mlp.up_proj.weight same, "
            "model.norm.weight same");
  Catalog b = small_model(1);
  b.tensors[1].view = noise_view({16, 8}, 99);
  b.tensors[2].name = "model.layers.7.mlp.down_proj.weight";
  b.tensors[2].view = noise_view({8, 16}, 98);
  EXPECT_EQ(states(a, b),
            "model.layers.0.self_attn.q_proj.weight same, model.layers.0.mlp.up_proj.weight "
            "changed, model.norm.weight missing, model.layers.7.mlp.down_proj.weight extra");
}

TEST(DigestAgainst, AnEarlierDigestTellsWhatIsStale) {
  const Digest now = digest_of(small_model(10)), before = digest_of(small_model(1));
  Catalog b = small_model(10);
  b.tensors[1].view = small_model(1).tensors[1].view;
  EXPECT_EQ(states(now, b, &before),
            "model.layers.0.self_attn.q_proj.weight same, model.layers.0.mlp.up_proj.weight stale, "
            "model.norm.weight same");
}

TEST(DigestAgainst, ASquareMatrixMayBeTransposed) {
  const Digest a = digest_of(model({{"w", noise_view({8, 8}, 1)}}));
  View turned = noise_view({8, 8}, 1);
  std::swap(turned.parts[0].strides[0], turned.parts[0].strides[1]);
  EXPECT_EQ(states(a, model({{"w", turned}})), "w same (transposed)");
}

TEST(DigestAgainst, PutsRanksTogether) {
  const std::vector<float> values = noise(32 * 8, 5);
  Catalog ranks = model({{"w", f32_view({16, 8}, {values.begin(), values.begin() + 128})}});
  ranks.tensors[0].shards = {ranks.tensors[0].view,
                             f32_view({16, 8}, {values.begin() + 128, values.end()})};
  const Digest a = digest_of(ranks);
  ASSERT_EQ(a.tensors[0].ranks.size(), 2U);
  EXPECT_EQ(states(a, model({{"w", f32_view({32, 8}, values)}})), "w same");
  EXPECT_EQ(states(a, model({{"w", noise_view({32, 8}, 6)}})), "w changed");
  EXPECT_EQ(states(digest_of(model({{"w", f32_view({32, 8}, values)}})), ranks), "w same");
}

TEST(DigestAgainst, PutsFusedTensorsTogether) {
  const std::vector<float> q = noise(64, 1), k = noise(64, 2), v = noise(64, 3);
  std::vector<float> fused = q;
  fused.insert(fused.end(), k.begin(), k.end());
  fused.insert(fused.end(), v.begin(), v.end());
  const Catalog apart = model({{"model.layers.0.self_attn.q_proj.weight", f32_view({8, 8}, q)},
                               {"model.layers.0.self_attn.k_proj.weight", f32_view({8, 8}, k)},
                               {"model.layers.0.self_attn.v_proj.weight", f32_view({8, 8}, v)}});
  const Catalog one =
      model({{"model.layers.0.self_attn.qkv_proj.weight", f32_view({24, 8}, fused)}});
  EXPECT_EQ(states(digest_of(one), apart),
            "model.layers.0.self_attn.qkv_proj.weight same (A stores 3 tensors of B as one)");
  EXPECT_EQ(states(digest_of(apart), one),
            "model.layers.0.self_attn.q_proj.weight same, model.layers.0.self_attn.k_proj.weight "
            "same, model.layers.0.self_attn.v_proj.weight same");
}

}  // namespace
}  // namespace tensordiff
