"""The API's description as a page, in a real browser: all of it, from this server alone."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import IN_BROWSER, Page

pytestmark = IN_BROWSER


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    opened = Page(tmp_path_factory.mktemp("downloads"))
    yield opened
    opened.browser.quit()


@pytest.mark.parametrize(("prefix", "width"), [("", 1280), ("/inspect", 390)])
def test_every_route_with_its_parameters_and_answers(
    page: Page, served: Callable[..., str], prefix: str, width: int
) -> None:
    url = f"{served(prefix=prefix)}{prefix}"
    page.open(f"{url}/docs", width)
    page.until(lambda: page.all(".route"))
    named = page.texts(".route h2 code")
    assert {"/v1/models/{name}/score", "/v1/models", "/metrics", "/healthz"} <= {*named}
    score = page.one(".route").text
    for word in ("max_false_alarms", "optional", "multipart/form-data", "429", "ScoreResponse"):
        assert word in score
    assert f"--data-binary @image.png '{url}/v1/models/MODEL/score'" in score
    assert "ImageResponse" in page.texts(".schema h3")
    assert "share of normal images that look at least as anomalous" in page.one("#schemas").text
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert [each for each in page.browser.get_log("browser") if each["level"] == "SEVERE"] == []
    page.one("#contents a:nth-child(2)").click()
    assert page.run("return location.hash.length > 1 && !!document.querySelector(location.hash)")


def test_files_are_the_servers_own(served: Callable[..., str], page: Page) -> None:
    page.open(f"{served()}/docs")
    page.until(lambda: page.all(".route"))
    loaded = page.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert loaded
    assert all(Path(each).name in OWN for each in loaded), loaded


OWN = ("page.css", "docs.css", "docs.js", "icon.svg", "openapi.json")
