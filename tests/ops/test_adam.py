"""The steps of PyTorch's Adam, without copies."""

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from igd.ops.adam import InPlaceAdam

SHAPES = ((6, 5, 3, 3), (5, 6, 3, 3), (7, 4), (3,), ())


def weights(layout: torch.memory_format) -> list[nn.Parameter]:
    rng = torch.Generator().manual_seed(0)
    drawn = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in SHAPES]
    return [
        nn.Parameter(each.contiguous(memory_format=layout) if each.ndim == 4 else each)
        for each in drawn
    ]


def stepped(learnt: list[nn.Parameter], optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """After five steps, the gradients in the weights' own order in memory or in another."""
    rng = torch.Generator().manual_seed(1)
    for step in range(5):
        for each in learnt:
            drawn = torch.randn(each.shape, generator=rng, dtype=each.dtype)
            each.grad = torch.empty_like(each).copy_(drawn) if step % 2 else drawn
        optimizer.step()
    return [each.detach() for each in learnt]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_same_as_the_librarys(layout: torch.memory_format) -> None:
    ours, theirs = weights(layout), weights(torch.contiguous_format)
    adam = torch.optim.Adam(theirs, 0.01, (0.5, 0.9), weight_decay=0.1)
    for own, other in zip(
        stepped(ours, InPlaceAdam(ours, 0.01, (0.5, 0.9), 0.1)), stepped(theirs, adam), strict=True
    ):
        torch.testing.assert_close(own, other)
        assert own.ndim != 4 or own.is_contiguous(memory_format=layout)


def test_nothing_is_copied_where_a_gradient_lies_as_its_weight() -> None:
    learnt = weights(torch.channels_last)
    optimizer = InPlaceAdam(learnt, 0.01, (0.5, 0.9), 0.1)
    stepped(learnt, optimizer)
    for each in learnt:
        each.grad = torch.empty_like(each).copy_(torch.ones(()))
    with profile(activities=[ProfilerActivity.CPU]) as told:
        optimizer.step()
    done = {each.key for each in told.key_averages()}
    assert "aten::_fused_adam_" in done
    assert not {"aten::clone", "aten::contiguous"} & done


def test_moments_of_a_checkpoint_in_another_order_go_on() -> None:
    ours, theirs = weights(torch.channels_last), weights(torch.channels_last)
    one, other = (InPlaceAdam(each, 0.01, (0.5, 0.9), 0.1) for each in (ours, theirs))
    stepped(ours, one)
    stepped(theirs, other)
    kept = other.state_dict()
    moments = {
        index: {name: value.contiguous() for name, value in state.items()}
        for index, state in kept["state"].items()
    }
    other.load_state_dict({**kept, "state": moments})
    for own, resumed in zip(stepped(ours, one), stepped(theirs, other), strict=True):
        assert torch.equal(own, resumed)
