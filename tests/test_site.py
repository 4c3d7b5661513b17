"""The documentation as a site: complete, and without anything from elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_docs import ROOT, script

OUTSIDE = re.compile(
    r"""<(?:link|script|img|iframe|source)\b[^>]*?(?:src|href)=["']?((?:https?:)?//[^\s"'>]+)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The site as `make docs` builds it: a warning would be an error."""
    pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")  # of the theme, before it is imported
        patch.chdir(ROOT)
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        folder = tmp_path_factory.mktemp("site")
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
        yield folder


def test_every_page_is_there(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (
            site / (name.with_name("index.html") if name.stem == "README" else name)
        ).exists(), page
    assert not list(site.rglob("*.py"))


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    assert OUTSIDE.findall(
        '<link rel="stylesheet" href="https://fonts.example/css"><script src="//cdn.example/x.js">'
    )
    for page in site.rglob("*.html"):
        assert OUTSIDE.findall(page.read_text(encoding="utf-8")) == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(
            r"url\(\s*[\"']?(?:https?:)?//|@import", sheet.read_text(encoding="utf-8")
        ), sheet


def test_the_reference_says_what_the_code_says(site: Path) -> None:
    """Comments behind parameters and attributes are their documentation."""
    page = (site / "api.html").read_text(encoding="utf-8")
    at = page.index('id="igd.training.parameters.Parameters.image_size"')
    assert "side of the square that the model reads" in page[at : at + 3000]
    assert "_parameter(" not in page
    assert "share of normal images that look at least as anomalous" in page


def test_comments_are_those_behind_code() -> None:
    read = script(ROOT / "docs" / "comments.py").comments
    assert read('# above\nside = 3  # of the square\nname = "#no"\nother = 4  # noqa: X\n') == {
        2: "of the square"
    }
