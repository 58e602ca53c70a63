// Draws counts by day. The numbers come from the table beside each chart, so that both always say the same.
(() => {
  "use strict";
  const DAY_S = 86400;
  const HEIGHT = 132;
  const drawn = new Map();

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const numbers = (figure) => {
    const rows = [...figure.querySelectorAll("tbody tr")];
    const columns = [rows.map((row) => Date.parse(row.cells[0].textContent.trim()) / 1000)];
    const series = figure.querySelectorAll("thead th").length - 1;
    for (let place = 1; place <= series; place++) columns.push(rows.map((row) => Number(row.cells[place].textContent)));
    return columns;
  };

  const readout = (figure) => (plot) => {
    const place = plot.cursor.idx;
    const keys = figure.querySelectorAll(".key b");
    const isOn = place !== null && place !== undefined;
    keys.forEach((key, index) => {
      key.textContent = isOn ? plot.data[index + 1][place] : key.dataset.total;
    });
    const day = isOn ? new Date(plot.data[0][place] * 1000).toISOString().slice(0, 10) : "";
    figure.querySelector("[data-day]").textContent = day;
  };

  const draw = (figure) => {
    const box = figure.querySelector(".plot");
    const data = numbers(figure);
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    // What stands alone is drawn in the strong colour.
    const fills = data.length > 2 ? [color("--chart-1"), color("--chart-2")] : [color("--chart-2")];
    const bars = uPlot.paths.bars({ size: [0.72, 28], radius: 0.12 });
    const options = {
      width: Math.max(box.clientWidth, 120),
      height: HEIGHT,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { setScale: false } },
      tzDate: (second) => uPlot.tzDate(new Date(second * 1000), "Etc/UTC"),
      scales: {
        x: { time: true, range: (_plot, low, high) => [low - DAY_S / 2, high + DAY_S / 2] },
        y: { range: (_plot, _low, high) => [0, Math.max(high * 1.08, 1)] },
      },
      axes: [
        { ...axis, grid: { show: false }, space: 56, size: 26, values: [[DAY_S * 28, "{YYYY}-{MM}", null, null, null, null, null, null, 1], [DAY_S, "{D} {MMM}", null, null, null, null, null, null, 1]] },
        { ...axis, size: 34, space: 28, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000] },
      ],
      series: [{}, ...data.slice(1).map((_values, index) => ({ fill: fills[index], stroke: fills[index], width: 0, paths: bars, points: { show: false } }))],
      hooks: { setCursor: [readout(figure)] },
    };
    drawn.get(figure.id)?.destroy();
    drawn.set(figure.id, new uPlot(options, data, box));
  };

  const drawAll = () => {
    for (const figure of document.querySelectorAll("[data-chart]")) draw(figure);
  };
  const update = () => {
    for (const figure of document.querySelectorAll("[data-chart]")) {
      const plot = drawn.get(figure.id);
      const data = numbers(figure);
      if (!plot || plot.data.length !== data.length) draw(figure);
      else if (JSON.stringify(plot.data) !== JSON.stringify(data)) plot.setData(data);
    }
  };
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 120);
  });
  document.addEventListener("sidecar:theme", drawAll);
  document.addEventListener("htmx:after:swap", update);
  drawAll();
})();
