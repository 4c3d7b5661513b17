"""What a test asks of the machine it runs on."""

import pytest

from igd.cpu import multiplies_bfloat16

needs_bfloat16 = pytest.mark.skipif(
    multiplies_bfloat16() is False, reason="bfloat16 ends processes on this machine"
)
