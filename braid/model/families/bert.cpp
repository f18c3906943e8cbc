// BERT: learned positions, attention both ways, norms after the residuals, GELU (exact form), and a head that predicts
// masked tokens. Sequences are single texts, so all tokens are of the first type. Source: Devlin et al. 2018.
//
//   embedding: wte.weight [v, c], wpe.weight [p, c], types.weight [2, c], embedding_norm
//   blocks.N:  attention.qkv [3 c, c], attention.projection [c, c], attention_norm, mlp.up [f, c], mlp.down [c, f],
//              mlp_norm
//   head:      transform [c, c], transform_norm, wte.weight or, untied, head.weight [v, c], logits.bias [v]
#include <nlohmann/json.hpp>

#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/hf_keys.h"

namespace braid::model {
namespace {

int bert_ffn(const ModelSpec& spec) { return 4 * spec.width; }

// BERT draws all matrices with one standard deviation.
BlockGraph with_one_deviation(BlockGraph block, const ModelSpec& spec) {
  for (Op& op : block.ops) {
    for (Param& param : op.params) {
      if (param.init.kind == Init::Kind::Normal) param.init.std = spec.init_std;
    }
  }
  return block;
}

BlockGraph bert_embedding(const ModelSpec& spec) {
  BlockBuilder block(spec, "bt");
  block.lookup("wte").positions("wpe").token_types("types").norm(OpKind::LayerNorm, "embedding_norm").dropout();
  return block.build();
}

BlockGraph bert_layer(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  const int input = block.value();
  block.linear("attention.qkv", "[kmd|kd|kd]").bias().attention(0, Sees::All);
  block.linear("attention.projection", "c").bias().dropout().plus(input);
  const int attended = block.norm(OpKind::LayerNorm, "attention_norm").cut().value();
  block.linear("mlp.up", "f").bias().apply(OpKind::GeluErf).linear("mlp.down", "c").bias().dropout().plus(attended);
  return with_one_deviation(block.norm(OpKind::LayerNorm, "mlp_norm").build(), spec);
}

BlockGraph bert_head(const ModelSpec& spec) {
  BlockBuilder block(spec, "btc");
  block.pick_rows().linear("transform", "c").bias().apply(OpKind::GeluErf).norm(OpKind::LayerNorm, "transform_norm");
  return with_one_deviation(block.loss(head_table(spec), "logits").build(), spec);
}

ModelSpec bert_model(const HfKeys& keys) {
  ModelSpec model;
  model.family = ModelFamily::Bert;
  model.norm_eps = 1e-12;
  keys.take_sizes(model);
  keys.take_number("layer_norm_eps", model.norm_eps);
  keys.take_number("initializer_range", model.init_std);
  keys.need("hidden_act", "gelu");
  keys.need("position_embedding_type", "absolute");
  keys.need("type_vocab_size", kTokenTypes);
  keys.need("is_decoder", false);
  keys.need("add_cross_attention", false);
  if (!keys.flag("tie_word_embeddings", true)) model.output_weights = OutputWeights::Untied;
  return model;
}

HfModelType bert_type(const ModelSpec&) { return {"bert", "BertForMaskedLM", "BertForPreTraining"}; }

void put_bert(const ModelSpec& spec, nlohmann::ordered_json& json) {
  put_sizes(spec, json);
  json["hidden_act"] = "gelu";
  json["layer_norm_eps"] = spec.norm_eps;
  json["type_vocab_size"] = kTokenTypes;
  json["hidden_dropout_prob"] = spec.dropout;
  json["attention_probs_dropout_prob"] = 0.0;
}

// The pooler and the head of the next-sentence objective, which braid does not train.
std::vector<Param> bert_carried() {
  return {{"pooler.weight", dims_of("cc")},
          {"pooler.bias", dims_of("c")},
          {"next_sentence.weight", dims_of("gc")},
          {"next_sentence.bias", dims_of("g")}};
}

HfNames bert_names() {
  return {"bert.",
          "bert.encoder.layer.",
          {{"attention.qkv", {"attention.self.query", "attention.self.key", "attention.self.value"}},
           {"attention.projection", {"attention.output.dense"}},
           {"attention_norm", {"attention.output.LayerNorm"}},
           {"mlp.up", {"intermediate.dense"}},
           {"mlp.down", {"output.dense"}},
           {"mlp_norm", {"output.LayerNorm"}}},
          {{"wte", {"bert.embeddings.word_embeddings"}},
           {"wpe", {"bert.embeddings.position_embeddings"}},
           {"types", {"bert.embeddings.token_type_embeddings"}},
           {"embedding_norm", {"bert.embeddings.LayerNorm"}},
           {"transform", {"cls.predictions.transform.dense"}},
           {"transform_norm", {"cls.predictions.transform.LayerNorm"}},
           {"head", {"cls.predictions.decoder"}},
           {"logits", {"cls.predictions"}}},
          {"embeddings.position_ids", "embeddings.token_type_ids"},
          "cls.predictions.decoder.weight",
          {{"cls.predictions.decoder.bias", "cls.predictions.bias"}},
          {{".LayerNorm.weight", ".LayerNorm.gamma"}, {".LayerNorm.bias", ".LayerNorm.beta"}},
          bert_carried(),
          {{"pooler", {"bert.pooler.dense"}}, {"next_sentence", {"cls.seq_relationship"}}}};
}

std::vector<Preset> bert_presets() {
  const char* const kPaper = "Devlin et al. 2018, section 3; config.json of google-bert";
  const auto bert = [](ModelSpec sizes) {
    sizes.family = ModelFamily::Bert;
    sizes.norm_eps = 1e-12;
    return sizes;
  };
  return {
      {"bert-tiny", "ours, for trials", bert({.layers = 4, .heads = 4, .width = 128, .context = 128})},
      {"bert-base",
       kPaper,
       bert({.layers = 12, .heads = 12, .width = 768, .context = 512, .vocab = 30522}),
       {"bert-base-uncased"}},
      {"bert-large",
       kPaper,
       bert({.layers = 24, .heads = 16, .width = 1024, .context = 512, .vocab = 30522}),
       {"bert-large-uncased"}},
  };
}

}  // namespace

Family bert_family() {
  return {"bert",
          {.feed_forward = FeedForward::Plain,
           .key_heads = KeyHeads::OfEachHead,
           .positions = PositionKind::Learned,
           .heads = HeadForm::Fixed,
           .objective = Objective::Masked},
          bert_ffn,
          {bert_embedding, bert_layer, bert_head},
          bert_names(),
          {{{"bert", bert_model}}, bert_type, put_bert},
          bert_presets()};
}

}  // namespace braid::model
