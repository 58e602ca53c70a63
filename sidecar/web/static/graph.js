// Draws the graph that the page's table lists. Texts are set as text only; nothing of a memory becomes markup.
(() => {
  "use strict";
  const PREVIEW = 28;
  const FLUID = 300;

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const edgeColor = {
    supersedes: "--good",
    relates_to: "--line-strong",
    caused_by: "--warn",
    contradicts: "--bad",
    derived_from: "--accent",
  };

  const style = () => [
    {
      selector: "node",
      style: {
        "background-color": color("--accent"),
        width: 14,
        height: 14,
        label: "data(short)",
        color: color("--text"),
        "font-size": 10,
        "font-family": "system-ui, sans-serif",
        "text-valign": "bottom",
        "text-margin-y": 4,
        "min-zoomed-font-size": 8,
      },
    },
    { selector: "node.chosen", style: { "border-width": 3, "border-color": color("--warn"), width: 20, height: 20 } },
    {
      selector: "edge",
      style: {
        width: 1.5,
        "curve-style": "bezier",
        "target-arrow-shape": "triangle",
        "arrow-scale": 0.8,
        "line-color": (edge) => color(edgeColor[edge.data("relation")] ?? "--line-strong"),
        "target-arrow-color": (edge) => color(edgeColor[edge.data("relation")] ?? "--line-strong"),
      },
    },
    { selector: ".hidden", style: { display: "none" } },
  ];

  const shortened = (text) => (text.length > PREVIEW ? `${text.slice(0, PREVIEW - 1)}…` : text);

  const draw = (box, found) => {
    const isLarge = found.nodes.length > FLUID;
    const elements = [
      ...found.nodes.map((node) => ({ group: "nodes", data: { ...node, short: shortened(node.text) } })),
      ...found.edges.map((edge) => ({ group: "edges", data: edge })),
    ];
    const graph = cytoscape({
      container: box,
      elements,
      style: style(),
      minZoom: 0.05,
      maxZoom: 4,
      // Large pictures are moved as one image; that stays fluid with a thousand nodes.
      textureOnViewport: isLarge,
      hideEdgesOnViewport: isLarge,
      layout: isLarge
        ? { name: "concentric", minNodeSpacing: 12, concentric: (node) => node.degree(), levelWidth: () => 2 }
        : { name: "cose", animate: false, randomize: false, nodeRepulsion: () => 9000, idealEdgeLength: () => 70 },
    });
    const chosen = document.getElementById("chosen");
    graph.on("tap", "node", (event) => {
      graph.nodes().removeClass("chosen");
      event.target.addClass("chosen");
      chosen.querySelector("[data-text]").textContent = event.target.data("text");
      chosen.querySelector("[data-link]").href = `${box.dataset.memories}/${event.target.id()}`;
      chosen.hidden = false;
    });
    document.querySelectorAll("[data-relation]").forEach((box) =>
      box.addEventListener("change", () => {
        graph.edges().filter((edge) => edge.data("relation") === box.dataset.relation).toggleClass("hidden", !box.checked);
      }),
    );
    document.querySelector("[data-fit]").addEventListener("click", () => graph.fit(undefined, 24));
    new MutationObserver(() => graph.style(style())).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    box.dataset.drawn = String(graph.nodes().length);
    // For tests and for the curious: how many frames a second moving about takes is measured through it.
    window.sidecarGraph = graph;
  };

  const begin = async () => {
    const box = document.getElementById("graph");
    if (!box) return;
    const answer = await fetch(box.dataset.address, { headers: { Accept: "application/json" } });
    if (answer.ok) draw(box, await answer.json());
  };

  document.addEventListener("DOMContentLoaded", begin);
})();
