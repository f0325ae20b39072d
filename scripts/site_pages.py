"""For MkDocs: the documents that lie outside `docs/` become pages of the site, with links that lead to pages."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "data/README.md": "data.md",
    "LICENSE": "LICENSE",
}
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add them to the files of the site."""
    root = Path(config.config_file_path).parent
    for path, page in PAGES.items():
        files.append(File.generated(config, page, content=_LINK.sub(_to_page, (root / path).read_text("utf-8"))))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """What is outside `docs/` is a page beside the others."""
    return _LINK.sub(_to_page, markdown)


def _to_page(link: re.Match[str]) -> str:
    """To the page that a document outside `docs/` has become, or to one inside it."""
    path = link[1].removeprefix("../")
    return "](" + PAGES.get(path, path.removeprefix("docs/"))
