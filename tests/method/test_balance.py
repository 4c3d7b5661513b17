"""A limit on what the classifier pulls at the latents."""

import torch

from igd.method.balance import Limit, share_latent


def test_limit_on_the_classifiers_pull() -> None:
    def gradient(limit: float | None) -> torch.Tensor:
        latent = torch.ones(2, 3, requires_grad=True)
        for_decoder, for_classifier = share_latent(latent, None if limit is None else Limit(limit))
        (for_decoder[:, 0].sum() + 100 * for_classifier[:, 1].sum()).backward()
        assert latent.grad is not None
        return latent.grad

    torch.testing.assert_close(gradient(None)[0], torch.tensor([1.0, 100.0, 0.0]))
    torch.testing.assert_close(gradient(0.5)[0], torch.tensor([1.0, 0.5, 0.0]))
    torch.testing.assert_close(gradient(1000.0)[0], torch.tensor([1.0, 100.0, 0.0]))
