"""Layers and models on the virtual device give the host's values and gradients."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def assert_same_on_device(module, x, call=lambda module, x: module(x)):
    on_device, y = copy.deepcopy(module).cuda(), x.cuda().requires_grad_()
    x.requires_grad_()
    outputs = [call(module, x), call(on_device, y)]
    expected, got = (output[0] if isinstance(output, tuple) else output for output in outputs)
    assert got.is_cuda
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-5)
    weights = torch.linspace(-1, 1, expected.numel()).view(expected.shape)
    (expected * weights).sum().backward()
    (got * weights.cuda()).sum().backward()
    torch.testing.assert_close(y.grad.cpu(), x.grad, rtol=1e-3, atol=1e-4)
    for parameter, twin in zip(module.parameters(), on_device.parameters()):
        torch.testing.assert_close(twin.grad.cpu(), parameter.grad, rtol=1e-3, atol=1e-3)


LAYERS = {
    "lstm": (lambda: nn.LSTM(4, 5, 2, bidirectional=True), (3, 2, 4)),
    "gru": (lambda: nn.GRU(4, 5), (3, 2, 4)),
    "rnn": (lambda: nn.RNN(4, 5), (3, 2, 4)),
    "lstm cell": (lambda: nn.LSTMCell(4, 5), (3, 4)),
    "gru cell": (lambda: nn.GRUCell(4, 5), (3, 4)),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.ConvTranspose2d(8, 2, 3)
        ),
        (2, 3, 12, 12),
    ),
    "norms": (lambda: nn.Sequential(nn.LayerNorm(8), nn.RMSNorm(8), nn.GroupNorm(2, 4)), (2, 4, 8)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), (2, 5, 16)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_equal_the_host(name):
    torch.manual_seed(0)
    make, shape = LAYERS[name]
    assert_same_on_device(make(), torch.randn(shape))


def test_packed_sequences_run_through_an_lstm():
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(2, 3, 4, device="cuda"), [3, 2], batch_first=True)
    output, _ = nn.LSTM(4, 4, batch_first=True).cuda()(packed)
    assert nn.utils.rnn.pad_packed_sequence(output)[0].is_cuda


ATTENTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "float mask": {"attn_mask": torch.linspace(-1, 1, 33 * 33).view(33, 33)},
    "boolean mask": {"attn_mask": torch.ones(33, 33, dtype=torch.bool).tril()},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_equals_the_host(name, dtype):
    torch.manual_seed(0)
    host = [torch.randn(2, 4, 33, 16, dtype=dtype) for _ in range(3)]
    device = [x.cuda().requires_grad_() for x in host]
    host = [x.requires_grad_() for x in host]
    mask = {key: value.to(dtype) if name == "float mask" else value for key, value in ATTENTIONS[name].items()}
    on_device = {key: value.cuda() if isinstance(value, torch.Tensor) else value for key, value in mask.items()}
    expected = F.scaled_dot_product_attention(*host, **mask)
    got = F.scaled_dot_product_attention(*device, **on_device)
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(got.cpu(), expected, rtol=tolerance, atol=tolerance)
    expected.float().square().sum().backward()
    got.float().square().sum().backward()
    for x, y in zip(host, device):
        torch.testing.assert_close(y.grad.cpu(), x.grad, rtol=10 * tolerance, atol=10 * tolerance)


KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name.lower())
def test_every_attention_kernel_can_be_asked_for(kernel):
    torch.manual_seed(0)
    query = torch.randn(1, 4, 40, 16, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    with sdpa_kernel(kernel):
        got = F.scaled_dot_product_attention(query, query, query, is_causal=True)
    got.sum().backward()
    host = query.detach().cpu().requires_grad_()
    expected = F.scaled_dot_product_attention(host, host, host, is_causal=True)
    expected.sum().backward()
    torch.testing.assert_close(got.cpu(), expected, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(query.grad.cpu(), host.grad, rtol=1e-1, atol=1e-1)


def test_gpt2_equals_the_host_forward_and_backward():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=2, n_head=4, n_embd=64, vocab_size=128, n_positions=64, bos_token_id=0, eos_token_id=0,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    host = transformers.GPT2LMHeadModel(config)
    device = copy.deepcopy(host).to("cuda")
    tokens = torch.randint(0, 128, (2, 32))
    expected, got = host(tokens, labels=tokens), device(tokens.cuda(), labels=tokens.cuda())
    torch.testing.assert_close(got.logits.cpu(), expected.logits, rtol=1e-4, atol=1e-4)
    expected.loss.backward()
    got.loss.backward()
    for (name, parameter), twin in zip(host.named_parameters(), device.parameters()):
        torch.testing.assert_close(twin.grad.cpu(), parameter.grad, rtol=1e-3, atol=1e-5, msg=name)
    generated = device.generate(tokens[:1, :4].cuda(), max_new_tokens=4, do_sample=False)
    assert generated.tolist() == host.generate(tokens[:1, :4], max_new_tokens=4, do_sample=False).tolist()
