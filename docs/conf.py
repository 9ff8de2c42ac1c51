"""What Sphinx builds the documentation with: `scripts/docs`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import sigps

project = "sigps"
author = "the authors of sigps"
project_copyright = author
version = release = sigps.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_click",
]
exclude_patterns = ["_build"]
default_role = "code"
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other packages; links of pages are MyST's, and checked

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_mock_imports = ["torch", "torch_geometric"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Methods of a subclass", "params_style")]
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = "sigps"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_depth": 3,
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
}
html_context = {"default_mode": "auto"}


def mark_formulas(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Make the indented lines below a paragraph, which are formulas or code, blocks of their own kind."""
    marked: list[str] = []
    for line in lines:
        last = next((before for before in reversed(marked) if before.strip()), "")
        is_below_text = last.strip() and not last.startswith((" ", ":", ".."))
        if line.startswith("    ") and marked and not marked[-1].strip() and is_below_text:
            marked += [".. code-block:: text", ""]
        marked.append(line)
    lines[:] = marked


def list_programs(app: object, page: str, source: list[str]) -> None:
    """Put the pages of all programs that come along, and of functions with pages of their own, where a page asks."""
    modules: dict[str, list[str]] = {}
    functions = [name for name, value in vars(sigps.apps).items() if inspect.isfunction(value)]
    for name in [*sigps.apps.__all__, *functions]:
        module = getattr(sigps.apps, name).__module__
        if name in sigps.apps.__all__ or module not in modules:
            modules.setdefault(module, []).append(name)
    pages = [
        f"## {', '.join(names)}\n\n```{{eval-rst}}\n.. automodule:: {module}\n```\n"
        for module, names in modules.items()
    ]
    source[0] = source[0].replace("<!-- all programs -->", "\n".join(pages))


def setup(app: Any) -> None:
    """Tell Sphinx of what this file adds."""
    app.connect("source-read", list_programs)
    app.connect("autodoc-process-docstring", mark_formulas)  # after Napoleon, which takes the sections
