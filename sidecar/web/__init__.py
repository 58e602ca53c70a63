"""The dashboard: pages for people, served by the sidecar's own process on this machine while somebody looks at them.

It shows what the use cases say and computes no figure of its own. Nothing here is imported before somebody opens it.
How a page is added is told in `sidecar.web.pages`.
"""
