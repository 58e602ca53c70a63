"""One module for each page. A page is found by being here: nothing else lists them.

**To add a page** `NAME`, write two things and touch no other file:

1. `sidecar/web/pages/NAME.py` with a constant `PAGE`, a `sidecar.web.page.Page`. Its `path` is the first segment of its
   addresses, its `order` the place in the navigation: overview 10, memories 20, graph 30, review 40, sessions 50,
   health 60. Each `PageRoute` has a view, `async def view(visit: Visit) -> Response`, which asks `visit.services` and
   returns `visit.show("NAME/page.html", ...)`.
2. `sidecar/web/templates/NAME/page.html`, which extends `base.html` and fills the block `content`; parts that htmx
   fetches are templates beside it. What pages share are the macros in `templates/macros/`: read them first.

Scripts and styles of a page's own go into `sidecar/web/static/NAME.js` (and `.css`), and into its blocks `scripts`
and `styles`. The content security policy allows no script, style or handler within the HTML, nor `eval`, so neither
`hx-on`, `js:` values nor trigger filters work.

**What holds everywhere:**

- Figures come from use cases. Nothing is computed that a use case already says, and none is shown without what it
  rests on.
- `visit.is_partial` tells whether htmx asks. A view that is polled returns only the part that changes.
- Live parts: `{{ live.every(url(...)) }}` in an element with an `id`; the answer is that element again. Polls of a
  page that nobody touches do not keep the dashboard open, and a hidden tab does not poll.
- Actions: `PageRoute(..., is_action=True)`, reached by the macro `forms.action`, which carries the token and a request
  key. Return the part that changed, and `toast` beside it. What a use case refuses is raised as an error of
  `sidecar.errors` and shown at the form by itself; let it pass.
- Addresses are made by `url(PAGE, segments..., name=value)`. Ids of ours may be segments; names that somebody else
  chose (sessions, clients, namespaces) go into the query, for a path may hold letters, digits and `_.~-` only.
- Link to a page of another module only `{% if has_page("memories") %}`; `cards.memory_link` does it.
- No text of transcripts is shown, ever.
"""

import importlib
import pkgutil

from sidecar.web.page import Page


def all_pages() -> tuple[Page, ...]:
    """Return every page there is."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    return tuple(importlib.import_module(f"{__name__}.{name}").PAGE for name in names)
