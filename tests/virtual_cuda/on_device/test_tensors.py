"""Virtual CUDA tensors: made, changed, moved, printed and stored as on a GPU."""

import copy
import io
import pickle

import pytest
import torch

from thunder import virtual_cuda


def test_every_way_to_make_a_cuda_tensor_makes_a_plain_one_on_the_device():
    host = torch.ones(2)
    made = [
        torch.ones(2, device="cuda"),
        host.cuda(),
        host.to("cuda"),
        host.to(torch.device("cuda", 0)),
        torch.tensor([1.0, 1.0], device="cuda"),
        torch.as_tensor([1.0, 1.0], device="cuda:0"),
        torch.ones_like(host, device="cuda"),
        host.new_ones(2, device="cuda"),
        torch.full((2,), 1.0, device="cuda"),
        torch.from_numpy(host.numpy()).cuda(),
    ]
    for tensor in made:
        assert type(tensor) is torch.Tensor and tensor.is_cuda
        assert tensor.device == torch.device("cuda:0") and tensor.get_device() == 0
        assert torch.equal(tensor.cpu(), host)


def test_the_default_device_can_be_cuda():
    torch.set_default_device("cuda")
    try:
        assert torch.arange(3).is_cuda and torch.nn.Linear(2, 2).weight.is_cuda and torch.tensor([1]).is_cuda
        assert (torch.ones(2) + torch.rand(2)).is_cuda
    finally:
        torch.set_default_device(None)
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda
    assert not torch.zeros(2).is_cuda


def test_moving_to_where_a_tensor_is_gives_the_tensor():
    tensor = torch.ones(2, device="cuda")
    assert tensor.to("cuda") is tensor and tensor.cuda() is tensor
    assert tensor.to("cuda:1").device.index == 1 and tensor.cpu().device.type == "cpu"


def test_views_and_in_place_operations_share_memory():
    tensor = torch.zeros(4, 4, device="cuda")
    rows = tensor[1:3]
    rows += 1
    rows[0] = 5
    tensor.t()[0].mul_(2)
    tensor[tensor == 10] = 7
    expected = torch.tensor([[0.0, 0, 0, 0], [7, 5, 5, 5], [2, 1, 1, 1], [0, 0, 0, 0]])
    assert torch.equal(tensor.cpu(), expected)
    assert rows.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()


def test_out_arguments_are_written_and_resized():
    tensor = torch.arange(6.0, device="cuda").view(2, 3)
    empty, transposed = torch.empty(0, device="cuda"), torch.empty(3, 2, device="cuda").t()
    assert torch.add(tensor, 1, out=empty) is empty and torch.equal(empty.cpu(), tensor.cpu() + 1)
    torch.mul(tensor, 2, out=transposed)
    assert transposed.stride() == (1, 2) and torch.equal(transposed.cpu(), tensor.cpu() * 2)
    torch.add(tensor, tensor, out=tensor)
    assert tensor.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_resize_set_and_data_change_the_storage():
    tensor = torch.arange(4.0, device="cuda")
    assert tensor.resize_(2).tolist() == [0, 1]
    assert tensor.resize_(64, 64)[0, :4].tolist() == [0, 1, 2, 3]
    tensor.set_(torch.ones(2, device="cuda"))
    assert tensor.tolist() == [1, 1]
    tensor.data = torch.ones(3, device="cuda")
    tensor.data.fill_(2)
    assert tensor.tolist() == [2, 2, 2]


def test_a_cuda_tensor_prints_with_its_device():
    tensor = torch.tensor([1.0, 2.0], device="cuda")
    assert repr(tensor) == "tensor([1., 2.], device='cuda:0')"
    assert repr(torch.nn.Parameter(tensor)).endswith("device='cuda:0', requires_grad=True)")
    assert f"{tensor[1]:.2f}" == "2.00" and "..." in repr(torch.randn(2000, device="cuda"))


def test_values_come_out_but_not_as_numpy():
    tensor = torch.tensor([1.5, 2.5], device="cuda")
    assert tensor.tolist() == [1.5, 2.5] and tensor[0].item() == 1.5 and float(tensor.sum()) == 4.0
    assert tensor.cpu().numpy().sum() == 4 and bool((tensor > 0).all())
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        tensor.numpy()


