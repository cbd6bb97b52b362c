import numpy as np
import torch

from aequa_flwr.data import Examples, Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.training import choose_compute
from aequa_flwr.training.augment import crop_and_flip

CPU = choose_compute("cpu", "float32")


def test_every_image_is_a_crop_of_itself_padded_with_black() -> None:
    """Against loops over plain NumPy: each output is one of the 9 x 9 x 2 that are possible."""
    schema = Schema("images", (2, 6, 5), ("a", "b"), (0.5, 0.3), (0.2, 0.4))
    raw = np.random.default_rng(0).integers(1, 256, (40, 2, 6, 5), dtype=np.uint8)
    data = CPU.resident(Examples(raw, np.zeros(40, dtype=np.int64)), schema)
    x, _ = data.batch(slice(None))
    out = crop_and_flip(x, data.black, rng_for(1)).numpy()
    assert out.shape == x.shape
    moves = set()
    for image, got in zip(raw, out, strict=True):
        padded = np.pad(image, ((0, 0), (4, 4), (4, 4)))
        found = []
        for top in range(9):
            for left in range(9):
                crop = padded[:, top : top + 6, left : left + 5] / 255
                normal = (crop - [[[0.5]], [[0.3]]]) / [[[0.2]], [[0.4]]]
                for mirrored in (False, True):
                    candidate = normal[:, :, ::-1] if mirrored else normal
                    if np.allclose(candidate, got, atol=1e-5):
                        found.append((top, left, mirrored))
        assert found
        moves.add(found[0])
    assert len(moves) > 25
    assert {mirrored for _, _, mirrored in moves} == {False, True}


def test_draws_follow_from_the_rng_alone() -> None:
    x, black = torch.randn(8, 3, 8, 8), torch.zeros(3, 1, 1)
    one, two = (crop_and_flip(x, black, rng_for(5)) for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, crop_and_flip(x, black, rng_for(6)))
