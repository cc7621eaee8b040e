"""torch.cuda and CUDA's random numbers answer for the chip that the process was started with."""

import threading

import pytest
import torch
from torch.nn import functional as F

from thunder import virtual_cuda


def test_torch_cuda_describes_the_chip():
    chip = virtual_cuda.chip()
    properties = torch.cuda.get_device_properties(1)
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2 == virtual_cuda.devices()
    assert torch.cuda.get_device_name() == properties.name == f"{chip.name} (virtual)"
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor) == chip.compute_capability
    assert properties.total_memory == chip.memory == torch.cuda.mem_get_info()[1]
    assert properties.multi_processor_count == chip.multiprocessors
    assert properties.L2_cache_size == chip.l2_cache
    assert properties.regs_per_multiprocessor == chip.registers_per_multiprocessor
    assert properties.shared_memory_per_multiprocessor == chip.shared_memory_per_multiprocessor
    assert properties.max_threads_per_multi_processor == chip.threads_per_multiprocessor
    assert torch.cuda.is_bf16_supported()
    assert torch.accelerator.current_accelerator().type == "cuda" and torch.accelerator.device_count() == 2


def test_each_thread_has_its_current_device():
    seen = []

    def work():
        torch.cuda.set_device(1)
        seen.append((torch.cuda.current_device(), torch.empty(1, device="cuda").device.index))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(1, 1)] and torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device.index == 1
    assert torch.ones(1, device="cuda").device.index == 0


def test_streams_and_events_are_accepted():
    stream, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        start.record()
        x = torch.ones(2, device="cuda")
        end.record()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != stream
    torch.cuda.current_stream().wait_stream(stream)
    x.record_stream(stream)
    stream.synchronize()
    end.synchronize()
    torch.cuda.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0


def test_memory_questions_are_answered():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.ones(1 << 20, device="cuda")
    if virtual_cuda.kind() == "driver":
        assert torch.cuda.memory_allocated() - before == x.nbytes <= torch.cuda.max_memory_allocated()
    assert "allocated" in torch.cuda.memory_summary().lower() and torch.cuda.memory_reserved() >= 0


def test_pinned_memory_moves_to_the_device():
    assert torch.ones(2).pin_memory().to("cuda", non_blocking=True).tolist() == [1, 1]


def test_a_seed_repeats_and_the_hosts_numbers_are_left_alone():
    host = torch.get_rng_state()
    draws = []
    for _ in range(2):
        torch.cuda.manual_seed(7)
        draws.append(torch.cat([torch.randn(4, device="cuda"), F.dropout(torch.ones(99, device="cuda"), 0.3)]))
    assert torch.equal(*draws) and not torch.equal(torch.randn(4, device="cuda"), draws[0][:4])
    assert torch.equal(torch.get_rng_state(), host)
    assert 0.5 < (draws[0][4:] > 0).float().mean() < 0.9
    torch.manual_seed(3)
    first = torch.rand(3, device="cuda")
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(3, device="cuda"))


def test_generator_state_can_be_saved_and_restored():
    state = torch.cuda.get_rng_state()
    first = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.rand(3, device="cuda"))
    generator = torch.Generator(device="cuda").manual_seed(5)
    assert generator.device.type == "cuda" and isinstance(torch.default_generator, torch.Generator)
    first = torch.randint(100, (9,), generator=generator, device="cuda")
    assert torch.equal(first, torch.randint(100, (9,), generator=generator.manual_seed(5), device="cuda"))


@pytest.mark.parametrize("draw", ["bernoulli", "exponential_", "multinomial", "normal", "randperm", "uniform_"])
def test_distributions_draw_on_the_device(draw):
    x = torch.full((9,), 0.5, device="cuda")
    draws = {
        "bernoulli": lambda: torch.bernoulli(x),
        "exponential_": lambda: x.clone().exponential_(),
        "multinomial": lambda: torch.multinomial(x, 5),
        "normal": lambda: torch.normal(x, x),
        "randperm": lambda: torch.randperm(9, device="cuda"),
        "uniform_": lambda: x.clone().uniform_(),
    }
    torch.manual_seed(1)
    first = draws[draw]()
    torch.manual_seed(1)
    assert first.is_cuda and torch.equal(first, draws[draw]())
