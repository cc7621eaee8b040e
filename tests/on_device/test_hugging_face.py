"""Unmodified models of transformers, built from small configurations, traced on a CUDA device, give eager's results."""

import pytest
import torch
import transformers

import thunder

SMALL = {"vocab_size": 64, "use_cache": False}

MODELS = {
    "GPT-2": lambda: (
        transformers.GPT2LMHeadModel,
        transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=32, **SMALL),
    ),
    "LLaMA": lambda: (
        transformers.LlamaForCausalLM,
        transformers.LlamaConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            **SMALL,
        ),
    ),
    "BERT": lambda: (
        transformers.BertModel,
        transformers.BertConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, **SMALL
        ),
    ),
    "T5": lambda: (
        transformers.T5ForConditionalGeneration,
        transformers.T5Config(
            d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, **SMALL
        ),
    ),
    "Qwen2": lambda: (
        transformers.Qwen2ForCausalLM,
        transformers.Qwen2Config(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            **SMALL,
        ),
    ),
}


def build(name):
    cls, config = MODELS[name]()
    torch.manual_seed(0)
    model = cls(config).eval().cuda()
    tokens = torch.randint(0, 64, (2, 16)).cuda()
    kwargs = {"input_ids": tokens}
    if name == "T5":
        kwargs["decoder_input_ids"] = tokens
    return model, kwargs


@pytest.mark.parametrize("name", MODELS)
def test_traced_equals_eager(name):
    model, kwargs = build(name)
    with torch.no_grad():
        expected = model(**kwargs)
        jitted = thunder.jit(model)
        for _ in range(2):
            actual = jitted(**kwargs)
            assert type(actual) is type(expected) and list(actual) == list(expected)
            torch.testing.assert_close(actual[0].cpu(), expected[0].cpu(), rtol=1e-4, atol=1e-5)
    assert thunder.cache_misses(jitted) == 1
    fusions = thunder.examine.get_fusions(thunder.last_traces(jitted)[-1])
    assert len(fusions) >= 4, "a model of two layers has more than a few fusions"
