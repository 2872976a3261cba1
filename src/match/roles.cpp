// The table has the spellings of Hugging Face (GPT-2, Llama, Mistral, Qwen, NeoX, OPT, BERT, T5,
// ViT, CLIP, Whisper, Mamba, DeepSeek), GGUF, Megatron, the original Llama, TensorRT-LLM, LitGPT,
// OLMo, TransformerLens, T5X, MaxText, Flax, Keras, timm, torchvision and of common captures by
// module path. What follows no pattern is better left out: then the values decide.

#include "match/roles.h"

#include <unordered_map>

#include "base/text.h"

namespace tensordiff {
namespace {

struct Row {
  std::string_view role;
  std::string_view spellings;  // Words joined by dots, spellings by spaces.
};

// Within a layer. '@' stands for q, k and v, '#' for query, key and value: three rows in one.
constexpr Row kInLayer[] = {
    {"attn_norm",
     "ln.1 ln1 ln.attn attn.ln norm1 norm.1 input.layernorm input.layer.norm input.norm "
     "attn.norm attention.norm self.attn.layer.norm layernorm.before pre.attn.norm "
     "pre.attention.norm pre.attn.layernorm attn.layernorm attention.layernorm "
     "pre.attention.layernorm pre.self.attention.norm pre.self.attention.layernorm "
     "pre.self.attention.layer.norm self.attention.norm self.attention.linear.qkv.layer.norm "
     "pre.attention.layer.norm self.attention.layer.norm self.attention.layernorm layernorm.0 "
     "layer.norm1 layer.norm.1 attn.layer.norm norm.attn ln.before.attn"},
    {"@",
     "@ # w@ @.proj @.lin to.@ attn.@ attn.# attn.@.proj attn.w@ attn.to.@ self.attn.@ "
     "self.attn.# self.attn.@.proj attention.@ attention.# attention.w@ attention.@.proj "
     "attention.@.lin attention.self.# attention.attention.# self.attention.@ self.attention.# "
     "self.attention.@.proj linear.@ self.@ self.# self.attention.linear.@ self.attn.linear.@ "
     "attn.linear.@ attention.linear.@ @cur multiheaddotproductattention.0.# "
     "multiheaddotproductattention.1.# self.attention.layer.# mha.# attention.self.@ attn.#.proj "
     "attention.#.proj self.attn.#.proj self.attention.#.proj"},
    {"@_norm",
     "@.norm #.norm @.layernorm attn.@.norm self.attn.@.norm self.attention.@.layernorm "
     "self.attn.@.layernorm attention.@.norm self.attention.#.norm self.attn.#.norm "
     "attention.#.norm attn.#.norm @cur.normed norm.@ attn.norm.@ attention.@.layernorm "
     "self.attn.norm.@"},
    {"qkv",
     "qkv c.attn w.pack wqkv qkv.proj linear.qkv query.key.value in.proj to.qkv attn.c.attn "
     "attn.qkv attn.qkv.proj attn.in.proj attn.wqkv attn.to.qkv self.attn.qkv self.attn.qkv.proj "
     "self.attn.in.proj self.attn.w.pack self.attention.qkv self.attention.in.proj mixer.wqkv "
     "self.attention.linear.qkv self.attention.query.key.value attention.qkv attention.wqkv "
     "attention.qkv.proj attention.query.key.value attn.attn att.proj self.attn.query.key.value "
     "attn.query.key.value"},
    {"attn_heads",
     "attn.heads heads.out attn.heads.out attention.heads core.attention core.attn attn.core "
     "self.attention.core.attention context attn.context attn.ctx attn.z attn.values attn.mix "
     "heads self.attn.heads.out self.attn.heads self.attn.attn self.attention.context "
     "self.attn.context attention.context kqv.merged kqv.merged.cont self.attn.core.attention"},
    {"attn_out",
     "o wo o.proj out.proj linear.proj c.proj attn.out attn.output attn.o attn.wo attn.c.proj "
     "attn.o.proj attn.proj attn.out.proj attn.dense attn.projection self.attn.o.proj "
     "self.attn.out.proj self.attn.dense self.attn.proj attention.o attention.wo "
     "attention.o.proj attention.out attention.out.proj attention.out.lin attention.dense "
     "attention.proj attention.output.dense self.attention.linear.proj self.attention.dense "
     "self.attention.out self.attention.out.proj attn.to.out.0 kqv.out "
     "self.attention.output.dense self.attention.attention.output "
     "self.attention.layer.attention.output multiheaddotproductattention.0.out "
     "multiheaddotproductattention.1.out attn.attn.vec mha.out self.attention.o "
     "attention.output.proj"},
    {"attn", "attn self.attn attention self.attention attn.block attn.module mixer"},
    {"mlp_norm",
     "ln.2 ln2 ln.mlp mlp.ln norm2 norm.2 post.attention.layernorm post.attention.layer.norm "
     "post.attention.norm post.attn.norm ffn.norm mlp.norm ffn.ln final.layer.norm "
     "layernorm.after pre.mlp.layernorm pre.mlp.norm pre.ffn.norm mlp.layernorm ffn.layernorm "
     "pre.feedforward.layernorm pre.ffw.norm pre.feedforward.norm pre.feed.forward.norm "
     "post.self.attn.layernorm post.self.attn.norm post.self.attention.norm "
     "post.self.attention.layernorm post.self.attention.layer.norm post.layernorm "
     "mlp.linear.fc1.layer.norm pre.mlp.layer.norm ff.norm feedforward.layer.norm "
     "feedforward.layernorm layernorm.2 layer.norm2 layer.norm.2 ffn.layer.norm mlp.layer.norm "
     "norm.mlp norm.ffn ln.before.mlp"},
    {"post_attn_norm",
     "attn.post.norm attention.output.layernorm attention.output.layer.norm sa.layer.norm "
     "attn.output.norm"},
    {"post_mlp_norm",
     "post.mlp.layernorm ffn.post.norm output.layernorm output.layer.norm "
     "post.feedforward.layernorm post.ffn.norm post.ffw.norm post.mlp.norm layer.output.norm"},
    {"gate",
     "gate w1 gate.proj mlp.gate mlp.w1 mlp.gate.proj ffn.gate ffn.w1 ffn.gate.proj "
     "feed.forward.w1 feed.forward.gate.proj block.sparse.moe.w1 moe.w1 wi.0 mlp.wi.0 ffn.wi.0 "
     "mlp.linear.gate mlp.dense.gate feedforward.gate.dense"},
    {"up",
     "up w3 up.proj fc fc1 c.fc fc.in linear1 mlp.up mlp.w3 mlp.up.proj mlp.fc mlp.fc1 mlp.c.fc "
     "mlp.fc.in mlp.in mlp.lin1 mlp.linear.fc1 mlp.linear.1 mlp.0 mlp.dense.h.to.4h ffn.up "
     "ffn.w3 ffn.fc1 ffn.in ffn.lin1 ffn.up.proj feed.forward.w3 feed.forward.up.proj "
     "intermediate.dense block.sparse.moe.w3 moe.w3 mlp.hidden wi wi.1 mlp.wi mlp.wi.1 ffn.wi.1 "
     "mlp.linear.up feedforward.intermediate.dense mlpblock.0.dense.0 mlpblock.3.dense.0 "
     "mlp.linear.in"},
    {"gate_up",
     "gate.up gate.up.proj mlp.gate.up mlp.gate.up.proj ffn.gate.up ffn.gate.up.proj "
     "feed.forward.w13 mlp.w13 block.sparse.moe.w13 moe.w13 mlp.gating"},
    {"act",
     "act act.fn activation gelu silu mlp.act mlp.act.fn mlp.activation mlp.gelu mlp.silu mlp.1 "
     "mlp.nonlin ffn.act ffn.activation intermediate.act intermediate.intermediate.act.fn "
     "feed.forward.act activation.fn mlp.activation.fn mlp.activation.func mlp.gelu.impl "
     "mlp.act.func ffn.act.fn ffn.silu ffn.gelu ffn.swiglu mlp.swiglu"},
    {"down",
     "down w2 fc2 down.proj fc.out linear2 mlp.down mlp.w2 mlp.fc2 mlp.out mlp.proj mlp.output "
     "mlp.down.proj mlp.c.proj mlp.fc.out mlp.lin2 mlp.linear.fc2 mlp.linear.2 mlp.2 mlp.3 "
     "mlp.dense.4h.to.h ffn.down ffn.w2 ffn.fc2 ffn.out ffn.lin2 ffn.output ffn.down.proj "
     "feed.forward.w2 feed.forward.down.proj output.dense block.sparse.moe.w2 moe.w2 mlp.wo "
     "ffn.wo mlp.linear.down mlp.linear.out feedforward.output.dense mlpblock.0.dense.1 "
     "mlpblock.3.dense.1 ff.out mlp.projection ffn.projection"},
    {"mlp", "mlp ffn feed.forward moe block.sparse.moe mlp.block"},
    {"router",
     "router mlp.router block.sparse.moe.gate ffn.gate.inp moe.gate moe.router gate.inp "
     "mlp.router.gate"},
    {"input", "input in layer.input block.input resid.pre hidden.in"},
    {"middle", "resid.mid ffn.inp post.attn post.attn.resid attn.resid"},
    {"output",
     " output out layer.output block.output layer.out hidden hidden.out hidden.states resid.post "
     "residual resid l.out"},
    // T5, where the towers' layers have layers of their own; an encoder's second one is the
    // decoder's third.
    {"attn_norm", "norm layer.0.layer.norm"},
    {"@", "layer.0.selfattention.@"},
    {"attn_out", "layer.0.selfattention.o"},
    {"gate", "layer.1.densereludense.wi.0 layer.2.densereludense.wi.0"},
    {"up",
     "layer.1.densereludense.wi layer.2.densereludense.wi layer.1.densereludense.wi.1 "
     "layer.2.densereludense.wi.1"},
    {"mlp_norm", "layer.1.layer.norm layer.2.layer.norm"},
    {"relative", "layer.0.selfattention.relative.attention.bias attn.rel.b"},
    {"down", "layer.1.densereludense.wo layer.2.densereludense.wo"},
    {"cross_@",
     "cross.attn.@ cross.attn.# encoder.attn.@.proj cross.attention.@ crossattention.self.# "
     "layer.1.encdecattention.@ cross.attn.@.proj encoder.decoder.attention.#"},
    {"cross_out",
     "cross.attn.o cross.attn.out encoder.attn.out.proj cross.attention.out cross.attn.out.proj "
     "crossattention.output.dense layer.1.encdecattention.o cross.attn.output cross.attn.o.proj "
     "encoder.decoder.attention.out"},
    {"cross_norm",
     "cross.attn.norm encoder.attn.layer.norm cross.attn.ln pre.cross.attention.layer.norm "
     "cross.attn.layer.norm cross.attention.norm cross.attention.layer.norm"},
    // DeepSeek's attention with low ranks.
    {"q_a", "self.attn.q.a.proj attn.q.a"},
    {"q_a_norm", "self.attn.q.a.layernorm attn.q.a.norm"},
    {"q_b", "self.attn.q.b.proj attn.q.b"},
    {"kv_a", "self.attn.kv.a.proj.with.mqa attn.kv.a.mqa"},
    {"kv_a_norm", "self.attn.kv.a.layernorm attn.kv.a.norm"},
    {"kv_b", "self.attn.kv.b.proj attn.kv.b"},
    // Mamba.
    {"ssm_in", "mixer.in.proj ssm.in mamba.in.proj"},
    {"ssm_conv", "mixer.conv1d ssm.conv1d mamba.conv1d"},
    {"ssm_x", "mixer.x.proj ssm.x mamba.x.proj"},
    {"ssm_dt", "mixer.dt.proj ssm.dt mamba.dt.proj"},
    {"ssm_a", "mixer.a.log ssm.a mamba.a.log"},
    {"ssm_d", "mixer.d ssm.d mamba.d"},
    {"ssm_out", "mixer.out.proj ssm.out mamba.out.proj"},
};

constexpr Row kOutside[] = {
    {"segments",
     "token.type.embeddings embeddings.token.type.embeddings embedding.token.type.embeddings "
     "embeddings.segments token.types tokentype.embeddings embedding.tokentype.embeddings "
     "segment.embedding segment.embeddings"},
    {"patches",
     "patch.embed.proj patch.embeddings.projection embeddings.patch.embeddings.projection "
     "conv.proj patch.embd embeddings.patch.embedding patch.embedding visual.conv1"},
    {"class",
     "cls.token embeddings.cls.token class.token class.embedding embeddings.class.embedding cls "
     "class.embd"},
    {"pooler", "pooler pooler.dense pooled.dense"},
    {"tokens_norm",
     "embeddings.layernorm embeddings.layer.norm token.embd.norm embedding.layernorm embed.norm "
     "word.embeddings.layernorm embedding.layer.norm layernorm.embedding"},
    {"tokens",
     "wte embed embed.tokens embed.token token.embd tok.embd tok.embeddings shared "
     "token.embedding token.embeddings word.embeddings embedding embeddings tokens "
     "embedding.word.embeddings embeddings.word.embeddings embeddings.tokens embedding.tokens "
     "embed.in embed.wte inp.embd token.embedder embed.token.embeddings vocab.embedding embed.e "
     "embedder.input embedder embeddings.token.embedding emb tok.emb tok.embed wte.out "
     "embeddings.token embedding.output"},
    {"positions",
     "wpe pos.embd position.embd embed.positions embed.position position.embeddings pos.embed "
     "pos.embedding position.embedding positions embeddings.position.embeddings "
     "embedding.position.embeddings embeddings.positions embedding.positions embed.wpe "
     "inp.pos.embd position.embedder pos.embed.pos positional.embedding posembed.input.pos "
     "embeddings.position.embedding pos.emb positional.encoding pos wpe.out embeddings.position"},
    {"final_norm",
     "ln.f norm.f norm ln.final ln.out output.norm final.norm final.layernorm final.layer.norm "
     "post.layernorm layernorm final.ln norm.final ln.post fc.norm result.norm "
     "sequence.output.layernorm sequence.output.layer.norm layer.norm ln post.ln norm.out lnf"},
    {"head",
     "lm.head head output output.layer logits unembed embed.out classifier result.output "
     "final.logits heads.head score lm.head.out logits.dense cls.predictions.decoder "
     "predictions.decoder unembed.u embedder.decode token.embedding.reverse ff.out predictions "
     "lm.logits output.logits"},
};

using Table = std::unordered_map<std::string, std::string>;

std::string replaced(std::string text, char mark, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += with.size())
    text.replace(at, 1, with);
  return text;
}

void add_rows(const Row& row, Table& table) {
  constexpr std::pair<std::string_view, std::string_view> kLetters[] = {
      {"q", "query"}, {"k", "key"}, {"v", "value"}};
  for (const auto& [letter, word] : kLetters) {
    const std::string role = replaced(std::string(row.role), '@', letter);
    for (const std::string_view spelling : split(row.spellings, ' '))
      table.emplace(replaced(replaced(std::string(spelling), '@', letter), '#', word), role);
  }
}

template <class Rows>
Table table_of(const Rows& rows) {
  Table table;
  for (const Row& row : rows) add_rows(row, table);
  return table;
}

Spelling find(const Table& table, const std::string& words) {
  const auto row = table.find(words);
  return row == table.end() ? Spelling{} : Spelling{row->second, row->first};
}

}  // namespace

Spelling role_in_layer(const std::string& words) {
  static const Table kTable = table_of(kInLayer);
  return find(kTable, words);
}

Spelling role_outside(const std::string& words) {
  static const Table kTable = table_of(kOutside);
  return find(kTable, words);
}

}  // namespace tensordiff
