"""HTML pages that stand alone: one style, pictures inside."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader
from PIL import Image

from igd.files import write_text

THUMBNAIL = 512  # pixels: enough to be enlarged on most screens


def write_page(path: Path, template: str, contents: dict[str, Any]) -> None:
    """Fill in a template of this package and write it, whole or not at all."""
    environment = Environment(loader=PackageLoader("igd.evaluation", ""), autoescape=True)
    write_text(path, environment.get_template(template).render(contents))


def thumbnail(image: Image.Image) -> Image.Image:
    small = image.copy()
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    return small


def data_uri(image: Image.Image) -> str:
    """A small picture as the text that a page shows it from."""
    buffer = io.BytesIO()
    thumbnail(image).save(buffer, format="WEBP", quality=85)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
