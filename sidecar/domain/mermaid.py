"""Draws a graph view as a Mermaid flow chart. No stored text can leave the label it stands in."""

from typing import Final

from sidecar.domain.graph_view import GraphNode, GraphView
from sidecar.domain.store_values import Edge

# Everything else becomes `#<code>;`, Mermaid's own escape, so that what a new version gives a meaning to stays text.
_PLAIN: Final = frozenset(" .,:-_/")


def mermaid(view: GraphView) -> str:
    """Return the drawing: a node for each memory, an arrow from source to target for each edge, and what was cut."""
    names = {node.id: f"n{number}" for number, node in enumerate(view.nodes)}
    lines = ["flowchart LR"]
    lines += [_node_line(names[node.id], node) for node in view.nodes]
    lines += [_edge_line(names, edge) for edge in view.edges]
    if view.origin_id in names:
        lines.append(f"  style {names[view.origin_id]} stroke-width:3px")
    lines += [f"  %% {name} cut at the cap" for name in view.truncated]
    return "\n".join(lines) + "\n"


def _node_line(name: str, node: GraphNode) -> str:
    return f'  {name}["{_escaped(f"{node.id} {node.type}: {node.preview}")}"]'


def _edge_line(names: dict[str, str], edge: Edge) -> str:
    return f'  {names[edge.source_id]} -->|"{edge.relation} {edge.weight:.2f}"| {names[edge.target_id]}'


def _escaped(text: str) -> str:
    return "".join(char if char in _PLAIN or (char.isascii() and char.isalnum()) else _code(char) for char in text)


def _code(character: str) -> str:
    # Letters of other scripts have no meaning to Mermaid, and stay readable.
    return character if character.isalpha() and not character.isascii() else f"#{ord(character)};"
