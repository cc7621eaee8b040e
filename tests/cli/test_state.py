"""What a call changes besides its result: it is changed once, and as eager does."""

import torch

from thunder_cli.compare import compare
from thunder_cli.state import State, different, leaves

PROGRAM = """\
import torch

counter, seen, weight = 0, [], torch.zeros(2)
norm = torch.nn.BatchNorm1d(2)


def f(x, log):
    global counter
    counter += 1
    seen.append(counter)
    log.append(counter)
    weight.add_(1)
    x.add_(1)
    return norm(x) * counter


log, x = [], torch.arange(6.0).reshape(3, 2)
f(x, log)
print("left", counter, seen, log, weight.tolist(), x.tolist(), norm.num_batches_tracked.item())
"""


def test_the_program_sees_one_call_and_its_state_is_compared(run, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run("trace", "program.py:f", "--target", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "program   │ left 1 [1] [1] [1.0, 1.0] [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]] 1\n" in done.stdout
    assert "          equal to eager" in done.stdout


def test_state_is_found_restored_and_compared():
    class Holder:
        pass

    holder, numbers, tensor = Holder(), [1, 2], torch.zeros(2)
    holder.count, given = 0, [3]

    def program(x):
        holder.count += 1
        numbers.append(holder.count)
        tensor.add_(1)
        x.append(4)

    state = State(program, (given,))
    program(given)
    first = state.changes()
    state.restore()
    assert (holder.count, numbers, tensor.tolist(), given) == (0, [1, 2], [0.0, 0.0], [3, 4])
    program(given)
    assert different(first, state.changes(), compare) is None
    state.restore()
    tensor.add_(2)
    assert different(first, state.changes(), compare).startswith("tensor is left NOT equal to eager")


def test_arguments_are_compared_by_their_tensors_constants_and_lengths():
    mine, eager = ({"x": torch.ones(2), "n": [1, n], "m": torch.nn.Linear(2, 2)} for n in (2, 3))
    mine["m"].load_state_dict(eager["m"].state_dict())
    assert different(leaves(mine), leaves(eager), compare).startswith("an argument['n'][1] is left NOT equal")
    eager["n"][1] = 2
    assert different(leaves(mine), leaves(eager), compare) is None
    eager["n"].append(4)
    assert different(leaves(mine), leaves(eager), compare).startswith(
        "the length of an argument['n'] is left NOT equal"
    )
    eager["n"].pop()
    with torch.no_grad():
        mine["m"].weight.mul_(2)
    assert "['weight'] is left NOT equal" in different(leaves(mine), leaves(eager), compare)
