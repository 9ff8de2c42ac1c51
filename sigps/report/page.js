"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const columns = data.supersteps;
  const names = Object.keys(columns);
  const rows = columns.superstep.map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
  const root = document.documentElement;
  const element = (id) => document.getElementById(id);

  // Numbers as the command line has them.
  const count = (n) => n.toLocaleString("en-US");
  const digits = (value) => value.toFixed(Math.max(0, 3 - String(Math.trunc(value)).length));
  const seconds = (s) => (s >= 1 ? `${digits(s)} s` : s >= 1e-3 ? `${digits(s * 1e3)} ms` : `${digits(s * 1e6)} us`);
  const bytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (n >= 1024 && i < 4) { n /= 1024; i += 1; }
    return i ? `${n.toFixed(1)} ${units[i]}` : `${n} B`;
  };

  // Light or dark: what the system says, until somebody presses the button.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const setScheme = (scheme) => { root.dataset.scheme = scheme; drawAll(); };
  system.addEventListener("change", () => setScheme(system.matches ? "dark" : "light"));
  element("scheme").addEventListener("click", () => setScheme(root.dataset.scheme === "dark" ? "light" : "dark"));

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colourOf = (direction) => {
    const at = data.directions.indexOf(direction);
    return `var(--c${at < 0 ? 5 : at})`;
  };
  const config = () => ({
    background: "transparent",
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { labelColor: colour("--quiet"), titleColor: colour("--quiet"), gridColor: colour("--line"),
      domainColor: colour("--line"), tickColor: colour("--line"), labelFontSize: 11, titleFontSize: 11,
      titleFontWeight: "normal" },
    legend: { labelColor: colour("--ink"), titleColor: colour("--quiet") },
    line: { color: colour("--c5") },
    range: { category: [0, 1, 2, 3, 4].map((i) => colour(`--c${i}`)) },
  });

  const withoutLogs = (spec) => JSON.parse(JSON.stringify(spec), (key, value) =>
    key === "type" && value === "log" ? "linear" : key === "y2" || key === "domainMin" ? undefined : value);

  const views = new Map();
  const draw = async (id, spec, values) => {
    const chart = element("log").checked ? spec : withoutLogs(spec);
    const made = await window.vegaEmbed(element(id), { ...chart, data: { values } },
      { actions: false, renderer: "canvas", config: config(), tooltip: { theme: root.dataset.scheme } });
    views.get(id)?.finalize();
    views.set(id, made);
  };
  const degrees = Object.entries(data.degrees || {}).flatMap(([kind, classes]) => classes.map((c, order) => ({
    kind, order, vertices: c.vertices,
    degree: c.from === c.to ? count(c.from) : c.from < 1024 ? `${c.from}\u2013${c.to}`
      : `${c.from / 1024}k\u2013${(c.to + 1) / 1024}k`,
  })));
  const drawAll = async () => {
    await Promise.all(data.charts.map((spec, i) => draw(`chart-${i}`, spec, rows.map((row) => ({ ...row })))));
    if (data.degreeChart) await draw("chart-degrees", data.degreeChart, degrees.map((row) => ({ ...row })));
    root.dataset.drawn = String(Number(root.dataset.drawn || 0) + 1);
  };
  element("log").addEventListener("change", drawAll);

  for (const direction of new Set(columns.direction)) {
    const item = document.createElement("span");
    item.innerHTML = `<i class="swatch" style="background:${colourOf(direction)}"></i>`;
    item.append(direction);
    element("directions").append(item);
  }

  // The table: a page of rows at a time, in the order of the column that was pressed last.
  const page = 50;
  const shownColumns = [
    ["superstep", "superstep", (row) => (row.last > row.superstep ? `${count(row.superstep)}\u2013${count(row.last)}` : count(row.superstep))],
    ["direction", "direction", (row) => row.direction],
    ["seconds", "time", (row) => seconds(row.seconds)],
    ["active", "active", (row) => count(row.active)],
    ["messages", "messages", (row) => count(row.messages)],
    ["bytes_moved", "moved", (row) => bytes(row.bytes_moved)],
    ["imbalance", "imbalance", (row) => row.imbalance.toFixed(2)],
  ].concat(columns.gigabytes_per_second.some((rate) => rate > 0) ? [
    ["gigabytes_per_second", "GB/s, at least", (row) => digits(row.gigabytes_per_second)],
  ] : []);
  const table = element("supersteps");
  let order = { name: "superstep", ascending: true };
  let sorted = rows;
  let shown = 0;
  const showMore = () => {
    const part = document.createDocumentFragment();
    for (const row of sorted.slice(shown, shown + page)) {
      const line = document.createElement("tr");
      for (const [name, , text] of shownColumns) {
        const cell = line.insertCell();
        if (name !== "direction") cell.className = "number";
        cell.dataset.value = row[name];
        cell.textContent = text(row);
      }
      part.append(line);
    }
    table.tBodies[0].append(part);
    shown = Math.min(shown + page, sorted.length);
    element("shown").textContent = `${count(shown)} of ${count(sorted.length)} rows`;
    element("more").hidden = shown === sorted.length;
  };
  const sortBy = (name) => {
    order = { name, ascending: order.name === name ? !order.ascending : name === "superstep" || name === "direction" };
    const sign = order.ascending ? 1 : -1;
    sorted = [...rows].sort((a, b) =>
      sign * (a[name] < b[name] ? -1 : a[name] > b[name] ? 1 : 0) || a.superstep - b.superstep);
    for (const head of table.tHead.rows[0].cells) {
      if (head.dataset.name === name) head.setAttribute("aria-sort", order.ascending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    table.tBodies[0].replaceChildren();
    shown = 0;
    showMore();
  };
  const heads = table.tHead.insertRow();
  for (const [name, title] of shownColumns) {
    const head = document.createElement("th");
    head.dataset.name = name;
    if (name !== "direction") head.className = "number";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = title;
    button.addEventListener("click", () => sortBy(name));
    head.append(button);
    heads.append(head);
  }
  element("more").addEventListener("click", showMore);
  showMore();

  setScheme(system.matches ? "dark" : "light");
})();
