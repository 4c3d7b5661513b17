"""Adam in one pass over each tensor, whatever the order of its numbers in memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class InPlaceAdam(torch.optim.Adam):
    """PyTorch's fused Adam, shown every tensor as its numbers lie in memory.

    Of weights that are channels last, as convolutions on a CPU like them, PyTorch's makes a copy in
    another order, which takes as long as the step itself. And it walks through memory: where a
    gradient or a moment lies in another order than its weight, it joins numbers that don't belong
    together, without a word.
    """

    def __init__(self, weights: Any, rate: float, betas: tuple[float, float], decay: float) -> None:
        super().__init__(weights, rate, betas, weight_decay=decay, fused=True)

    def load_state_dict(self, state_dict: Any) -> None:
        """Moments come to lie in memory as their weights do."""
        super().load_state_dict(state_dict)
        for weight, moments in self.state.items():
            for name, value in moments.items():
                if value.shape == weight.shape:
                    moments[name] = torch.empty_like(weight).copy_(value)

    def _init_group(self, group: Any, *lists: Any) -> bool:
        """What PyTorch gathers for a step, in its order: weights, gradients, moments and steps."""
        is_complex: bool = super()._init_group(group, *lists)
        orders = [_order(weight) for weight in lists[0]]
        for tensors in lists[:4]:
            tensors[:] = [each.permute(order) for each, order in zip(tensors, orders, strict=True)]
        gradients = lists[1]
        gradients[:] = [each.contiguous() for each in gradients]
        return is_complex


def _order(tensor: Tensor) -> list[int]:
    """The axes of a tensor by the distance of neighbours in memory."""
    return sorted(range(tensor.ndim), key=tensor.stride, reverse=True)