def test_saving_pickling_and_copying_keep_values_strides_and_device():
    tensor = torch.arange(6.0, device="cuda").view(2, 3).t()
    file = io.BytesIO()
    torch.save({"tensor": tensor, "host": torch.ones(2)}, file)
    loads = []
    for where in (None, "cpu", "cuda:1"):
        file.seek(0)
        loads.append(torch.load(file, map_location=where))
    assert [load["tensor"].device for load in loads] == [torch.device(d) for d in ("cuda:0", "cpu", "cuda:1")]
    assert [load["host"].device.type for load in loads] == ["cpu", "cpu", "cuda"]
    for again in (loads[0]["tensor"], pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)):
        assert again.is_cuda and again.stride() == tensor.stride() and torch.equal(again, tensor)
        assert again.data_ptr() != tensor.data_ptr()


MIXED = {
    "add": lambda host, device: host + device,
    "add_": lambda host, device: device.add_(host),
    "matmul": lambda host, device: host @ device,
    "cat": lambda host, device: torch.cat([host, device]),
    "stack": lambda host, device: torch.stack([device, host]),
    "where": lambda host, device: torch.where(device > 0, host, device),
    "linear": lambda host, device: torch.nn.functional.linear(device, host),
    "embedding": lambda host, device: torch.nn.functional.embedding(host.long(), device),
    "cross_entropy": lambda host, device: torch.nn.functional.cross_entropy(device, host.argmax(1)),
}


@pytest.mark.parametrize("name", MIXED)
def test_host_and_device_tensors_do_not_mix(name):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        MIXED[name](torch.ones(2, 2), torch.ones(2, 2, device="cuda"))


def test_tensors_of_two_devices_do_not_mix():
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cuda:1!"):
        torch.ones(2, device="cuda:0") + torch.ones(2, device="cuda:1")


def test_zero_dimensional_host_tensors_host_indices_and_copies_are_allowed():
    tensor = torch.ones(2, device="cuda")
    assert (torch.tensor(2.0) * tensor + torch.tensor(1.0)).tolist() == [3, 3]
    assert tensor[torch.tensor([1, 0])].is_cuda
    tensor[torch.tensor([0])] = torch.tensor(4.0)
    host = torch.zeros(2)
    host.copy_(tensor)
    assert host.tolist() == [4, 1]


def test_host_alias_shares_memory_and_keeps_it_alive():
    tensor = torch.arange(6.0, device="cuda").view(2, 3).t()
    alias = virtual_cuda.host_alias(tensor)
    assert alias.device.type == "cpu" and alias.stride() == tensor.stride()
    alias[0, 0] = 9
    assert tensor[0, 0].item() == 9
    del tensor
    torch.ones(6, device="cuda")
    assert alias.flatten().tolist() == [9, 3, 1, 4, 2, 5]


def test_from_host_keeps_values_and_strides():
    host = torch.arange(8.0).view(2, 4)[:, ::2].t()
    tensor = virtual_cuda.from_host(host, "cuda:1")
    assert tensor.device == torch.device("cuda:1") and tensor.stride() == host.stride()
    assert torch.equal(tensor.cpu(), host)
    assert virtual_cuda.from_host(host).device == torch.device("cuda:0")


def test_results_have_the_strides_that_cuda_gives():
    from torch._subclasses.fake_tensor import FakeTensorMode

    def results(device):
        wide = torch.empty_strided((4, 6, 8), (48, 1, 6), device=device).fill_(1)
        yield torch.fft.fft2(wide)
        yield torch.nn.functional.batch_norm(wide, None, None, training=True)
        yield torch.linalg.svd(torch.ones(3, 5, device=device)).U
        query = torch.ones(1, 4, 32, 64, dtype=torch.bfloat16, device=device)
        yield torch.nn.functional.scaled_dot_product_attention(query, query, query)
        yield torch.nn.functional.conv2d(
            torch.ones(2, 4, 8, 8, device=device).to(memory_format=torch.channels_last),
            torch.ones(4, 4, 3, 3, device=device),
        )

    real = [result.stride() for result in results("cuda")]
    with FakeTensorMode(), torch.backends.cudnn.flags(enabled=torch.backends.cudnn.is_available()):
        fake = [result.stride() for result in results("cuda")]
    if virtual_cuda.kind() == "host tensors":  # without cuDNN fake tensors do not say what its convolution does
        real, fake = real[:-1], fake[:-1]
    assert real == fake
