"""`aequa networks`: what each width costs."""

import pytest

from tests.unit.cli.calling import run_main


def test_networks_are_listed_with_what_each_width_costs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run_main(capsys, "networks", "large-cnn")
    assert code == 0
    last = out.rstrip().splitlines()[-1].split()
    assert last == ["1.00", "2,156,490", "17,667,072", "8.6", "MB"]
    code, out, _ = run_main(capsys, "networks", "mlp", "--shape", "13", "--classes", "2")
    assert code == 0
    # 13 x 64 + 64 + 64 x 64 + 64 + 64 x 2 + 2
    assert "5,186" in out
    assert "13 to 2" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("vgg",), "is not known; use one of cnn"),
        (("nowhere.to_be:found",), "cannot be imported"),
        (("cnn", "--shape", "three"), "--shape three cannot be read"),
        (("cnn", "--shape", "1,0,5"), "cannot be read"),
        (("cnn", "--classes", "1"), "use at least 2"),
        (("lstm", "--words", "0"), "use at least 1"),
        (("cnn", "--words", "9"), "takes images"),
        (("cnn", "--words", "9", "--shape", "3"), "--shape and --words cannot be given together"),
    ],
)
def test_networks_refuses_in_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = run_main(capsys, "networks", *arguments)
    assert code == (2 if arguments[1:] and "takes" not in says else 1)
    assert says in err
