"""Unmodified models of transformers, built from small configurations, give eager's results, call after call.

Each family says whether it is compiled; what is run plainly says why. The numbers must be exactly eager's: on the CPU
torch runs the same operations.
"""

import pytest
import torch
import transformers
from torch.utils._pytree import tree_flatten

import thunder

transformers.logging.set_verbosity_error()

WORDS = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
DECODER = {**WORDS, **SMALL, "max_position_embeddings": 64}
GROUPED = {**DECODER, "num_key_value_heads": 2}
PATCHES = {"image_size": 16, "patch_size": 4}

# The class of the model, that of its configuration, and the configuration.
FAMILIES = {
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", {**WORDS, "n_layer": 2, "n_head": 2, "n_embd": 32, "n_positions": 64}),
    "LLaMA": ("LlamaForCausalLM", "LlamaConfig", {**GROUPED, "attention_dropout": 0.1}),
    "Mistral": ("MistralForCausalLM", "MistralConfig", {**GROUPED, "sliding_window": 8}),
    "Qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED),
    "Gemma 2": ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPED, "head_dim": 8, "sliding_window": 8}),
    "Phi": ("PhiForCausalLM", "PhiConfig", {**DECODER, "resid_pdrop": 0.1}),
    "OPT": ("OPTForCausalLM", "OPTConfig", {**DECODER, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "GPT-NeoX": ("GPTNeoXForCausalLM", "GPTNeoXConfig", {**DECODER, "hidden_dropout": 0.1}),
    "Mixtral": ("MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 4}),
    "Mamba": ("MambaForCausalLM", "MambaConfig", {**WORDS, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2}),
    "BERT": ("BertForMaskedLM", "BertConfig", {**WORDS, **SMALL}),
    "RoBERTa": ("RobertaForMaskedLM", "RobertaConfig", {**WORDS, **SMALL}),
    "DistilBERT": ("DistilBertForMaskedLM", "DistilBertConfig", {
        **WORDS, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4,
    }),
    "ALBERT": ("AlbertForMaskedLM", "AlbertConfig", {
        **WORDS, **SMALL, "embedding_size": 16, "hidden_dropout_prob": 0.1,
    }),
    "ELECTRA": ("ElectraForMaskedLM", "ElectraConfig", {**WORDS, **SMALL, "embedding_size": 16}),
    "T5": ("T5ForConditionalGeneration", "T5Config", {
        **WORDS, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 1, "num_heads": 4, "decoder_start_token_id": 0,
    }),
    "BART": ("BartForConditionalGeneration", "BartConfig", {
        **WORDS, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
        "forced_eos_token_id": None,
    }),
    "ViT": ("ViTForImageClassification", "ViTConfig", {**SMALL, **PATCHES, "hidden_dropout_prob": 0.1}),
    "CLIP": ("CLIPModel", "CLIPConfig", {
        "text_config": DECODER, "vision_config": {**SMALL, **PATCHES}, "projection_dim": 16,
    }),
}  # fmt: skip
DECODERS = ["GPT-2", "LLaMA", "Mistral", "Qwen2", "Gemma 2", "Phi", "OPT", "GPT-NeoX", "Mixtral", "Mamba"]
ENCODER_DECODERS = ["T5", "BART"]
WITH_CACHE = [*DECODERS, *ENCODER_DECODERS]

# A full mask and one with padding are one program here; elsewhere transformers leaves a mask out if it is full.
ONE_PROGRAM_FOR_ALL_MASKS = {"Mistral", "Gemma 2", "Mamba"}

# What is run plainly, and why. Before torch 2.11, transformers asks for the alignment of experts' weights on the CPU.
RUN_PLAINLY = {"Mixtral": "data_ptr()"} if torch.__version__ < "2.11" else {}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # numbers do not depend on how work is split
    yield
    torch.set_num_threads(threads)


def build(name):
    """The model, and the same one jitted."""
    model_class, config_class, options = FAMILIES[name]
    torch.manual_seed(0)
    model = getattr(transformers, model_class)(getattr(transformers, config_class)(**options)).eval()
    return model, thunder.jit(model)


def inputs(name, batch, length, mask=None):
    torch.manual_seed(100 * batch + length)
    images = {"pixel_values": torch.randn(batch, 3, 16, 16)}
    if name == "ViT":
        return images
    words = {"input_ids": torch.randint(3, 64, (batch, length))}
    words["input_ids"][:, -1] = WORDS["eos_token_id"]
    if mask is not None:
        words["attention_mask"] = torch.ones(batch, length, dtype=torch.long)
        words["attention_mask"][0, : 3 if mask == "padded" else 0] = 0
    if name in ENCODER_DECODERS:
        words["decoder_input_ids"] = torch.randint(3, 64, (batch, length - 1))
    return {**words, **images} if name == "CLIP" else words


def leaves(output):
    """What an output holds, caches included."""
    flat, structure = tree_flatten(output)
    for x in [x for x in flat if isinstance(x, transformers.Cache)]:
        caches = [x.self_attention_cache, x.cross_attention_cache] if hasattr(x, "self_attention_cache") else [x]
        flat += [item for cache in caches for layer in cache.layers for _, item in sorted(vars(layer).items())]
    return flat, str(structure)


def assert_same(actual, expected):
    (found, structure), (wanted, expected_structure) = leaves(actual), leaves(expected)
    assert type(actual) is type(expected) and structure == expected_structure and len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert type(a) is type(b)
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=0, atol=0)


def call(model, seed, arguments):
    """The output, and the random number that comes next."""
    torch.manual_seed(seed)
    with torch.no_grad():
        return model(**arguments), torch.rand(1)


def assert_compiled(name, jitted, misses):
    plain = thunder.compile_stats(jitted).plain
    assert (name in RUN_PLAINLY) == (plain is not None), plain
    if plain is None:
        assert thunder.cache_misses(jitted) == misses, thunder.last_recompile_reason(jitted)
    else:
        assert RUN_PLAINLY[name] in str(plain)


@pytest.mark.parametrize("name", FAMILIES)
def test_shapes_masks_and_modes(name):
    model, jitted = build(name)
    masks = [None] if name == "ViT" else [None, "full", "padded"]
    calls = [inputs(name, 2, 9, mask) for mask in masks] + [inputs(name, 1, 12)]
    for _ in range(2):
        for arguments in calls:
            assert_same(call(jitted, 0, arguments), call(model, 0, arguments))
    programs = len(calls) - (name in ONE_PROGRAM_FOR_ALL_MASKS)
    assert_compiled(name, jitted, programs)

    jitted.train()
    for seed in (1, 2):
        assert_same(call(jitted, seed, calls[0]), call(model, seed, calls[0]))
    jitted.eval()
    assert_same(call(jitted, 0, calls[0]), call(model, 0, calls[0]))
    assert_compiled(name, jitted, programs + 1)


@pytest.mark.parametrize("name", WITH_CACHE)
def test_with_and_without_a_cache(name):
    model, jitted = build(name)
    for use_cache in (True, False, True):
        arguments = {**inputs(name, 2, 7), "use_cache": use_cache}
        assert_same(call(jitted, 0, arguments), call(model, 0, arguments))
    assert_compiled(name, jitted, 2)


@pytest.mark.parametrize("name", ["GPT-2", "LLaMA", "Gemma 2", "Mamba", *ENCODER_DECODERS])
def test_generate(name):
    """`thunder.jit(model).generate` calls the compiled model, and so does that of one with a jitted `forward`."""
    model, jitted = build(name)
    arguments = {k: v for k, v in inputs(name, 2, 6, "padded").items() if k != "decoder_input_ids"}
    arguments.update(max_new_tokens=3, min_new_tokens=3, do_sample=False)
    expected = model.generate(**arguments)
    for _ in range(2):
        assert torch.equal(jitted.generate(**arguments), expected)
    # Each call finds a cache of a new length, and each generation a new cache.
    assert_compiled(name, jitted, 6)

    model.forward = thunder.jit(model.forward)
    assert torch.equal(model.generate(**arguments), expected)
    assert_compiled(name, model.forward, 3)
